package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// The backups that lie in a location go with it, their data stay; the location does not wait for them.
func TestALocationIsDeleted(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "heidi")
	account := newAccount(t)
	location := x.own(account)
	x.awaitAvailable(location)
	inside, held := x.completedInto("inside", "own"), x.completedInto("held", "own")
	elsewhere, named := x.completed("elsewhere"), x.completed("named-since")
	x.patch(named, `{"spec":{"backupSpec":{"storageLocation":"own"}}}`) // its backup does not lie there
	const hold = "example.com/hold"
	x.patch(held, `{"metadata":{"finalizers":["`+hold+`","`+oadpv1alpha1.NabFinalizer+`"]}}`)

	require.NoError(t, x.client.Delete(t.Context(), location.DeepCopy()))
	x.awaitRemoved(location)
	x.awaitGone(inside)
	leaving := x.await(held, "told to go", func(now *oadpv1alpha1.NonAdminBackup) bool {
		return !now.DeletionTimestamp.IsZero() && len(now.Finalizers) == 1
	})
	assert.Equal(t, []string{hold}, leaving.Finalizers, "Holdfast has let it go")
	x.patch(held, `{"metadata":{"finalizers":null}}`)
	x.awaitGone(held)
	for _, nab := range []*oadpv1alpha1.NonAdminBackup{inside, held} {
		assert.True(t, bucketHas(t, account, x.namespace, nab.Status.VeleroBackup.Name), "the data stay")
		awaitEnd(t, nab)
	}
	for _, nab := range []*oadpv1alpha1.NonAdminBackup{elsewhere, named} {
		now := readAgain(t, nab)
		assert.True(t, now.DeletionTimestamp.IsZero())
		assert.Equal(t, velerov1.BackupPhaseCompleted, veleroPhase(now))
		assert.NotZero(t, files(t, nab.Status.VeleroBackup.Name))
	}
	x.awaitLocationEvent(location, "Deleting", "their data stay in the bucket")

	// The same name again is another location.
	again := x.locate("own", locationSpec(account.Bucket, "credentials"))
	x.awaitAvailable(again)
	assert.NotEqual(t, nacuuid(location), nacuuid(again))
	x.remove(again)
}

// A namespace that is deleted must not hang on a location, nor on what lies there.
func TestANamespaceWithALocationIsDeleted(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "carol")
	account := newAccount(t)
	location := x.own(account)
	x.awaitAvailable(location)
	nab := x.completedInto("inside", "own")
	require.NoError(t, admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: x.namespace}}))
	awaitAllGone(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: x.namespace}})
	x.awaitRemoved(location)
	assert.True(t, bucketHas(t, account, x.namespace, nab.Status.VeleroBackup.Name), "the data stay")
	awaitEnd(t, nab)
}

// killedWhileDeletingLocation: the worker, and the watcher, end in the middle of a deletion. Approval is required. test/outage
// kills both, and Temporal, at each step of its scenario "delete a storage location with a backup in it".
func killedWhileDeletingLocation(t *testing.T) {
	sample.InLong(t, "TestALocationIsDeleted")
	moments := map[string]func(t *testing.T, location *nabsl){
		"when it is announced": func(t *testing.T, location *nabsl) {
			awaitObject(t, admin, location, patience, "Deleting", func(now *nabsl, there bool) bool {
				return !there || now.Status.Phase == oadpv1alpha1.NonAdminPhaseDeleting
			})
		},
		"when the Secret is gone": func(t *testing.T, location *nabsl) {
			awaitSuccess(t, func(ctx context.Context) (err error) {
				for range 50 { // often: the moment is short
					if err = gone(ctx, admin, &corev1.Secret{ObjectMeta: inOADP(nacuuid(location))}); err == nil {
						return nil
					}
					time.Sleep(2 * time.Millisecond)
				}
				return err
			})
		},
	}
	for _, name := range []string{env.Worker, env.Watcher} {
		for when, moment := range moments {
			t.Run(name+" "+when, func(t *testing.T) {
				x := newTenant(t, "erin")
				account := newAccount(t)
				location := x.own(account)
				x.awaitApproval(location, contract.ApprovalPending)
				editByHand(t, location, contract.DecisionApprove, "fine")
				x.awaitAvailable(location)
				nab := x.completedInto("inside", "own")
				require.NoError(t, x.client.Delete(t.Context(), location.DeepCopy()))
				killAndRestart(t, name, func() { moment(t, location) })
				x.awaitRemoved(location)
				x.awaitGone(nab)
				assert.True(t, bucketHas(t, account, x.namespace, nab.Status.VeleroBackup.Name), "the data stay")
			})
		}
	}
}

// goesWithoutFinalizer: the tenant takes the finalizer off while nobody can put it back. Approval is required.
func goesWithoutFinalizer(t *testing.T) {
	for _, away := range []string{env.Worker, env.Watcher} {
		t.Run("while the "+away+" is away", func(t *testing.T) {
			x := newTenant(t, "carol")
			account := newAccount(t)
			location := x.own(account)
			x.awaitApproval(location, contract.ApprovalPending)
			editByHand(t, location, contract.DecisionApprove, "fine")
			x.awaitApproval(location, contract.ApprovalApproved)
			x.awaitAvailable(location)
			nab := x.completedInto("inside", "own")

			// Else it might be the one to notice, and nobody would tell the approval before that looks for itself, in an hour.
			awaitCompleted(t, contract.WorkflowID(stack.ClusterID(), contract.KindLocation, locationRef(location)))
			process := stack.Component(away)
			require.NoError(t, process.Stop())
			t.Cleanup(func() {
				if !process.Running() {
					require.NoError(t, process.Restart(context.Background()))
				}
			})
			x.change(location, `{"metadata":{"finalizers":null}}`)
			require.NoError(t, x.client.Delete(t.Context(), location.DeepCopy()))
			require.True(t, apierrors.IsNotFound(admin.Get(t.Context(), client.ObjectKeyFromObject(location), &nabsl{})))
			madeFor(t, location)
			require.NoError(t, process.Restart(t.Context()))

			of := inOADP(nacuuid(location))
			awaitAllGone(t, &velerov1.BackupStorageLocation{ObjectMeta: of}, &corev1.Secret{ObjectMeta: of},
				&approvalRequest{ObjectMeta: of})
			x.awaitGone(nab)
			assert.True(t, bucketHas(t, account, x.namespace, nab.Status.VeleroBackup.Name), "the data stay")
			awaitEndOfLocation(t, location)
		})
	}
}
