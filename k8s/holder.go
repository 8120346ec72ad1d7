package k8s

import (
	"strings"

	"github.com/google/uuid"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
)

// TenantsLocation reports whether anything of a Velero BackupStorageLocation says that it was made for a tenant, who can write
// anything into its bucket. One from which somebody has taken a label or an annotation does not become an administrator's by
// that: what was made is named like its credential.
func TenantsLocation(made *velerov1.BackupStorageLocation) bool {
	const stem, ours = "openshift.io/oadp-nabsl-", "holdfast.dev/nabsl-"
	for _, marks := range []map[string]string{made.Labels, made.Annotations} {
		for key := range marks {
			if strings.HasPrefix(key, stem) || strings.HasPrefix(key, ours) {
				return true
			}
		}
	}
	return made.Spec.Credential != nil && made.Spec.Credential.Name == made.Name && MayBeTenants(made.Name)
}

// LocationHolds reports whether a Backup in the location may be one of the namespace's: it is an administrator's, or says that it
// was made for that namespace. Tenants cannot write where it says so.
func LocationHolds(made *velerov1.BackupStorageLocation, namespace string) bool {
	if !TenantsLocation(made) {
		return true
	}
	owner, named := LocationOrigin.Of(made)
	return named && owner.Namespace == namespace
}

// MayBeTenants reports whether a BackupStorageLocation of that name may have been made for a tenant: it ends as NACUUID ends.
// So the location of an ordinary backup need not be read.
func MayBeTenants(name string) bool {
	if len(name) < uuidLength {
		return false
	}
	_, err := uuid.Parse(name[len(name)-uuidLength:])
	return err == nil
}

// MayBeOf reports whether a name that NACUUID gave may be that of an object of the namespace.
func MayBeOf(name, namespace string) bool {
	return strings.HasPrefix(name, namespace[:min(prefixRoom, len(namespace))]+"-")
}
