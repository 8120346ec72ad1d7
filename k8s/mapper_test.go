package k8s_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	velerov2alpha1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v2alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

func TestKindsAreMappedWithoutTheAPIServer(t *testing.T) {
	mapper := k8s.RESTMapper(k8s.Scheme())
	oadp := oadpv1alpha1.GroupVersion
	for kind, want := range map[schema.GroupVersionKind]string{
		oadp.WithKind("NonAdminBackup"):                               "nonadminbackups",
		oadp.WithKind("NonAdminRestore"):                              "nonadminrestores",
		oadp.WithKind("NonAdminBackupStorageLocation"):                "nonadminbackupstoragelocations",
		oadp.WithKind("NonAdminBackupStorageLocationApprovalRequest"): "nonadminbackupstoragelocationapprovalrequests",
		oadp.WithKind("NonAdminDownloadRequest"):                      "nonadmindownloadrequests",
		velerov1.SchemeGroupVersion.WithKind("Backup"):                "backups",
		velerov1.SchemeGroupVersion.WithKind("DeleteBackupRequest"):   "deletebackuprequests",
		velerov1.SchemeGroupVersion.WithKind("DownloadRequest"):       "downloadrequests",
		velerov1.SchemeGroupVersion.WithKind("BackupStorageLocation"): "backupstoragelocations",
		velerov1.SchemeGroupVersion.WithKind("PodVolumeBackup"):       "podvolumebackups",
		velerov2alpha1.SchemeGroupVersion.WithKind("DataUpload"):      "datauploads",
		corev1.SchemeGroupVersion.WithKind("ConfigMap"):               "configmaps",
		appsv1.SchemeGroupVersion.WithKind("Deployment"):              "deployments",
	} {
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		require.NoError(t, err, kind)
		_, err = mapper.RESTMapping(schema.GroupKind{Group: kind.Group, Kind: kind.Kind + "List"}, kind.Version)
		require.NoError(t, err, "a cache is asked for lists, too")
		assert.Equal(t, want, mapping.Resource.Resource)
		assert.Equal(t, meta.RESTScopeNameNamespace, mapping.Scope.Name())
	}
	for _, kind := range []schema.GroupKind{
		{Kind: "Namespace"}, {Kind: "PersistentVolume"}, {Group: "storage.k8s.io", Kind: "StorageClass"}, {Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
	} {
		mapping, err := mapper.RESTMapping(kind, "v1")
		require.NoError(t, err)
		assert.Equal(t, meta.RESTScopeNameRoot, mapping.Scope.Name(), kind)
	}
}
