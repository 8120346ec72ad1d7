package fake

import (
	"context"
	"slices"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/restore"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
	"holdfast.dev/holdfast/k8s/velero"
)

// AdminLocation is the Velero BackupStorageLocation of an administrator.
const AdminLocation = "default"

// veleroFinalizer keeps a Velero Restore until Velero has removed its files.
const veleroFinalizer = "restores.velero.io/external-resources-finalizer"

// Allowlist is what may come back from tenants' storage locations, whichever role the policy names.
type Allowlist struct {
	Resources []restorespec.Served
	Shadowed  []restorespec.Shadowed
	Problem   string
	// Err stands for an API server that cannot be asked.
	Err error
}

var _ restore.AllowlistSource = (*Allowlist)(nil)

// Allowlist implements restore.AllowlistSource.
func (a *Allowlist) Allowlist(_ context.Context, rules policy.RestoreFromTenantsLocations) (*restorespec.Allowlist, error) {
	return &restorespec.Allowlist{
		ClusterRole: rules.Role(), Resources: a.Resources, Shadowed: a.Shadowed, Problem: a.Problem,
	}, a.Err
}

// NAR returns a NonAdminRestore of a NonAdminBackup, which is not in the world yet.
func NAR(name, backupName string) *oadpv1alpha1.NonAdminRestore {
	return &oadpv1alpha1.NonAdminRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec: oadpv1alpha1.NonAdminRestoreSpec{
			RestoreSpec: &velerov1.RestoreSpec{BackupName: backupName},
		},
	}
}

// VeleroLocation returns an administrator's BackupStorageLocation, or, if tenant is not empty, the one made for that
// namespace's NonAdminBackupStorageLocation "store"; available.
func VeleroLocation(name, tenant string) *velerov1.BackupStorageLocation {
	location := &velerov1.BackupStorageLocation{ObjectMeta: metav1.ObjectMeta{Namespace: OADPNamespace, Name: name}}
	location.Status.Phase = velerov1.BackupStorageLocationPhaseAvailable
	if tenant != "" {
		store := NaBSL("store")
		store.Namespace = tenant
		location.ObjectMeta = owner.Location.Meta(store, name, OADPNamespace, name)
	}
	return location
}

// Taken returns a NonAdminBackup whose Velero Backup is complete, that Velero Backup, and the location called where that
// holds it; a tenant's, if tenant is not empty.
func Taken(name, where, tenant string) []client.Object {
	nab := NAB(name)
	made := velero.NewBackup(nab, VeleroName(name), OADPNamespace, velerov1.BackupSpec{StorageLocation: where})
	made.UID = types.UID("uid-velero-" + name)
	made.Status.Phase = velerov1.BackupPhaseCompleted
	verdict := check.Verdict{Accepted: true, Reason: "BackupAccepted", Message: "backup accepted"}
	lifecycle.ApplyVerdict(nab, verdict, made.Name, OADPNamespace)
	lifecycle.ApplyCreated(nab)
	lifecycle.ApplyBackup(nab, made.Name, made, OADPNamespace)
	nab.Finalizers = []string{oadpv1alpha1.NabFinalizer}
	return []client.Object{nab, made, VeleroLocation(where, tenant)}
}

// ReadRestore returns the NonAdminRestore of that name, nil if there is none.
func (w *World) ReadRestore(name string) *oadpv1alpha1.NonAdminRestore {
	return got(w, types.NamespacedName{Namespace: Namespace, Name: name}, &oadpv1alpha1.NonAdminRestore{})
}

// VeleroRestore returns the Velero Restore of that name, nil if there is none.
func (w *World) VeleroRestore(name string) *velerov1.Restore {
	return got(w, types.NamespacedName{Namespace: OADPNamespace, Name: name}, &velerov1.Restore{})
}

// Modifier returns the ConfigMap of that name in the OADP namespace, nil if there is none.
func (w *World) Modifier(name string) *corev1.ConfigMap {
	return got(w, types.NamespacedName{Namespace: OADPNamespace, Name: name}, &corev1.ConfigMap{})
}

// EditRestore changes the spec as a user does: the generation grows.
func (w *World) EditRestore(name string, edit func(*velerov1.RestoreSpec)) {
	nar := w.ReadRestore(name)
	edit(nar.Spec.RestoreSpec)
	nar.Generation++
	require.NoError(w.t, w.Client.Update(context.Background(), nar))
}

// SetRestore changes a Velero Restore's status as Velero does, which puts its finalizer on it before it begins.
func (w *World) SetRestore(name string, phase velerov1.RestorePhase) {
	made := w.VeleroRestore(name)
	require.NotNil(w.t, made, "no Velero Restore %s", name)
	now := metav1.Now()
	made.Status.Phase = phase
	if !slices.Contains(made.Finalizers, veleroFinalizer) {
		made.Finalizers = append(made.Finalizers, veleroFinalizer)
	}
	if phase != velerov1.RestorePhaseNew && phase != velerov1.RestorePhaseFailedValidation && made.Status.StartTimestamp == nil {
		made.Status.StartTimestamp = &now
	}
	if velero.Finished(phase) && phase != velerov1.RestorePhaseFailedValidation {
		made.Status.CompletionTimestamp = &now
	}
	require.NoError(w.t, w.Client.Update(context.Background(), made))
}

// RemoveRestoreFiles takes Velero's finalizer off a Velero Restore, as Velero does when it has removed its files.
func (w *World) RemoveRestoreFiles(name string) {
	made := w.VeleroRestore(name)
	require.NotNil(w.t, made, "no Velero Restore %s", name)
	made.Finalizers = nil
	require.NoError(w.t, w.Client.Update(context.Background(), made))
}
