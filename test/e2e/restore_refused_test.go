package e2e_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

const (
	restrictedSpec = "NonAdminRestore nonAdminRestore.spec.restoreSpec."
	badBackup      = "NonAdminRestore spec.restoreSpec.backupName is "
)

// The texts are those that tenants know from the Non-Admin Controller; nothing is made of what is refused.
func TestWhichRestoresAreRefused(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "dave")
	nab := x.completed("nightly")
	failed := x.backUp("never-taken", into("nowhere"))
	x.awaitCondition(failed, oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.ReasonInvalidBackupSpec)
	tests := map[string]struct {
		backup string
		alter  func(*velerov1.RestoreSpec)
		want   string
	}{
		"included-namespaces": {
			backup: nab.Name, alter: func(spec *velerov1.RestoreSpec) { spec.IncludedNamespaces = []string{x.namespace} },
			want: restrictedSpec + "includedNamespaces is restricted",
		},
		"excluded-namespaces": {
			backup: nab.Name, alter: func(spec *velerov1.RestoreSpec) { spec.ExcludedNamespaces = []string{"other"} },
			want: restrictedSpec + "excludedNamespaces is restricted",
		},
		"namespace-mapping": {
			backup: nab.Name, alter: func(spec *velerov1.RestoreSpec) {
				spec.NamespaceMapping = map[string]string{x.namespace: "kube-system"}
			},
			want: restrictedSpec + "namespaceMapping is restricted",
		},
		"cluster-resources": {
			backup: nab.Name, alter: func(spec *velerov1.RestoreSpec) { spec.IncludeClusterResources = ptr.To(true) },
			want: restrictedSpec + "includeClusterResources is restricted, can only be set to false",
		},
		"schedule": {
			backup: nab.Name, alter: func(spec *velerov1.RestoreSpec) { spec.ScheduleName = "daily" },
			want: restrictedSpec + "scheduleName is restricted",
		},
		"no-name": {want: badBackup + "not set"},
		"no-such-backup": {
			backup: "missing", want: badBackup + `invalid: nonadminbackups.oadp.openshift.io "missing" not found`,
		},
		"a-path":         {backup: "../" + x.namespace, want: badBackup + "invalid: may not contain '/'"},
		"a-velero-name":  {backup: nab.Status.VeleroBackup.Name, want: badBackup + "invalid: nonadminbackups.oadp.openshift.io"},
		"a-failed-start": {backup: failed.Name, want: badBackup + "invalid: NonAdminBackup is not ready to be restored"},
	}
	for name, test := range tests {
		nar := x.restore(name, test.backup, func(spec *velerov1.RestoreSpec) {
			if test.alter != nil {
				test.alter(spec)
			}
		})
		assert.Contains(t, x.awaitRestoreRefused(nar, oadpv1alpha1.ReasonInvalidRestoreSpec), test.want, name)
		assert.Nil(t, veleroRestore(t, restoreID(nar)), name)
		recordRestore(t, nar)
	}

	nonsense := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": oadpv1alpha1.GroupVersion.String(), "kind": oadpv1alpha1.KindNonAdminRestore,
		"metadata": map[string]any{"namespace": x.namespace, "name": "banana"},
		"spec":     map[string]any{"restoreSpec": map[string]any{"backupName": nab.Name, "itemOperationTimeout": "banana"}},
	}}
	require.NoError(t, x.client.Create(t.Context(), nonsense))
	banana := &restoring{}
	require.NoError(t, x.client.Get(t.Context(), client.ObjectKeyFromObject(nonsense), banana))
	assert.Contains(t, x.awaitRestoreRefused(banana, oadpv1alpha1.ReasonInvalidRestoreSpec), `invalid duration "banana"`)
	x.removeRestore(banana)
}

// restoredEarly makes a restore and then its backup. With a backup that another has replaced, the restore has gone: both anew.
func (x *tenant) restoredEarly() (*oadpv1alpha1.NonAdminBackup, *restoring) {
	x.t.Helper()
	for i := range mostBackups {
		backup := fmt.Sprintf("nightly-%d", i)
		nar := x.restore(fmt.Sprintf("early-%d", i), backup)
		assert.Contains(x.t, x.awaitRestoreRefused(nar, oadpv1alpha1.ReasonInvalidRestoreSpec), "not found")
		nab := x.backUp(backup)
		first := nab.UID
		if nab = x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted); nab.UID == first {
			return nab, nar
		}
	}
	require.FailNow(x.t, "Velero has failed each backup for a reason of its own")
	return nil, nil
}

// A restore that was asked for too early goes on by itself.
func TestARestoreWaitsForItsBackup(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "erin")
	require.NoError(t, stack.Seed(t.Context(), x.namespace, 300))
	nab, nar := x.restoredEarly()
	require.NoError(t, x.client.Delete(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "object-001"},
	}))
	x.awaitFinalizedAs(nar, oadpv1alpha1.FinalizationPhaseCompleted)
	recordRestore(t, nar)

	// What goes with the backup's data: its restores, but not what they have restored.
	other := x.completed("other")
	kept := x.awaitFinalized(x.restore("of-the-other", other.Name))
	x.patch(nab, `{"spec":{"deleteBackup":true}}`)
	x.awaitRestoreGone(nar)
	x.awaitGone(nab)
	checkDeleted(t, nab.Status.VeleroBackup.Name, false)
	assert.Nil(t, veleroRestore(t, restoreID(nar)))
	assert.NotNil(t, veleroRestore(t, restoreID(kept)))
	assert.Contains(t, x.awaitRestoreRefused(x.restore("late", nab.Name), oadpv1alpha1.ReasonInvalidRestoreSpec), "not found")
	recordRestore(t, nar)
}

// The administrator's policy is everybody's, so this is not parallel.
func TestEnforcedRestoreSpec(t *testing.T) {
	x := newTenant(t, "frank")
	nab := x.completed("nightly")
	setNonAdminPolicy(t, "enforceRestoreSpec:\n  restorePVs: false\n  existingResourcePolicy: none\n")
	filled := x.awaitFinalized(x.restore("filled", nab.Name))
	made := veleroRestore(t, restoreID(filled))
	assert.Equal(t, ptr.To(false), made.Spec.RestorePVs, "the enforced field is filled in")
	assert.Equal(t, velerov1.PolicyTypeNone, made.Spec.ExistingResourcePolicy)

	refused := x.restore("refused", nab.Name, func(spec *velerov1.RestoreSpec) { spec.RestorePVs = ptr.To(true) })
	assert.Equal(t, "the administrator has restricted spec.restoreSpec.restorePVs field value to false",
		x.awaitRestoreRefused(refused, oadpv1alpha1.ReasonInvalidRestoreSpec))
	setNonAdminPolicy(t, "{}")
	x.awaitFinalized(refused)
	for _, nar := range []*restoring{filled, refused} {
		recordRestore(t, nar)
	}
}

// Nothing that anybody has written leads a restore to another tenant's backup or restore.
func TestForgedReferencesOfRestoresAreRefused(t *testing.T) {
	t.Parallel()
	target := newVictim(t)
	v := newTenant(t, "carol")
	theirs := v.awaitFinalized(v.restore("theirs", v.completed("own").Name))
	before := veleroRestore(t, restoreID(theirs))
	x := newTenant(t, "heidi")
	own := x.completed("honest")

	t.Run("by the name of another tenant's backup", func(*testing.T) {
		for name, backup := range map[string]string{"its-name": target.nab.Name, "its-velero-name": target.made.Name} {
			assert.Contains(t, x.awaitRestoreRefused(x.restore(name, backup), oadpv1alpha1.ReasonInvalidRestoreSpec), "not found")
		}
	})
	t.Run("by a backup that claims to be synced", func(t *testing.T) {
		nab := x.backUp("synced", func(nab *oadpv1alpha1.NonAdminBackup) {
			nab.Labels = map[string]string{oadpv1alpha1.NabSyncLabel: target.made.Name}
		})
		x.awaitCondition(nab, oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.ReasonVeleroBackupNotFound)
		said := x.awaitRestoreRefused(x.restore("of-the-synced", nab.Name), oadpv1alpha1.ReasonInvalidRestoreSpec)
		assert.Contains(t, said, "NonAdminBackup is not ready to be restored")
	})
	t.Run("by a backup whose status is forged", func(t *testing.T) {
		forged := fmt.Sprintf(`{"status":{"veleroBackup":{"nacuuid":%[1]q,"name":%[1]q}}}`, target.made.Name)
		require.NoError(t, admin.Status().Patch(t.Context(), own.DeepCopy(), mergePatch(forged)), "so the forger has got hold of one")
		nar := x.awaitFinalized(x.restore("of-the-forged", own.Name))
		assert.Equal(t, own.Status.VeleroBackup.Name, veleroRestore(t, restoreID(nar)).Spec.BackupName)
		recordRestore(t, nar)
	})
	for name, act := range map[string]func(t *testing.T, x *tenant, nar *restoring){
		"mirror": func(t *testing.T, x *tenant, nar *restoring) {
			t.Helper()
			require.NoError(t, x.client.Patch(t.Context(), nar.DeepCopy(), mergePatch(`{"metadata":{"labels":{"look":"here"}}}`)))
			x.awaitRestore(nar, "the status is corrected", func(now *restoring) bool {
				return now.Status.VeleroRestore.NACUUID == restoreID(nar) && restorePhase(now) == velerov1.RestorePhaseCompleted
			})
		},
		"delete": func(_ *testing.T, x *tenant, nar *restoring) { x.removeRestore(nar) },
	} {
		t.Run("by the status of a restore: "+name, func(t *testing.T) {
			x := newTenant(t, "heidi")
			nar := x.awaitFinalized(x.restore("forged", x.completed("honest").Name))
			labelled := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, oadpv1alpha1.NarOriginNACUUIDLabel, before.Name)
			require.NoError(t, x.client.Patch(t.Context(), nar.DeepCopy(), mergePatch(labelled)))
			forged := fmt.Sprintf(`{"status":{"veleroRestore":{"nacuuid":%[1]q,"name":%[1]q}}}`, before.Name)
			require.Error(t, x.client.Status().Patch(t.Context(), nar.DeepCopy(), mergePatch(forged)), "a tenant has no right to a status")
			require.NoError(t, admin.Status().Patch(t.Context(), nar.DeepCopy(), mergePatch(forged)))
			act(t, x, nar)
		})
	}
	now := veleroRestore(t, before.Name)
	require.NotNil(t, now, "the victim's Velero Restore is gone")
	assert.Equal(t, before.ResourceVersion, now.ResourceVersion, "the victim's Velero Restore was written")
	target.checkUntouched(t)
}

// A Velero Restore of the very name needed that somebody else has made is neither taken over nor deleted.
func TestAForeignVeleroRestoreOfTheNameNeeded(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "grace")
	nab := x.completed("nightly")
	nar := x.restore("wanted", "missing")
	x.awaitRestoreRefused(nar, oadpv1alpha1.ReasonInvalidRestoreSpec)
	foreign := &velerov1.Restore{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: restoreID(nar)},
		Spec:       velerov1.RestoreSpec{BackupName: "nothing"},
	}
	require.NoError(t, admin.Create(t.Context(), foreign))
	t.Cleanup(func() { deleteAtEnd(t, foreign) })
	require.NoError(t, x.client.Patch(t.Context(), nar.DeepCopy(), mergePatch(fmt.Sprintf(`{"spec":{"restoreSpec":{"backupName":%q}}}`, nab.Name))))
	assert.Contains(t, x.awaitRestoreRefused(nar, "VeleroRestoreNotOwned"), "was not made for this NonAdminRestore")
	require.NoError(t, x.client.Delete(t.Context(), nar.DeepCopy()))
	x.awaitRestoreGone(nar)
	require.True(t, exists(t, foreign))
	recordRestore(t, nar)
}
