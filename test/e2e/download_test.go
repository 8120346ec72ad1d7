package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// A URL of every kind of file that there is, fetched by nobody in particular: what is in it is what Velero wrote.
func TestEveryFileOfABackupAndItsRestoreCanBeDownloaded(t *testing.T) {
	t.Parallel()
	x := newKeeper(t, "alice")
	nar := x.awaitFinalized(x.restore("back", x.nab.Name))
	type file struct {
		kind velerov1.DownloadTargetKind
		of   string
		// holds is in the unpacked file; a file without is not written for such a backup, and its URL finds nothing.
		holds string
	}
	velero, restored := x.nab.Status.VeleroBackup.Name, nar.Status.VeleroRestore.Name
	files := []file{
		{velerov1.DownloadTargetKindBackupLog, x.nab.Name, "backup=openshift-adp/" + velero},
		{velerov1.DownloadTargetKindBackupContents, x.nab.Name, "metadata/version"},
		{velerov1.DownloadTargetKindBackupResourceList, x.nab.Name, x.namespace + "/"},
		{velerov1.DownloadTargetKindBackupResults, x.nab.Name, "{"},
		{velerov1.DownloadTargetKindBackupVolumeSnapshots, x.nab.Name, "null"},
		{velerov1.DownloadTargetKindBackupVolumeInfos, x.nab.Name, "[]"},
		{velerov1.DownloadTargetKindBackupItemOperations, x.nab.Name, ""},
		{velerov1.DownloadTargetKindCSIBackupVolumeSnapshots, x.nab.Name, ""},
		{velerov1.DownloadTargetKindCSIBackupVolumeSnapshotContents, x.nab.Name, ""},
		{velerov1.DownloadTargetKindRestoreLog, nar.Name, "restore=openshift-adp/" + restored},
		{velerov1.DownloadTargetKindRestoreResults, nar.Name, "{"},
		{velerov1.DownloadTargetKindRestoreResourceList, nar.Name, "ConfigMap"},
		{velerov1.DownloadTargetKindRestoreItemOperations, nar.Name, ""},
		{velerov1.DownloadTargetKindRestoreVolumeInfo, nar.Name, "[]"},
	}
	require.Len(t, files, 14, "every kind that the CRD knows")
	asked := make([]*nadr, len(files))
	for i, file := range files {
		asked[i] = x.request(file.kind, file.of)
	}
	for i, file := range files {
		signed := x.awaitURL(asked[i])
		assert.Equal(t, oadpv1alpha1.NonAdminPhaseCreated, signed.Status.Phase)
		expires := signed.Status.VeleroDownloadRequest.Status.Expiration
		const valid = 10 * time.Minute
		assert.WithinRange(t, expires.Time, signed.CreationTimestamp.Add(valid), time.Now().Add(valid))
		checkMadeFor(t, signed)
		code, content := fetch(t, signed)
		switch {
		case file.holds == "":
			assert.Contains(t, []int{http.StatusOK, http.StatusNotFound}, code, file.kind)
		case assert.Equal(t, http.StatusOK, code, file.kind):
			assert.Contains(t, unpack(t, content), file.holds, file.kind)
		}
	}
	for _, request := range asked {
		require.NoError(t, x.client.Delete(t.Context(), request.DeepCopy()))
	}
	for _, request := range asked {
		x.awaitOver(request)
	}
}

// checkMadeFor looks at the Velero DownloadRequest made for a request.
func checkMadeFor(t *testing.T, request *nadr) {
	t.Helper()
	velero := &velerov1.DownloadRequest{}
	require.True(t, made(t, "nadr-"+string(request.UID), velero))
	assert.Equal(t, request.Namespace, velero.Annotations[oadpv1alpha1.NadrOriginNamespaceAnnotation])
	assert.Equal(t, request.Name, velero.Annotations[oadpv1alpha1.NadrOriginNameAnnotation])
	assert.Equal(t, "True", velero.Labels[oadpv1alpha1.OadpLabel])
	assert.Equal(t, oadpv1alpha1.ManagedByLabelValue, velero.Labels[oadpv1alpha1.ManagedByLabel])
	assert.NotEmpty(t, velero.Labels[oadpv1alpha1.NadrOriginNACUUIDLabel])
	// Velero may take a request up twice, by its cache, and sign a second URL for the same file, which is as good.
	assert.Equal(t, unsigned(t, velero.Status.DownloadURL), unsigned(t, request.Status.VeleroDownloadRequest.Status.DownloadURL))
}

// unsigned is a URL without its signature.
func unsigned(t *testing.T, signed string) string {
	t.Helper()
	unsigned, _, found := strings.Cut(signed, "?")
	require.True(t, found, signed)
	return unsigned
}

// What may not be had is said at once, and Velero is not asked.
func TestADownloadThatTheTenantMayNotHaveIsRefused(t *testing.T) {
	t.Parallel()
	victim := newKeeper(t, "carol")
	victims := victim.awaitURL(victim.request(velerov1.DownloadTargetKindBackupContents, victim.nab.Name))
	made := victim.nab.Status.VeleroBackup.Name
	x := newKeeper(t, "dave")
	inDefault := x.completed("in-default")
	forged := x.backUp("forged", func(nab *oadpv1alpha1.NonAdminBackup) {
		nab.Labels = map[string]string{oadpv1alpha1.NabSyncLabel: made}
	})
	x.awaitCondition(forged, oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.ReasonVeleroBackupNotFound)
	// So that it seems to lie in the tenant's own location; what has been made stays where it is.
	x.patch(inDefault, `{"spec":{"backupSpec":{"storageLocation":"own"}}}`)

	const missing, noRestore = oadpv1alpha1.NonAdminConditionNonAdminBackupNotAvailable,
		oadpv1alpha1.NonAdminConditionNonAdminRestoreNotAvailable
	tests := map[string]struct {
		kind velerov1.DownloadTargetKind
		of   string
		want oadpv1alpha1.NonAdminCondition
		text string
	}{
		"nothing":                        {velerov1.DownloadTargetKindBackupLog, "nothing", missing, `there is no NonAdminBackup "nothing"`},
		"no possible name":               {velerov1.DownloadTargetKindBackupLog, victim.namespace + "/" + victim.nab.Name, missing, "there is no"},
		"another tenant's Velero Backup": {velerov1.DownloadTargetKindBackupContents, made, missing, "there is no"},
		"its own Velero Backup by name":  {velerov1.DownloadTargetKindBackupContents, x.nab.Status.VeleroBackup.Name, missing, "there is no"},
		"by a forged label":              {velerov1.DownloadTargetKindBackupContents, "forged", missing, "has no Velero Backup"},
		"in the administrator's location": {
			velerov1.DownloadTargetKindBackupLog, inDefault.Name,
			oadpv1alpha1.NonAdminConditionNonAdminBackupStorageLocationNotUsed, oadpv1alpha1.MessageLocationNotUsed,
		},
		"a restore's log of a backup": {velerov1.DownloadTargetKindRestoreLog, x.nab.Name, noRestore, "there is no NonAdminRestore"},
	}
	asked := map[string]*nadr{}
	for title, test := range tests {
		asked[title] = x.request(test.kind, test.of)
	}
	for title, test := range tests {
		x.awaitRefusal(asked[title], test.want, test.text)
		assert.Empty(t, downloadsOf(t, asked[title]), title)
	}
	for _, request := range asked {
		x.drop(request)
	}
	err := x.client.Get(t.Context(), client.ObjectKeyFromObject(victims), &nadr{})
	assert.True(t, apierrors.IsForbidden(err), "another tenant's URL: %v", err)
	x.refuseForgedNames(victim, victims)
}

// refuseForgedNames has the tenant get hold of a status that names what is another tenant's.
func (x *keeper) refuseForgedNames(victim *keeper, victims *nadr) {
	t := x.t
	t.Helper()
	made, location := victim.nab.Status.VeleroBackup.Name, victim.nab.Status.VeleroBackup.Spec.StorageLocation
	forged := x.backUp("forged-status", withSpec(func(spec *velerov1.BackupSpec) { spec.ExcludedNamespaces = []string{"x"} }))
	x.awaitCondition(forged, oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.ReasonInvalidBackupSpec)
	merge := fmt.Sprintf(`{"status":{"phase":"Created","veleroBackup":{"nacuuid":%q,"name":%q,"spec":{"storageLocation":%q}}}}`,
		made, made, location)
	require.NoError(t, admin.Status().Patch(t.Context(), forged.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(merge))))
	request := x.request(velerov1.DownloadTargetKindBackupContents, forged.Name)
	x.awaitRefusal(request, oadpv1alpha1.NonAdminConditionNonAdminBackupNotAvailable, "has no Velero Backup")
	assert.Empty(t, downloadsOf(t, request))

	own := x.awaitURL(x.request(velerov1.DownloadTargetKindBackupContents, x.nab.Name))
	foreign := victims.Status.VeleroDownloadRequest.Status.DownloadURL
	merge = fmt.Sprintf(`{"status":{"velero":{"status":{"downloadURL":%q}}}}`, foreign)
	err := x.client.Status().Patch(t.Context(), own.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(merge)))
	assert.True(t, apierrors.IsForbidden(err), "a tenant has no right to a status: %v", err)
	x.drop(request)
	x.drop(own)
	victim.drop(victims)
}

// downloadsOf returns the Velero DownloadRequest made for a request, if there is one.
func downloadsOf(t *testing.T, request *nadr) []string {
	t.Helper()
	if name := "nadr-" + string(request.UID); made(t, name, &velerov1.DownloadRequest{}) {
		return []string{name}
	}
	return nil
}

// A request made too early is refused, so that nobody waits in vain, and yet answered when the file is there.
func TestADownloadThatComesTooEarlyIsAnsweredLater(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "erin")
	request := x.request(velerov1.DownloadTargetKindBackupLog, "nightly")
	x.awaitRefusal(request, oadpv1alpha1.NonAdminConditionNonAdminBackupNotAvailable, "there is no NonAdminBackup")
	nab := x.backUp("nightly", into("own"))
	x.awaitRefusal(request, oadpv1alpha1.NonAdminConditionNonAdminBackupNotAvailable, "has no Velero Backup")
	location := x.own(newAccount(t))
	x.awaitAvailable(location)
	x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted)
	signed := x.awaitURL(request)
	code, content := fetch(t, signed)
	require.Equal(t, http.StatusOK, code)
	assert.Contains(t, unpack(t, content), x.namespace)

	// The same request, for another file: the URL of the first goes.
	merge := `{"spec":{"target":{"kind":"BackupResults"}}}`
	require.NoError(t, x.client.Patch(t.Context(), signed.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(merge))))
	other := x.awaitURL(request)
	checkMadeFor(t, other)
	_, content = fetch(t, other)
	assert.Contains(t, unpack(t, content), "{")
	assert.NotEqual(t, signed.Status.VeleroDownloadRequest.Status.DownloadURL, other.Status.VeleroDownloadRequest.Status.DownloadURL)
	x.drop(request)
}

// When its time is over a request goes, and with it what was made for it.
func TestAnExpiredDownloadGoes(t *testing.T) {
	t.Parallel()
	x := newKeeper(t, "frank")
	answered := x.awaitURL(x.request(velerov1.DownloadTargetKindBackupLog, x.nab.Name))
	past := metav1.NewTime(time.Now().Add(-time.Second)).UTC().Format(time.RFC3339)
	merge := fmt.Sprintf(`{"status":{"velero":{"status":{"expiration":%q}}}}`, past)
	require.NoError(t, admin.Status().Patch(t.Context(), answered.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(merge))))
	x.awaitOver(answered)
}
