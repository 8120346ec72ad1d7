package fdb_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows/contract"
)

// patience is how long the slowest ordinary step may take on a loaded machine.
const patience = 180 * time.Second

// manyPatience is how long many first snapshots may take, one after the other, among those of other tests.
const manyPatience = 10 * time.Minute

const bucket = "fdb-tests"

// readEvery is how long a test waits before it reads an object again: many do.
const readEvery = 400 * time.Millisecond

// callPatience is how long one question to the API server or Temporal may take.
const callPatience = 20 * time.Second

type simControl = fdbsim.Control

// user is the tenant: a Kubernetes user without any rights outside its namespaces.
const user = "alice"

// tenant acts in one namespace with nothing but its own rights.
type tenant struct {
	t         *testing.T
	namespace string
	client    client.Client
	// servers are its databases by name (*env.FDBServer), if they are FoundationDB's own; nil if they are the stand-in's.
	servers *sync.Map
}

// newTenant makes one whose databases are the stand-in's.
func newTenant(t *testing.T) *tenant {
	t.Helper()
	namespace := fmt.Sprintf("fdb-%06x", rand.IntN(1<<24))
	require.NoError(t, stack.CreateTenant(t.Context(), namespace, user))
	rights, err := stack.UserClient(user)
	require.NoError(t, err)
	x := &tenant{t: t, namespace: namespace, client: rights}
	x.credentials("store")
	return x
}

// in is the tenant in a part of its test.
func (x *tenant) in(t *testing.T) *tenant {
	t.Helper()
	part := *x
	part.t = t
	return &part
}

// credentials makes, or mends, a Secret with a credentials file for the S3 server.
func (x *tenant) credentials(name string) {
	x.t.Helper()
	storage := stack.Storage()
	x.secret(name, storage.AccessKey, storage.SecretKey)
}

func (x *tenant) secret(name, account, secret string) {
	x.t.Helper()
	host := strings.TrimPrefix(stack.Storage().Endpoint, "http://")
	host, _, _ = strings.Cut(host, ":")
	file, err := json.Marshal(map[string]any{"accounts": map[string]any{account + "@" + host: map[string]any{"secret": secret}}})
	require.NoError(x.t, err)
	made := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name}, Data: map[string][]byte{"credentials": file},
	}
	err = x.client.Create(x.t.Context(), made)
	if err != nil {
		err = x.client.Update(x.t.Context(), made)
	}
	require.NoError(x.t, err)
}

// cluster makes a database and its FoundationDBCluster, and returns the database's name for the stand-in.
func (x *tenant) cluster(name string) string {
	x.t.Helper()
	var connection string
	if x.servers != nil {
		connection = x.serve(name)
	} else {
		made, err := sim.NewCluster(strings.ReplaceAll(name, "-", "_"), fmt.Sprintf("%08x", rand.Uint32()))
		require.NoError(x.t, err)
		connection = made
	}
	require.NoError(x.t, stack.CreateFDBCluster(x.t.Context(), x.namespace, name, x.version(), connection))
	owner, _, _ := strings.Cut(connection, "@")
	return owner
}

// connection is the connection string of a cluster.
func (x *tenant) connection(name string) string {
	x.t.Helper()
	var cluster foundationdbv1beta2.FoundationDBCluster
	require.NoError(x.t, admin.Get(x.t.Context(), client.ObjectKey{Namespace: x.namespace, Name: name}, &cluster))
	return cluster.Status.ConnectionString
}

// change alters a FoundationDBBackup before it is created.
type change func(*fdbv1alpha1.FoundationDBBackupSpec)

// backUp creates a FoundationDBBackup.
func (x *tenant) backUp(name string, changes ...change) *fdbv1alpha1.FoundationDBBackup {
	x.t.Helper()
	endpoint := strings.TrimPrefix(stack.Storage().Endpoint, "http://")
	object := &fdbv1alpha1.FoundationDBBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name},
		Spec: fdbv1alpha1.FoundationDBBackupSpec{
			Credentials:   fdbv1alpha1.CredentialsReference{SecretName: "store"},
			Destination:   fdbv1alpha1.BackupDestination{Endpoint: endpoint, Bucket: bucket, Path: x.namespace + "/" + name},
			URLParameters: []string{"secure_connection=0", "region=" + stack.Storage().Region},
			AgentCount:    ptr.To(int32(1)),
		},
	}
	for _, alter := range changes {
		alter(&object.Spec)
	}
	require.NoError(x.t, x.client.Create(x.t.Context(), object))
	x.t.Cleanup(func() {
		if x.t.Failed() {
			x.explain(object)
		}
		// One that runs is looked at every few seconds, and so do agents: a load for the tests that come.
		stop := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"backupState":"Stopped","agentCount":0}}`))
		_ = x.client.Patch(context.Background(), object.DeepCopy(), stop) // it may be gone
	})
	return object
}

// explain logs what is known of an object when a test has failed.
func (x *tenant) explain(object *fdbv1alpha1.FoundationDBBackup) {
	x.t.Logf("%s", x.kubectl("get", "foundationdbbackup", object.Name, "-o", "yaml"))
	x.t.Logf("%s", x.kubectl("get", "events,deployments,pods"))
}

// kubectl runs the real one with the tenant's rights and returns what it printed.
func (x *tenant) kubectl(args ...string) string {
	return x.kubectlAs(user, append([]string{"-n", x.namespace}, args...)...)
}

// requireReady has kubectl wait for condition Ready, as a script would. What is awaited holds already: it ends at once.
func (x *tenant) requireReady(resource string, object client.Object) {
	x.t.Helper()
	said := x.kubectl("wait", "--for=condition=Ready", "--timeout=2m", resource+"/"+object.GetName())
	require.Contains(x.t, said, "condition met")
}

func (x *tenant) kubectlAsAdmin(args ...string) string { return x.kubectlAs(env.Admin, args...) }

func (x *tenant) kubectlAs(user string, args ...string) string {
	args = append([]string{"--kubeconfig", stack.Kubeconfig(user)}, args...)
	ctx, cancel := context.WithTimeout(context.Background(), patience) // also when the test is over
	defer cancel()
	command := exec.CommandContext(ctx, stack.Binary(tools.Kubectl), args...)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		fmt.Fprintf(&output, "kubectl: %v", err)
	}
	return output.String()
}

// edit changes the spec of an object.
func (x *tenant) edit(object *fdbv1alpha1.FoundationDBBackup, alter change) {
	x.t.Helper()
	eventually.Succeeds(x.t, patience, func() error {
		present, err := x.read(object)
		if err != nil {
			return err
		}
		alter(&present.Spec)
		return x.client.Update(x.t.Context(), present)
	})
}

func (x *tenant) get(object *fdbv1alpha1.FoundationDBBackup) *fdbv1alpha1.FoundationDBBackup {
	x.t.Helper()
	present, err := x.read(object)
	require.NoError(x.t, err)
	return present
}

func (x *tenant) read(object *fdbv1alpha1.FoundationDBBackup) (*fdbv1alpha1.FoundationDBBackup, error) {
	ctx, cancel := context.WithTimeout(x.t.Context(), callPatience)
	defer cancel()
	present := &fdbv1alpha1.FoundationDBBackup{}
	return present, x.client.Get(ctx, client.ObjectKeyFromObject(object), present)
}

// await polls until the object is as wished and returns it.
func (x *tenant) await(
	object *fdbv1alpha1.FoundationDBBackup, want string, ok func(*fdbv1alpha1.FoundationDBBackup) bool,
) *fdbv1alpha1.FoundationDBBackup {
	x.t.Helper()
	return x.awaitFor(patience, object, want, ok)
}

func (x *tenant) awaitFor(limit time.Duration,
	object *fdbv1alpha1.FoundationDBBackup, want string, ok func(*fdbv1alpha1.FoundationDBBackup) bool,
) *fdbv1alpha1.FoundationDBBackup {
	x.t.Helper()
	var present *fdbv1alpha1.FoundationDBBackup
	eventually.Succeeds(x.t, limit, func() (err error) {
		if present, err = x.read(object); err == nil && !ok(present) {
			time.Sleep(readEvery)
			err = fmt.Errorf("%s has %s", object.Name, inWords(present.Status))
		}
		if err != nil {
			err = fmt.Errorf("wanted: %s; %w", want, err)
		}
		return err
	})
	return present
}

// inWords shows what a status has.
func inWords(status any) string {
	text, err := json.Marshal(status)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// reconciled: the present generation is as the spec says.
func reconciled(object *fdbv1alpha1.FoundationDBBackup) bool {
	return object.Status.Reconciled && object.Status.ObservedGeneration == object.Generation
}

// restorable: it is reconciled, and the status tells from when until when can be restored, which may take one more look at the
// store.
func restorable(object *fdbv1alpha1.FoundationDBBackup) bool {
	return reconciled(object) && latest(object) > 0 && oldest(object) > 0
}

// latest and oldest are the versions until which, and from which on, the first backup can be restored; 0 if that is not known.
func latest(object *fdbv1alpha1.FoundationDBBackup) int64 {
	if len(object.Status.Backups) == 0 || object.Status.Backups[0].LatestRestorable == nil {
		return 0
	}
	return object.Status.Backups[0].LatestRestorable.Version
}

func oldest(object *fdbv1alpha1.FoundationDBBackup) int64 {
	if len(object.Status.Backups) == 0 || object.Status.Backups[0].OldestData == nil {
		return 0
	}
	return object.Status.Backups[0].OldestData.Version
}

// has returns a condition for a condition with a reason.
func has(kind, reason string) func(*fdbv1alpha1.FoundationDBBackup) bool {
	return func(object *fdbv1alpha1.FoundationDBBackup) bool {
		found := meta.FindStatusCondition(object.Status.Conditions, kind)
		return found != nil && found.Reason == reason
	}
}

// awaitInspected waits until the workflow has read the container of a backup, and runs nothing. A database that becomes silent
// while the container is read holds that up for minutes.
func (x *tenant) awaitInspected(object *fdbv1alpha1.FoundationDBBackup) {
	x.t.Helper()
	id := contract.WorkflowID(stack.ClusterID(), contract.KindFDBBackup, contract.ObjectRef{
		Namespace: object.Namespace, Name: object.Name, UID: string(object.UID),
	})
	eventually.Succeeds(x.t, patience, func() error {
		ctx, cancel := context.WithTimeout(x.t.Context(), callPatience)
		defer cancel()
		answer, err := temporal.QueryWorkflow(ctx, id, "", contract.QueryState)
		if err != nil {
			return err
		}
		var state contract.FDBBackupState
		if err := answer.Get(&state); err != nil {
			return err
		}
		described, err := temporal.DescribeWorkflowExecution(ctx, id, "")
		if err != nil {
			return err
		}
		if len(state.Seen.Containers) > 0 && len(described.PendingActivities) == 0 {
			return nil
		}
		time.Sleep(readEvery)
		return fmt.Errorf("%s has read %d containers, and runs %v", id, len(state.Seen.Containers), described.PendingActivities)
	})
}

// awaitGone waits for the end of an object.
func (x *tenant) awaitGone(object *fdbv1alpha1.FoundationDBBackup) {
	x.t.Helper()
	x.awaitNone(x.client, object, &fdbv1alpha1.FoundationDBBackup{})
}

// awaitNone waits until an object is not there any more; into is one of its kind.
func (x *tenant) awaitNone(reader client.Reader, object, into client.Object) {
	x.t.Helper()
	eventually.Succeeds(x.t, patience, func() error {
		ctx, cancel := context.WithTimeout(x.t.Context(), callPatience)
		defer cancel()
		err := reader.Get(ctx, client.ObjectKeyFromObject(object), into)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		time.Sleep(readEvery)
		return fmt.Errorf("%T %s is there: %s", into, into.GetName(), inWords(into))
	})
}

func writeFile(path, content string) error { return os.WriteFile(path, []byte(content), 0o600) }

// ownerOf is the description:id of a FoundationDBCluster's database.
func ownerOf(t *testing.T, namespace, name string) string {
	t.Helper()
	cluster := &foundationdbv1beta2.FoundationDBCluster{}
	require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, cluster))
	owner, _, _ := strings.Cut(cluster.Status.ConnectionString, "@")
	return owner
}
