package velero

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	velerov2alpha1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v2alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/watch/watched"
)

// Env is what the watchers of these kinds share.
type Env struct {
	*watched.Env
	Policy policy.Getter
	// PositionsChanged has the queue positions computed again.
	PositionsChanged func()
	// DefaultPlansChanged has default plans compared with the namespaces and the policy.
	DefaultPlansChanged func()
	Turns               Turns
	// TenantLabels: the metrics have the names of tenants' objects.
	TenantLabels bool
}

// Kinds are the kinds that Velero serves.
func Kinds(env *Env) []watched.Watcher {
	return []watched.Watcher{
		newBackups(env).Kind, newRestores(env).Kind, newDownloads(env).Kind, newLocations(env).Kind, newPlans(env).Kind,
	}
}

// Caches say which objects of these kinds are cached: only those of the OADP namespace.
func Caches(oadpNamespace string) map[client.Object]cache.ByObject {
	there := cache.ByObject{Namespaces: map[string]cache.Config{oadpNamespace: {}}}
	return map[client.Object]cache.ByObject{
		&velerov1.Backup{}:                                           there,
		&velerov1.Restore{}:                                          there,
		&velerov1.DeleteBackupRequest{}:                              there,
		&velerov1.BackupStorageLocation{}:                            there,
		&velerov1.PodVolumeBackup{}:                                  there,
		&velerov2alpha1.DataUpload{}:                                 there,
		&velerov1.PodVolumeRestore{}:                                 there,
		&velerov2alpha1.DataDownload{}:                               there,
		&oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest{}: there,
		&velerov1.DownloadRequest{}:                                  there,
	}
}

var (
	namespaces        = watched.MetadataOf(corev1.SchemeGroupVersion.WithKind("Namespace"))
	secrets           = watched.MetadataOf(corev1.SchemeGroupVersion.WithKind("Secret"))
	podVolumeBackups  = watched.MetadataOf(velerov1.SchemeGroupVersion.WithKind("PodVolumeBackup"))
	dataUploads       = watched.MetadataOf(velerov2alpha1.SchemeGroupVersion.WithKind("DataUpload"))
	podVolumeRestores = watched.MetadataOf(velerov1.SchemeGroupVersion.WithKind("PodVolumeRestore"))
	dataDownloads     = watched.MetadataOf(velerov2alpha1.SchemeGroupVersion.WithKind("DataDownload"))
)

// awaitsCreation: the object's workflow is about to create its Velero object, or has just done so.
func awaitsCreation(object client.Object) bool {
	phase := phaseOf(object)
	return phase == "" || phase == string(oadpv1alpha1.NonAdminPhaseNew)
}

func backingOff(object client.Object) bool {
	return phaseOf(object) == string(oadpv1alpha1.NonAdminPhaseBackingOff)
}

// rejected: a change of the status by us, after which an object is judged once more: what its rejection depends on may have
// changed before the cache had the rejection.
func rejected(before, after client.Object) bool {
	return phaseOf(before) != phaseOf(after) && backingOff(after)
}

func phaseOf(object client.Object) string {
	switch object := object.(type) {
	case *oadpv1alpha1.NonAdminBackup:
		return string(object.Status.Phase)
	case *oadpv1alpha1.NonAdminRestore:
		return string(object.Status.Phase)
	case *oadpv1alpha1.NonAdminDownloadRequest:
		return string(object.Status.Phase)
	case *oadpv1alpha1.NonAdminBackupStorageLocation:
		return string(object.Status.Phase)
	case *velerov1.Backup:
		return string(object.Status.Phase)
	case *velerov1.Restore:
		return string(object.Status.Phase)
	}
	return ""
}
