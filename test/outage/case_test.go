package outage_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/outage"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// patience is for what never comes: a kill costs a workflow task's timeout, Velero may leave a backup for a minute, and a plan's
	// run that is due comes after more than one.
	patience = 5 * time.Minute
	// readEvery is how long a case waits before it looks again: several do.
	readEvery = 500 * time.Millisecond
	// callPatience is how long one question to the API server or Temporal may take; some are asked while these are away.
	callPatience = 20 * time.Second
)

// withCase runs a case, and another one in its place if Velero takes up a Backup of it twice, or if it has made more writes than
// an undisturbed one (see outage.Attempts).
func withCase(t *testing.T, r *rig, run func(*testCase)) {
	t.Helper()
	var attempts outage.Attempts
	for completed := false; !completed; {
		completed = attempts.Completes(func() {
			c := newCase(t, r, &attempts)
			defer c.Close() // now: t may be that of a scenario, which ends after all of its cases
			run(c)
		})
	}
}

const takenUpTwice = "Velero has taken up a Backup of it twice"

// insteadIfTakenUpTwice has another case take the place of this one if Velero has taken up a Backup of it twice: Velero decides
// by a cache that may be behind, and fails a Backup whose files are in the object store already. Only a busy machine shows that.
func (c *testCase) insteadIfTakenUpTwice() {
	c.t.Helper()
	if c.attempts != nil && c.takenUpTwice() {
		c.instead(takenUpTwice)
	}
}

// instead has another case take the place of this one.
func (c *testCase) instead(why string) {
	c.t.Helper()
	c.Close()
	c.attempts.Again(c.t, why)
}

// takenUpTwice looks at Velero's own Backups: the object of one may show the first end when Velero has taken it up again.
func (c *testCase) takenUpTwice() bool {
	backups, err := c.veleroBackups()
	return err == nil && slices.ContainsFunc(backups, func(made velerov1.Backup) bool { return env.BackupTakenUpTwice(&made) })
}

// veleroBackups are the Velero Backups of the case's objects.
func (c *testCase) veleroBackups() ([]velerov1.Backup, error) {
	var backups velerov1.BackupList
	err := c.admin.List(c.t.Context(), &backups, client.InNamespace(env.OADPNamespace),
		client.MatchingLabels{oadpv1alpha1.OadpLabel: oadpv1alpha1.OadpLabelValue})
	return slices.DeleteFunc(backups.Items, func(made velerov1.Backup) bool {
		return made.Annotations[oadpv1alpha1.NabOriginNamespaceAnnotation] != c.namespace
	}), err
}

// testCase is one run of a scenario: a namespace, a cluster ID and the two processes of its own.
type testCase struct {
	*rig
	*outage.Subjects
	t         *testing.T
	namespace string
	// attempts are those of this case and of others in whose place it is: see withCase.
	attempts  *outage.Attempts
	nab       *oadpv1alpha1.NonAdminBackup
	location  *oadpv1alpha1.NonAdminBackupStorageLocation
	nar       *oadpv1alpha1.NonAdminRestore
	nadr      *oadpv1alpha1.NonAdminDownloadRequest
	drill     *holdfastv1alpha1.RestoreDrill
	plan      *holdfastv1alpha1.BackupPlan
	planned   string    // its status before its deletion
	published time.Time // when the restore's results in the bucket were written, as seen after the first publication
	// forgotten: Temporal has lost its database. An object that was settled just then needs no workflow any more.
	forgotten bool
}

func newCase(t *testing.T, r *rig, attempts *outage.Attempts) *testCase {
	t.Helper()
	c := &testCase{rig: r, t: t, attempts: attempts, namespace: fmt.Sprintf("case-%08x", rand.Uint32())}
	require.NoError(t, r.stack.CreateTenant(t.Context(), c.namespace, "alice"))
	require.NoError(t, r.stack.Seed(t.Context(), c.namespace, 3))
	var err error
	c.Subjects, err = outage.StartSubjects(t.Context(), r.stack, outage.SubjectOptions{
		Namespace: c.namespace, Binaries: r.binaries, Dir: t.TempDir(), WatchArgs: []string{"--progress-interval=1s"},
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// backUp creates the case's NonAdminBackup.
func (c *testCase) backUp() {
	c.t.Helper()
	c.backUpAs("nightly")
}

func (c *testCase) backUpAs(name string, changes ...func(*velerov1.BackupSpec)) {
	c.t.Helper()
	c.nab = &oadpv1alpha1.NonAdminBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name},
		Spec: oadpv1alpha1.NonAdminBackupSpec{BackupSpec: &velerov1.BackupSpec{
			SnapshotVolumes: ptr.To(false), DefaultVolumesToFsBackup: ptr.To(false),
			// Events and what else comes and goes by itself must not make two runs differ.
			IncludedResources: []string{"configmaps"}, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "seed"}},
		}},
	}
	for _, change := range changes {
		change(c.nab.Spec.BackupSpec)
	}
	require.NoError(c.t, c.admin.Create(c.t.Context(), c.nab))
}

func (c *testCase) patch(merge string) {
	c.t.Helper()
	require.NoError(c.t, c.admin.Patch(c.t.Context(), c.nab.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(merge))))
}

// read returns the NonAdminBackup, nil if it is gone.
func (c *testCase) read() (*oadpv1alpha1.NonAdminBackup, error) {
	nab := &oadpv1alpha1.NonAdminBackup{}
	err := c.admin.Get(context.Background(), client.ObjectKeyFromObject(c.nab), nab)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return nab, err
}

func (c *testCase) completed() bool {
	nab, err := c.read()
	return err == nil && nab != nil && nab.Status.VeleroBackup != nil && nab.Status.VeleroBackup.Status != nil &&
		nab.Status.VeleroBackup.Status.Phase == velerov1.BackupPhaseCompleted
}

func (c *testCase) gone() bool {
	nab, err := c.read()
	return err == nil && nab == nil
}

// await polls until ok, and the objects' workflows have ended. That of an approval stays open.
func (c *testCase) await(want string, ok func() bool) {
	c.t.Helper()
	c.awaitFor(patience, want, ok)
	if c.nab != nil {
		c.awaitEnd(contract.KindBackup, c.nab)
	}
	if c.location != nil {
		c.awaitEnd(contract.KindLocation, c.location)
	}
	if c.nar != nil {
		c.awaitEnd(contract.KindRestore, c.nar)
	}
	if c.nadr != nil {
		c.awaitEnd(contract.KindDownload, c.nadr)
	}
	if c.drill != nil {
		c.awaitEnd(contract.KindDrill, c.drill)
	}
}

// awaitFor polls until ok.
func (c *testCase) awaitFor(limit time.Duration, want string, ok func() bool) {
	c.t.Helper()
	c.poll(limit, func() error {
		if ok() {
			return nil
		}
		return errors.New("not yet: " + want)
	})
}

// poll tries until there is no error. Every wait of a case for what Velero has a part in is this one: see insteadIfTakenUpTwice.
func (c *testCase) poll(limit time.Duration, try func() error) {
	c.t.Helper()
	come, twice := false, false
	defer func() {
		if !come && c.t.Failed() {
			c.explain()
		}
	}()
	eventually.Succeeds(c.t, limit, func() error {
		if twice = c.attempts != nil && c.takenUpTwice(); twice {
			return nil
		}
		err := try()
		if err != nil {
			time.Sleep(readEvery)
			err = fmt.Errorf("%s: %w", c.namespace, err)
		}
		return err
	})
	if come = true; twice {
		c.instead(takenUpTwice)
	}
}

// explain logs what there is of the case, which has failed.
func (c *testCase) explain() {
	c.t.Helper()
	c.attempts = nil // no other one takes its place
	e := c.effects()
	c.t.Logf("%s\n%s\n%s\n%s\n%q\n%q\n%q\n%q", e.Object, e.Location, e.Restore, e.Drill, e.OfDrill, e.Backups, e.Requests, e.Writes)
	for _, process := range c.Processes() {
		c.t.Logf("%s runs: %t, its log ends so:\n%s", process.Name(), process.Running(), process.LogTail(20))
	}
	if c.plan != nil {
		c.t.Logf("plan: %s\nits Schedule: %s", c.planNow(), c.scheduleOf())
	}
	waiting, err := c.Driver.Pending()
	c.t.Logf("moments that have not come: %v; the driver's error: %v", waiting, err)
	c.t.Logf("moments: %v", c.Driver.Moments())
}

func (c *testCase) awaitEnd(kind contract.Kind, object client.Object) {
	c.t.Helper()
	id := contract.WorkflowID(c.namespace, kind, contract.ObjectRef{
		Namespace: c.namespace, Name: object.GetName(), UID: string(object.GetUID()),
	})
	c.poll(patience, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), callPatience)
		defer cancel()
		described, err := c.temporal.DescribeWorkflowExecution(ctx, id, "")
		var unknown *serviceerror.NotFound
		if c.forgotten && errors.As(err, &unknown) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("workflow %s: %w", id, err)
		}
		if status := described.WorkflowExecutionInfo.Status; status != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
			return fmt.Errorf("workflow %s is %s: its object is settled", id, status)
		}
		return nil
	})
}
