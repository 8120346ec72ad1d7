package outage_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/outage"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// patience is how long a case may take: a kill costs a workflow task's timeout, Velero may leave a backup for a minute.
	patience  = 2 * time.Minute
	readEvery = 500 * time.Millisecond
)

// errTakenUpTwice ends a case whose Backup Velero has taken up twice.
var errTakenUpTwice = errors.New("a Backup was taken up twice by Velero")

// withCase runs a case. If Velero takes up a Backup of it twice, another case takes its place: Velero decides by a cache that may be
// behind, and fails a Backup whose files are in the object store already. Only a busy machine shows that.
func withCase(t *testing.T, r *rig, run func(*testCase)) {
	t.Helper()
	for range 3 {
		c := newCase(t, r)
		c.repeatable = true
		if c.completes(run) {
			return
		}
		say(t, "%v: another case instead of %s", errTakenUpTwice, c.namespace)
		c.Close()
	}
	require.NoError(t, errTakenUpTwice, "in three cases")
}

func (c *testCase) completes(run func(*testCase)) (completed bool) {
	defer func() {
		switch reason := recover(); reason {
		case nil, errTakenUpTwice:
		default:
			panic(reason)
		}
	}()
	run(c)
	return true
}

// takenUpTwice looks at Velero's own Backups: the object of one may show the first end when Velero has taken it up again.
func (c *testCase) takenUpTwice() bool {
	backups, err := c.veleroBackups()
	return err == nil && slices.ContainsFunc(backups, func(made velerov1.Backup) bool {
		return env.TakenUpTwice(&oadpv1alpha1.VeleroBackup{Status: &made.Status})
	})
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
	// repeatable says that another case can take its place: see withCase.
	repeatable bool
	nab        *oadpv1alpha1.NonAdminBackup
	location   *oadpv1alpha1.NonAdminBackupStorageLocation
	nar        *oadpv1alpha1.NonAdminRestore
	nadr       *oadpv1alpha1.NonAdminDownloadRequest
	plan       *holdfastv1alpha1.BackupPlan
	planned    string    // its status before its deletion
	published  time.Time // when the restore's results in the bucket were written, as seen after the first publication
	// forgotten: Temporal has lost its database. An object that was settled just then needs no workflow any more.
	forgotten bool
}

func newCase(t *testing.T, r *rig) *testCase {
	t.Helper()
	c := &testCase{rig: r, t: t, namespace: fmt.Sprintf("case-%08x", rand.Uint32())}
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
	var twice bool
	come := func() bool {
		twice = c.repeatable && c.takenUpTwice()
		return twice || ok()
	}
	if !assert.Eventually(c.t, come, patience, readEvery, "%s: %s", c.namespace, want) {
		c.explain()
		c.t.FailNow()
	}
	if twice {
		panic(errTakenUpTwice)
	}
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
}

// explain logs what there is of the case.
func (c *testCase) explain() {
	c.t.Helper()
	e := c.effects()
	c.t.Logf("%s\n%s\n%s\n%q\n%q\n%q", e.Object, e.Location, e.Restore, e.Backups, e.Requests, e.Writes)
	for _, process := range []*env.Process{c.Worker, c.Watcher} {
		c.t.Logf("%s runs: %t, its log ends so:\n%s", process.Name(), process.Running(), process.LogTail(20))
	}
	if c.plan != nil {
		c.t.Logf("plan: %s\nits Schedule: %s", c.planned, c.scheduleOf())
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
	require.EventuallyWithT(c.t, func(collect *assert.CollectT) {
		described, err := c.temporal.DescribeWorkflowExecution(context.Background(), id, "")
		var unknown *serviceerror.NotFound
		if c.forgotten && errors.As(err, &unknown) {
			return
		}
		if assert.NoError(collect, err) {
			assert.Equal(collect, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, described.WorkflowExecutionInfo.Status)
		}
	}, patience, readEvery, "workflow %s has not completed: its object is settled", id)
}
