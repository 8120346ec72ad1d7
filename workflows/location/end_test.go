package location_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/location/locationtest"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

// The tenant took the finalizer off: nothing of what was made may outlive the object, its keys least of all.
func TestNothingOutlivesALocationWithoutFinalizer(t *testing.T) {
	vanish := func(w *fake.World) {
		object := w.Location(workflowtest.Backup)
		object.Finalizers = nil
		_ = w.Client.Update(context.Background(), object)
		w.Remove(object)
	}
	t.Run("gone", func(t *testing.T) {
		inIt, elsewhere, unknown := fake.NAB("in-it"), fake.NAB("elsewhere"), fake.NAB("unknown")
		for nab, spec := range map[*oadpv1alpha1.NonAdminBackup]*velerov1.BackupSpec{
			inIt: {StorageLocation: fake.LocationName(workflowtest.Backup)}, elsewhere: {StorageLocation: "default"}, unknown: nil,
		} {
			nab.Finalizers = []string{oadpv1alpha1.NabFinalizer}
			nab.Status.VeleroBackup = &oadpv1alpha1.VeleroBackup{Spec: spec}
			nab.Spec.BackupSpec.StorageLocation = workflowtest.Backup // another location may have that name now
		}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fake.Namespace}}
		world := locationtest.Approved(t, inIt, elsewhere, unknown, namespace)
		vanish(world)
		locationtest.Settle(t, world)
		assert.False(t, world.Read("in-it").DeletionTimestamp.IsZero(), "it is told to go")
		assert.True(t, world.Read("elsewhere").DeletionTimestamp.IsZero())
		assert.True(t, world.Read("unknown").DeletionTimestamp.IsZero())
		assert.Nil(t, world.VeleroLocation(workflowtest.Backup))
		assert.Nil(t, world.Copy(workflowtest.Backup))
		assert.Nil(t, world.ApprovalRequest(workflowtest.Backup))
	})
	t.Run("recreated, with what was made taken over", func(t *testing.T) {
		world := locationtest.Approved(t)
		vanish(world)
		successor := fake.NaBSL(workflowtest.Backup)
		successor.UID = "uid-of-the-next"
		successor.Status.VeleroBackupStorageLocation = &oadpv1alpha1.VeleroBackupStorageLocation{NACUUID: fake.LocationName(workflowtest.Backup)}
		require.NoError(t, world.Client.Create(t.Context(), successor))
		locationtest.Settle(t, world)
		assert.NotNil(t, world.VeleroLocation(workflowtest.Backup))
		assert.NotNil(t, world.Copy(workflowtest.Backup))
	})
}

// Somebody's finalizer on what was made holds the location: it waits ever longer, says who must act, and goes on by itself.
func TestALocationWaitsForWhatOthersHold(t *testing.T) {
	world := locationtest.Place(t, false)
	locationtest.Settle(t, world)
	made := world.VeleroLocation(workflowtest.Backup)
	made.Finalizers = []string{"example.com/hold"}
	require.NoError(t, world.Client.Update(t.Context(), made))
	locationtest.RemoveLocation(world)
	let := func(s *workflowtest.Scenario) {
		s.RegisterDelayedCallback(func() {
			state, err := s.QueryWorkflow(contract.QueryState)
			require.NoError(t, err)
			var now contract.State[contract.LocationView]
			require.NoError(t, state.Get(&now))
			assert.Contains(t, now.View.Held, "BackupStorageLocation "+fake.OADPNamespace+"/"+fake.LocationName(workflowtest.Backup))
			assert.Contains(t, now.View.Held, "example.com/hold")
			held := world.VeleroLocation(workflowtest.Backup)
			held.Finalizers = nil
			require.NoError(t, world.Client.Update(t.Context(), held))
		}, 5*time.Minute)
	}
	require.NoError(t, locationtest.ServeLocation(world, let), "it takes no more than maxSteps, as it would at one look a second")
	assert.Nil(t, world.Location(workflowtest.Backup))
}

func TestTheEndOfALocation(t *testing.T) {
	inIt, elsewhere, foreign := fake.NAB("in-it"), fake.NAB("elsewhere"), fake.NAB("of-another")
	foreign.Namespace = "crew"
	for nab, at := range map[*oadpv1alpha1.NonAdminBackup]string{
		inIt: fake.LocationName(workflowtest.Backup), elsewhere: "default", foreign: fake.LocationName(workflowtest.Backup),
	} {
		nab.Finalizers = []string{oadpv1alpha1.NabFinalizer}
		nab.Status.VeleroBackup = &oadpv1alpha1.VeleroBackup{Spec: &velerov1.BackupSpec{StorageLocation: at}}
		nab.Spec.BackupSpec.StorageLocation = workflowtest.Backup // what it names is not where it lies
	}
	named := fake.NAB("not-made-yet")
	named.Spec.BackupSpec.StorageLocation = workflowtest.Backup
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fake.Namespace, Finalizers: []string{"kubernetes"}}}
	for title, terminating := range map[string]bool{"by itself": false, "with its namespace": true} {
		t.Run(title, func(t *testing.T) {
			world := locationtest.Approved(t, inIt.DeepCopy(), elsewhere.DeepCopy(), foreign.DeepCopy(), named.DeepCopy(), namespace.DeepCopy())
			if terminating {
				workflowtest.RemoveNamespace(world)
			}
			locationtest.RemoveLocation(world)
			writes := len(world.Writes())
			locationtest.Settle(t, world)
			assert.Nil(t, world.Location(workflowtest.Backup))
			want := []string{
				"patch status NonAdminBackupStorageLocation", "delete NonAdminBackupStorageLocationApprovalRequest", "delete Secret",
				"delete BackupStorageLocation", "delete NonAdminBackup", "patch NonAdminBackupStorageLocation",
			}
			if terminating {
				want = append(want[:4], want[5:]...)
			}
			assert.Equal(t, want, world.Writes()[writes:], "in the order that docs/tenants.md states")
			assert.Equal(t, terminating, world.Read("in-it").DeletionTimestamp.IsZero())
			assert.True(t, world.Read("elsewhere").DeletionTimestamp.IsZero())
			assert.True(t, world.Read("not-made-yet").DeletionTimestamp.IsZero())
			other := &oadpv1alpha1.NonAdminBackup{}
			require.NoError(t, world.Client.Get(t.Context(), client.ObjectKeyFromObject(foreign), other))
			assert.True(t, other.DeletionTimestamp.IsZero())
		})
	}
}
