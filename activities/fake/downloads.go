package fake

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/download"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/velero"
)

// DownloadTime is when the requests of NADR are created.
var DownloadTime = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// StoreLocation is the Velero BackupStorageLocation of the tenant's own store.
const StoreLocation = "team-store-1"

// Downloads returns the activities of download requests over this world. now is the time.
func (w *World) Downloads(now func() time.Time) *download.Activities {
	return &download.Activities{
		Cluster: w.cluster,
		Gatherer: &download.Gatherer{
			Reader: w.Client, ClusterID: Cluster, OADPNamespace: OADPNamespace, Now: now,
		},
	}
}

// NADR returns a NonAdminDownloadRequest that is not in the world yet.
func NADR(name string, kind velerov1.DownloadTargetKind, of string) *oadpv1alpha1.NonAdminDownloadRequest {
	return &oadpv1alpha1.NonAdminDownloadRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: name, UID: types.UID("uid-" + name), Generation: 1,
			CreationTimestamp: metav1.NewTime(DownloadTime),
		},
		Spec: oadpv1alpha1.NonAdminDownloadRequestSpec{Target: velerov1.DownloadTarget{Kind: kind, Name: of}},
	}
}

// RestoredFrom returns a NonAdminRestore whose Velero Restore is complete, made from the backup that Taken returns, and that
// Velero Restore.
func RestoredFrom(name, backupName string) []client.Object {
	nar := NAR(name, backupName)
	made := velero.NewRestore(nar, VeleroName(name), OADPNamespace, velerov1.RestoreSpec{BackupName: VeleroName(backupName)})
	made.Status.Phase = velerov1.RestorePhaseCompleted
	return []client.Object{nar, made}
}

// ReadDownload returns the NonAdminDownloadRequest of that name, nil if there is none.
func (w *World) ReadDownload(name string) *oadpv1alpha1.NonAdminDownloadRequest {
	return got(w, types.NamespacedName{Namespace: Namespace, Name: name}, &oadpv1alpha1.NonAdminDownloadRequest{})
}

// VeleroDownload returns the Velero DownloadRequest made for NADR(name), nil if there is none.
func (w *World) VeleroDownload(name string) *velerov1.DownloadRequest {
	key := types.NamespacedName{Namespace: OADPNamespace, Name: download.RequestName("uid-" + name)}
	return got(w, key, &velerov1.DownloadRequest{})
}

// SignDownload answers the Velero DownloadRequest made for NADR(name), as Velero does.
func (w *World) SignDownload(name, url string, expires time.Time) {
	made := w.VeleroDownload(name)
	require.NotNil(w.t, made, "no Velero DownloadRequest for %s", name)
	made.Status = velerov1.DownloadRequestStatus{
		Phase: velerov1.DownloadRequestPhaseProcessed, DownloadURL: url, Expiration: &metav1.Time{Time: expires},
	}
	require.NoError(w.t, w.Client.Update(context.Background(), made))
}

// RetargetDownload changes what a download request asks for, as its tenant does: the generation grows.
func (w *World) RetargetDownload(name string, kind velerov1.DownloadTargetKind, of string) {
	nadr := w.ReadDownload(name)
	nadr.Spec.Target = velerov1.DownloadTarget{Kind: kind, Name: of}
	nadr.Generation++
	require.NoError(w.t, w.Client.Update(context.Background(), nadr))
}
