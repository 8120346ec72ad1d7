package fdb_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/outage"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// patience is how long a case may take: a kill costs the heartbeats of two activities, and an owner pauses nobody at first.
	patience = 4 * time.Minute
	// readEvery is how long a case waits before it looks again: several do.
	readEvery = 400 * time.Millisecond
	// callPatience is how long one question to the API server or Temporal may take; some are asked while these are away.
	callPatience = 20 * time.Second
	// name is that of every case's database and backup.
	name = "orders"
	// version is what the databases run.
	version = "7.3.72"
)

// testCase is one run of a scenario: a Kubernetes namespace, a database, a Temporal namespace and two processes of its own.
type testCase struct {
	*rig
	*outage.Subjects
	t         *testing.T
	namespace string // and the cluster ID
	database  string
	temp      string // the worker's temporary folder
	temporal  temporalNamespace
	giveBack  func() // gives it back
	backup    *fdbv1alpha1.FoundationDBBackup
	restore   *fdbv1alpha1.FoundationDBRestore
	began     time.Time
	// attempts are those of this case and of others in whose place it is: see withCase.
	attempts *outage.Attempts
}

// withCase runs a case, and another one in its place if it has made more writes than an undisturbed one: see outage.Attempts.
func withCase(t *testing.T, r *rig, run func(*testCase)) {
	t.Helper()
	var attempts outage.Attempts
	for completed := false; !completed; {
		completed = attempts.Completes(func() {
			c := newCase(t, r, &attempts)
			defer c.end() // now: t may be that of a scenario, which ends after all of its cases
			run(c)
		})
	}
}

func newCase(t *testing.T, r *rig, attempts *outage.Attempts) *testCase {
	t.Helper()
	c := &testCase{rig: r, t: t, attempts: attempts, began: time.Now(), namespace: fmt.Sprintf("case-%08x", rand.Uint32())}
	c.temporal, c.giveBack = r.borrow(t, c.workflows)
	c.temp = t.TempDir()
	t.Cleanup(c.dismiss)
	require.NoError(t, r.stack.CreateTenant(t.Context(), c.namespace, "alice"))
	c.makeDatabase()
	var err error
	c.Subjects, err = outage.StartSubjects(t.Context(), r.stack, outage.SubjectOptions{
		Namespace: c.namespace, FoundationDB: true, Binaries: r.binaries, Dir: t.TempDir(),
		Environment: []string{"TEMPORAL_NAMESPACE=" + c.temporal.name, "TMPDIR=" + c.temp},
		WorkerArgs: []string{
			"--fdb-bin-dir=" + r.sim.BinDir, "--fdb-cage-folders=" + r.sim.Store.Dir, "--fdb-status-interval=4s",
			// Each case takes itself for a Kubernetes cluster, and finds the first snapshots of the others in the one there is.
			"--fdb-initial-snapshot-limit=100",
			// One turn is one turn: none follows it within a case, unless the first one could not be taken.
			"--fdb-expiry-min-interval=24h", "--fdb-expiry-retry-interval=3s",
		},
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// end ends the case's processes and agents, and gives its Temporal namespace to another case.
func (c *testCase) end() {
	c.Close()
	c.dismiss()
	c.giveBack()
}

// dismiss ends the case's agents, which would go on until the stack ends.
func (c *testCase) dismiss() {
	err := c.admin.Delete(context.Background(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name},
	}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		c.t.Errorf("delete the agents: %v", err)
	}
}

// makeDatabase makes the case's database, its FoundationDBCluster, and a Secret for the store.
func (c *testCase) makeDatabase() {
	c.t.Helper()
	connection, err := c.sim.NewCluster(name, fmt.Sprintf("%08x", rand.Uint32()))
	require.NoError(c.t, err)
	c.database, _, _ = strings.Cut(connection, "@")
	require.NoError(c.t, c.stack.CreateFDBCluster(c.t.Context(), c.namespace, name, version, connection))
	storage := c.stack.Storage()
	host, _, _ := strings.Cut(strings.TrimPrefix(storage.Endpoint, "http://"), ":")
	file, err := json.Marshal(map[string]any{"accounts": map[string]any{
		storage.AccessKey + "@" + host: map[string]any{"secret": storage.SecretKey},
	}})
	require.NoError(c.t, err)
	require.NoError(c.t, c.admin.Create(c.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "store"}, Data: map[string][]byte{"credentials": file},
	}))
}

// backUp creates the case's FoundationDBBackup.
func (c *testCase) backUp() { c.backUpEvery(0) }

// backUpEvery creates it with a period of snapshots in seconds; 0 leaves the default.
func (c *testCase) backUpEvery(period int64) {
	c.t.Helper()
	storage := c.stack.Storage()
	c.backup = &fdbv1alpha1.FoundationDBBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name},
		Spec: fdbv1alpha1.FoundationDBBackupSpec{
			Credentials: fdbv1alpha1.CredentialsReference{SecretName: "store"},
			Destination: fdbv1alpha1.BackupDestination{
				Endpoint: strings.TrimPrefix(storage.Endpoint, "http://"), Bucket: storage.Bucket, Path: c.namespace + "/" + name,
			},
			URLParameters: []string{"secure_connection=0", "region=" + storage.Region},
			AgentCount:    ptr.To(int32(1)), SnapshotPeriodSeconds: period,
		},
	}
	require.NoError(c.t, c.admin.Create(c.t.Context(), c.backup))
}

// edit changes the spec.
func (c *testCase) edit(change func(*fdbv1alpha1.FoundationDBBackupSpec)) {
	c.t.Helper()
	eventually.Succeeds(c.t, patience, func() error {
		present, err := c.read()
		if err != nil {
			return err
		}
		if present == nil {
			return eventually.Stop(errors.New("the backup is gone"))
		}
		change(&present.Spec)
		return c.admin.Update(c.t.Context(), present)
	})
}

// read returns the FoundationDBBackup, nil if it is gone.
func (c *testCase) read() (*fdbv1alpha1.FoundationDBBackup, error) {
	present := &fdbv1alpha1.FoundationDBBackup{}
	err := c.admin.Get(context.Background(), client.ObjectKeyFromObject(c.backup), present)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return present, err
}

// reconciled: the present generation is as the spec says, and the status tells from when until when can be restored, which may
// take one more look at the store.
func (c *testCase) reconciled() bool {
	present, err := c.read()
	return err == nil && present != nil && present.Status.Reconciled && present.Status.ObservedGeneration == present.Generation &&
		!slices.ContainsFunc(present.Status.Backups, func(b fdbv1alpha1.BackupDetails) bool { return b.LatestRestorable == nil })
}

func (c *testCase) gone() bool {
	present, err := c.read()
	return err == nil && present == nil
}

// await polls until ok.
func (c *testCase) await(want string, ok func() bool) {
	c.t.Helper()
	come := false
	defer func() {
		if !come {
			c.explain()
		}
	}()
	eventually.Succeeds(c.t, patience, func() error {
		if come = ok(); come {
			return nil
		}
		time.Sleep(readEvery)
		return fmt.Errorf("%s: not yet: %s", c.namespace, want)
	})
}

// explain logs what is known of the object.
func (c *testCase) explain() {
	c.t.Helper()
	if present, err := c.read(); err == nil && present != nil {
		c.t.Logf("%s", asJSON(present.Status))
	}
	if calls, err := c.sim.Calls(c.database); err == nil {
		for _, call := range calls {
			c.t.Logf("%s %s %v %d %s", call.Begin.Format(time.TimeOnly), call.Tool, call.Args, call.ExitCode, call.End.Format(time.TimeOnly))
		}
	}
}

// workflows are the IDs of the workflows of a case.
func (c *testCase) workflows() []string {
	ids := []string{
		contract.FDBClusterID(c.database), contract.FDBThrottleID(c.namespace), contract.FDBExpiryQueueID(c.namespace),
	}
	if c.backup != nil {
		ids = append(ids, c.workflow(), contract.WorkflowID(c.namespace, contract.KindFDBExpiry, refOf(c.backup)))
	}
	if c.restore != nil {
		ids = append(ids, c.restoreWorkflow())
	}
	return ids
}

func refOf(object client.Object) contract.ObjectRef {
	return contract.ObjectRef{Namespace: object.GetNamespace(), Name: object.GetName(), UID: string(object.GetUID())}
}

func (c *testCase) workflow() string {
	return contract.WorkflowID(c.namespace, contract.KindFDBBackup, refOf(c.backup))
}

func (c *testCase) restoreWorkflow() string {
	return contract.WorkflowID(c.namespace, contract.KindFDBRestore, refOf(c.restore))
}

// awaitStatus waits until a workflow runs, or has ended as it should.
func (c *testCase) awaitStatus(id string, status enumspb.WorkflowExecutionStatus) {
	c.t.Helper()
	c.await(fmt.Sprintf("workflow %s: %s", id, status), func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), callPatience)
		defer cancel()
		described, err := c.temporal.DescribeWorkflowExecution(ctx, id, "")
		return err == nil && described.WorkflowExecutionInfo.Status == status
	})
}

// folders are the private folders of workers in the case's temporary folder, and what else is in it, but for their locks.
func (c *testCase) folders() (workers, others []string) {
	c.t.Helper()
	err := filepath.WalkDir(c.temp, func(path string, _ os.DirEntry, err error) error {
		switch inside, _ := filepath.Rel(c.temp, path); {
		case os.IsNotExist(err), inside == ".":
			return nil // removed while we look
		case err != nil:
			return err
		case !strings.Contains(inside, "/") && strings.HasPrefix(inside, "holdfast-fdb-"):
			workers = append(workers, inside)
		case filepath.Base(inside) != "lock":
			others = append(others, inside)
		}
		return nil
	})
	require.NoError(c.t, err)
	return workers, others
}
