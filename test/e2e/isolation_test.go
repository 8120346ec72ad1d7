package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// victim is another tenant's finished backup, and how it must look after every attack.
type victim struct {
	nab  *oadpv1alpha1.NonAdminBackup
	made *velerov1.Backup
	size int
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	nab := newTenant(t, "carol").completed("treasure")
	name := nab.Status.VeleroBackup.Name
	return &victim{nab: nab, made: veleroBackup(t, name), size: files(t, name)}
}

func (v *victim) checkUntouched(t *testing.T) {
	t.Helper()
	now := veleroBackup(t, v.made.Name)
	require.NotNil(t, now, "the victim's Velero Backup is gone")
	// Its resourceVersion is in it, and in its managedFields who wrote it, what and when.
	assert.Equal(t, v.made, now, "the victim's Velero Backup was written")
	assert.Equal(t, v.size, files(t, v.made.Name))
	assert.Empty(t, deleteRequests(t, v.made.Name))
}

// attacks are the ways in which a tenant asks for something to be done to the Backup that its object names.
var attacks = map[string]string{
	"mirror":       `{}`,
	"deleteBackup": `{"spec":{"deleteBackup":true}}`,
	"forceDelete":  `{"spec":{"forceDeleteBackup":true}}`,
	"plain delete": "",
}

func (x *tenant) attack(nab *oadpv1alpha1.NonAdminBackup, merge string) {
	x.t.Helper()
	if merge == "" {
		x.delete(nab)
		return
	}
	x.patch(nab, merge)
}

func TestForgedSyncLabelIsRefused(t *testing.T) {
	t.Parallel()
	target := newVictim(t)
	for name, merge := range attacks {
		t.Run(name, func(t *testing.T) {
			x := newTenant(t, "dave")
			nab := x.backUp("forged", func(nab *oadpv1alpha1.NonAdminBackup) {
				nab.Labels = map[string]string{oadpv1alpha1.NabSyncLabel: target.made.Name}
			})
			accepted := x.awaitCondition(nab, oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.ReasonVeleroBackupNotFound)
			assert.Contains(t, accepted.Message, "related Velero Backup to be synced from does not exist")
			seen := x.await(nab, "BackingOff", func(now *oadpv1alpha1.NonAdminBackup) bool {
				return now.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff
			})
			assert.Nil(t, seen.Status.VeleroBackup, "nothing of the victim is shown")
			x.attack(nab, merge)
			if name != "mirror" {
				x.awaitGone(nab)
			}
			target.checkUntouched(t)
		})
	}
}

func TestForgedStatusIsRefused(t *testing.T) {
	t.Parallel()
	target := newVictim(t)
	for name, merge := range attacks {
		t.Run(name, func(t *testing.T) {
			x := newTenant(t, "dave")
			nab := x.completed("honest")
			own := nab.Status.VeleroBackup.Name

			forged := fmt.Sprintf(`{"status":{"veleroBackup":{"nacuuid":%q,"name":%q}}}`, target.made.Name, target.made.Name)
			err := x.client.Status().Patch(t.Context(), nab.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(forged)))
			assert.True(t, apierrors.IsForbidden(err), "a tenant has no right to a status: %v", err)
			require.NoError(t, admin.Status().Patch(t.Context(), nab.DeepCopy(),
				client.RawPatch(types.MergePatchType, []byte(forged))), "so the forger has got hold of one")

			if name == "mirror" { // any event makes the workflow look
				merge = `{"metadata":{"labels":{"look":"here"}}}`
			}
			x.attack(nab, merge)
			switch name {
			case "mirror":
				x.await(nab, "the status is corrected", func(now *oadpv1alpha1.NonAdminBackup) bool {
					return now.Status.VeleroBackup.NACUUID == own && veleroPhase(now) == velerov1.BackupPhaseCompleted
				})
			case "plain delete":
				x.awaitCondition(nab, oadpv1alpha1.NonAdminConditionDeleting, oadpv1alpha1.ReasonDeletionPending)
			default:
				x.awaitGone(nab)
				assert.Nil(t, veleroBackup(t, own), "its own backup is deleted as asked")
			}
			target.checkUntouched(t)
		})
	}
}

// The rights that tenants get with their role end at their namespace.
func TestTenantsCannotReachVeleroObjects(t *testing.T) {
	t.Parallel()
	target := newVictim(t)
	x := newTenant(t, "dave")
	err := x.client.Patch(t.Context(), target.made.DeepCopy(), client.RawPatch(types.MergePatchType,
		[]byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, oadpv1alpha1.NabOriginNamespaceAnnotation, x.namespace))))
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.True(t, apierrors.IsForbidden(x.client.List(t.Context(), &velerov1.BackupList{})))
	err = x.client.Get(t.Context(), client.ObjectKeyFromObject(target.nab), &oadpv1alpha1.NonAdminBackup{})
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
	target.checkUntouched(t)
}

func TestForeignNamespacesInTheSpecAreRefused(t *testing.T) {
	t.Parallel()
	target := newVictim(t)
	x := newTenant(t, "dave")
	for name, alter := range map[string]func(*velerov1.BackupSpec){
		"included":  func(spec *velerov1.BackupSpec) { spec.IncludedNamespaces = []string{target.nab.Namespace} },
		"everybody": func(spec *velerov1.BackupSpec) { spec.IncludedNamespaces = []string{"*"} },
		"excluded":  func(spec *velerov1.BackupSpec) { spec.ExcludedNamespaces = []string{"other"} },
	} {
		t.Run(name, func(*testing.T) {
			nab := x.backUp(name, withSpec(alter))
			x.awaitCondition(nab, oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.ReasonInvalidBackupSpec)
		})
	}
	later := x.created("later") // what came before it was looked at before it
	found := veleroBackupsOf(t, x.namespace)
	require.Len(t, found, 1, "of nothing else a Velero Backup was made")
	assert.Equal(t, later.Status.VeleroBackup.Name, found[0].Name)
	target.checkUntouched(t)
}

// The API server takes a duration for any string. One tenant's nonsense must be answered on its own object and must not
// stop the watch of everybody's.
func TestUndecodableSpecHarmsNobody(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "heidi")
	nonsense := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": oadpv1alpha1.GroupVersion.String(), "kind": "NonAdminBackup",
		"metadata": map[string]any{"namespace": x.namespace, "name": "banana"},
		"spec":     map[string]any{"backupSpec": map[string]any{"ttl": "banana"}},
	}}
	require.NoError(t, x.client.Create(t.Context(), nonsense))
	banana := &oadpv1alpha1.NonAdminBackup{}
	require.NoError(t, x.client.Get(t.Context(), client.ObjectKeyFromObject(nonsense), banana))
	accepted := x.awaitCondition(banana, oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.ReasonInvalidBackupSpec)
	assert.Contains(t, accepted.Message, `invalid duration "banana"`)
	x.completed("beside-it")
	x.delete(banana)
	x.awaitGone(banana)
}

// A newer Velero has phases that we do not know: our CRD must take a status that repeats them.
func TestStatusTakesUnknownVeleroPhases(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "heidi")
	nab := x.completed("future")
	for _, phase := range []string{"Queued", "FromTheFuture"} {
		merge := fmt.Sprintf(`{"status":{"veleroBackup":{"status":{"phase":%q,"unheardOf":1}}}}`, phase)
		written := nab.DeepCopy()
		require.NoError(t, admin.Status().Patch(t.Context(), written, client.RawPatch(types.MergePatchType, []byte(merge))))
		assert.EqualValues(t, phase, veleroPhase(written))
	}
}

// An object may hold its spec several times over; one that would not fit is answered before anything is made of it.
func TestHugeSpecIsRefused(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "heidi")
	nab := x.backUp("huge", withSpec(func(spec *velerov1.BackupSpec) {
		spec.OrderedResources = map[string]string{"configmaps": strings.Repeat("x", 900_000)}
	}))
	accepted := x.awaitCondition(nab, oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.ReasonInvalidBackupSpec)
	assert.Contains(t, accepted.Message, "too large")
	x.patch(nab, `{"spec":{"forceDeleteBackup":true}}`)
	x.awaitGone(nab)
}
