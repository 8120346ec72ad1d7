package owner

import (
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
)

// Marks reports whether a label or annotation of that key says that a storage location was made for a tenant.
func Marks(key string) bool {
	return strings.HasPrefix(key, "openshift.io/oadp-nabsl-") || strings.HasPrefix(key, "holdfast.dev/nabsl-")
}

// Tenants reports whether anything of a Velero BackupStorageLocation says that it was made for a tenant, who can write anything
// into its bucket. Removing a label or an annotation does not make it an administrator's: the name of its credential still says
// that it was made for a tenant.
func Tenants(location *velerov1.BackupStorageLocation) bool {
	for _, marks := range []map[string]string{location.Labels, location.Annotations} {
		for key := range marks {
			if Marks(key) {
				return true
			}
		}
	}
	credential := location.Spec.Credential
	return credential != nil && credential.Name == location.Name && MayBeTenants(location.Name)
}

// MayHold reports whether a Backup in the location may belong to the namespace: the location is an administrator's, or was made
// for that namespace. Tenants cannot write where it says so.
func MayHold(location *velerov1.BackupStorageLocation, namespace string) bool {
	if !Tenants(location) {
		return true
	}
	key, named := Location.Hint(location)
	return named && key.Namespace == namespace
}
