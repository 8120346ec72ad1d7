package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/synchronization"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/test/env"
)

// forge writes a finished Velero Backup into the tenant's own bucket, as its owner may.
func forge(t *testing.T, account env.Account, folder, name string, change func(*velerov1.Backup)) {
	t.Helper()
	now := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	made := &velerov1.Backup{
		TypeMeta: metav1.TypeMeta{APIVersion: velerov1.SchemeGroupVersion.String(), Kind: "Backup"},
		ObjectMeta: owner.Backup.Meta(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: folder, Name: "forged"}},
			name, "velero", name),
		Spec: velerov1.BackupSpec{IncludedNamespaces: []string{"*"}, TTL: metav1.Duration{Duration: 24 * time.Hour}},
		Status: velerov1.BackupStatus{
			Version: 1, FormatVersion: "1.1.0", Phase: velerov1.BackupPhaseCompleted,
			StartTimestamp: &now, CompletionTimestamp: &now, Expiration: &metav1.Time{Time: time.Now().Add(24 * time.Hour)},
		},
	}
	change(made)
	content, err := json.Marshal(made)
	require.NoError(t, err)
	path := filepath.Join(account.Dir, folder, "backups", name)
	require.NoError(t, os.MkdirAll(path, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(path, "velero-backup.json"), content, 0o644))
}

// A tenant can write anything into its own bucket. It gets nothing by it outside its own namespace.
func TestNothingInABucketMakesBackupsForOthers(t *testing.T) {
	t.Parallel()
	victim := newTenant(t, "carol")
	treasure := victim.completed("treasure")
	x, account := newTenant(t, "bob"), newAccount(t)
	location := x.own(account)
	x.awaitAvailable(location)

	named := func(namespace, name string) func(*velerov1.Backup) {
		return func(made *velerov1.Backup) {
			made.Annotations[oadpv1alpha1.NabOriginNamespaceAnnotation] = namespace
			made.Annotations[oadpv1alpha1.NabOriginNameAnnotation] = name
		}
	}
	planted, lifted, climbing, own := "a-planted-"+uuid.NewString(), "b-lifted-"+uuid.NewString(), "c-climbing-"+uuid.NewString(),
		"d-own-"+uuid.NewString()
	forge(t, account, x.namespace, planted, named(victim.namespace, "planted"))
	forge(t, account, x.namespace, lifted, func(made *velerov1.Backup) {
		named(victim.namespace, "lifted")(made)
		made.Labels[oadpv1alpha1.NabOriginNACUUIDLabel] = treasure.Status.VeleroBackup.Name
	})
	forge(t, account, x.namespace, climbing, named(x.namespace, "../"+victim.namespace))
	forge(t, account, x.namespace, own, func(made *velerov1.Backup) {
		named(x.namespace, "own")(made)
		made.Labels["evil"], made.Annotations["evil"] = "label", "annotation"
		made.Annotations["holdfast.dev/nab-state"] = "made/" + string(made.UID)
	})
	forge(t, account, x.namespace, treasure.Status.VeleroBackup.Name, named(x.namespace, "stolen"))
	lookInto(t, nacuuid(location))
	for _, name := range []string{planted, lifted, climbing, own} {
		awaitBroughtBack(t, name) // Velero believes it
	}

	result := synchronized(t)
	assert.GreaterOrEqual(t, result.Untrusted, 1)
	for _, name := range []string{"planted", "lifted"} {
		assert.False(t, victim.there(name), "%s in the victim's namespace", name)
	}
	assert.False(t, x.there("stolen"))
	var list oadpv1alpha1.NonAdminBackupList
	require.NoError(t, admin.List(t.Context(), &list, client.InNamespace(x.namespace)))
	require.Len(t, list.Items, 1, "the one that says truly whose it is")
	made := list.Items[0]
	assert.Equal(t, "own", made.Name)
	assert.Equal(t, map[string]string{oadpv1alpha1.NabSyncLabel: own}, made.Labels)
	assert.Empty(t, made.Annotations)
	assert.Equal(t, []string{x.namespace}, made.Spec.BackupSpec.IncludedNamespaces)
	assert.Equal(t, "own", made.Spec.BackupSpec.StorageLocation)
	after := readAgain(t, treasure)
	assert.Equal(t, treasure.UID, after.UID)
	assert.Equal(t, treasure.Status.VeleroBackup.Name, after.Status.VeleroBackup.Name)
	assert.NotContains(t, veleroBackup(t, after.Status.VeleroBackup.Name).Annotations, "evil")
	x.remove(location)
}

// A Velero Backup that has gone may be forged under its old name, in another tenant's bucket and in the name of the object that it
// was made for. Nothing about that object believes it.
func TestAForgedBackupIsNotTakenForOneThatIsGone(t *testing.T) {
	t.Parallel()
	victim := newTenant(t, "carol")
	nab := victim.completed("treasure")
	name := nab.Status.VeleroBackup.Name
	veleroExpires(t, name)
	victim.awaitCondition(nab, oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.ReasonVeleroBackupNotFound)

	x, account := newTenant(t, "bob"), newAccount(t)
	location := x.own(account)
	x.awaitAvailable(location)
	forge(t, account, x.namespace, name, func(made *velerov1.Backup) {
		made.Annotations[oadpv1alpha1.NabOriginNamespaceAnnotation] = victim.namespace
		made.Annotations[oadpv1alpha1.NabOriginNameAnnotation] = nab.Name
		made.Status.Warnings = 4711
	})
	lookInto(t, nacuuid(location))
	awaitBroughtBack(t, name) // Velero believes it

	refused := victim.restore("from-treasure", nab.Name)
	victim.awaitRestoreRefused(refused, oadpv1alpha1.ReasonInvalidRestoreSpec)
	download := victim.request(velerov1.DownloadTargetKindBackupLog, nab.Name)
	victim.awaitRefusal(download, oadpv1alpha1.NonAdminConditionNonAdminBackupNotAvailable, "has no Velero Backup")
	victim.patch(nab, `{"spec":{"backupSpec":{"ttl":"25h"}}}`)
	after := victim.await(nab, "judged again", func(now *oadpv1alpha1.NonAdminBackup) bool {
		accepted := condition(now, oadpv1alpha1.NonAdminConditionAccepted)
		return now.Generation > nab.Generation && accepted != nil && accepted.ObservedGeneration == now.Generation
	})
	assert.Equal(t, metav1.ConditionFalse, condition(after, oadpv1alpha1.NonAdminConditionAccepted).Status)
	assert.Zero(t, after.Status.VeleroBackup.Status.Warnings, "it is not mirrored")
	synchronized(t)
	assert.Empty(t, veleroBackup(t, name).Annotations[synchronization.StateAnnotation], "nor marked")

	victim.removeRestore(refused)
	victim.drop(download)
	victim.patch(nab, `{"spec":{"deleteBackup":true}}`)
	victim.awaitGone(nab)
	assert.NotNil(t, veleroBackup(t, name), "nor deleted")
	assert.Empty(t, deleteRequests(t, name))
	x.remove(location)
}
