package backup_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/quota"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

// A workflow does not stay open for a place: the watcher starts it again when there is one.
func TestABackupThatAQuotaHoldsBackEndsItsWorkflowAndIsMadeByTheNext(t *testing.T) {
	other := fake.NAB("other")
	other.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
	later := fake.NAB(workflowtest.Backup)
	later.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Minute))
	s := workflowtest.NewScenario(t, other, later)
	s.World.Policy.Quotas = []policy.Quota{{NamespaceSelector: &metav1.LabelSelector{}, Limits: quota.Limits{MaxActive: 1}}}
	s.After(time.Second, func(*fake.World) { assert.Fail(t, "it is still open") })
	runBackup(t, s)
	nab := s.World.Read(workflowtest.Backup)
	assert.Equal(t, oadpv1alpha1.NonAdminPhaseBackingOff, nab.Status.Phase, "the older one is about to begin")
	assert.Empty(t, nab.Finalizers)

	world := s.World
	next := func(name string, events ...func(*fake.World)) {
		s := workflowtest.NewScenario(t)
		s.World = world
		world.Backups.Register(workflowtest.Reregistration{Scenario: s})
		for i, event := range events {
			s.After(time.Duration(i+1)*time.Second, event)
		}
		s.ExecuteWorkflow(contract.KindBackup.Workflow, contract.ObjectInput{Cluster: fake.Cluster, Ref: fake.Ref(name)})
		require.NoError(t, s.GetWorkflowError())
	}
	next("other", func(w *fake.World) { w.SetVelero(fake.VeleroName("other"), "Completed") })
	next(workflowtest.Backup, workflowtest.Velero("Completed"))
	nab = world.Read(workflowtest.Backup)
	assert.Equal(t, oadpv1alpha1.NonAdminPhaseCreated, nab.Status.Phase)
	assert.Equal(t, "BackupAccepted", nab.Status.Conditions[0].Reason)
}
