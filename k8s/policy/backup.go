package policy

import (
	"context"
	"encoding/json"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// ValidateBackup judges a NonAdminBackup's spec. nil means valid, an *InvalidSpecError that it is not; any other error
// means that it could not be judged now. The reader is asked for the storage location that the spec names, if any; of a valid
// spec, the name of its Velero BackupStorageLocation is returned, or "" for the administrator's default.
//
// The order of the checks and their texts are those of the Non-Admin Controller, which lets a tenant name any ConfigMap.
func ValidateBackup(
	ctx context.Context, reader client.Reader, oadpNamespace string, nab *oadpv1alpha1.NonAdminBackup, p Policy,
) (location string, err error) {
	if err := checkBackupScope(nab); err != nil {
		return "", err
	}
	if location, err = backupLocation(ctx, reader, oadpNamespace, nab); err != nil {
		return "", err
	}
	if nab.Spec.BackupSpec.VolumeSnapshotLocations != nil {
		return "", invalid("NonAdminBackup spec.backupSpec.volumeSnapshotLocations is restricted")
	}
	if own := nab.Spec.BackupSpec.ResourcePolicy; own != nil && ownConfigMap(own.Name) {
		return "", reservedConfigMap("NonAdminBackup spec.backupSpec.resourcePolicy")
	}
	return location, checkEnforced("spec.backupSpec", asVeleroReads(nab.Spec.BackupSpec), p.EnforceBackupSpec)
}

// asVeleroReads returns a copy of a spec in which a field has its meaning under one name only: Velero lets the old name
// of defaultVolumesToFsBackup win, which would get round an enforced value.
func asVeleroReads(spec *velerov1.BackupSpec) *velerov1.BackupSpec {
	spec = spec.DeepCopy()
	if isTrue(spec.DefaultVolumesToRestic) {
		spec.DefaultVolumesToFsBackup = spec.DefaultVolumesToRestic
	}
	return spec
}

// maxSpecBytes bounds a spec: its object holds it twice (the status repeats Velero's copy), the last-applied annotation may
// hold it once more, and etcd takes 1.5 MiB.
const maxSpecBytes = 256 << 10

func jsonSize(spec any) int {
	data, err := json.Marshal(spec)
	if err != nil {
		return maxSpecBytes + 1
	}
	return len(data)
}

// checkBackupScope refuses what reaches beyond the tenant's namespace.
func checkBackupScope(nab *oadpv1alpha1.NonAdminBackup) error {
	spec := nab.Spec.BackupSpec
	if spec == nil {
		if nab.Spec.Unreadable != "" {
			return invalid("NonAdminBackup spec.backupSpec is invalid: %s", nab.Spec.Unreadable)
		}
		return invalid("NonAdminBackup spec.backupSpec is not set")
	}
	if err := CheckBackupSize(jsonSize(spec)); err != nil {
		return err
	}
	for _, namespace := range spec.IncludedNamespaces {
		if namespace != nab.Namespace {
			return invalid("NonAdminBackup spec.backupSpec.includedNamespaces is restricted, "+
				"can not contain namespaces other than: %s", nab.Namespace)
		}
	}
	if spec.ExcludedNamespaces != nil {
		return invalid("NonAdminBackup spec.backupSpec.excludedNamespaces is restricted")
	}
	if isTrue(spec.IncludeClusterResources) {
		return invalid("NonAdminBackup spec.backupSpec.includeClusterResources is restricted, can only be set to false")
	}
	if len(spec.IncludedClusterScopedResources) > 0 {
		return invalid("NonAdminBackup spec.backupSpec.includedScopedResources is restricted, must remain empty")
	}
	return nil
}

// BuildBackupSpec returns the spec of the Velero Backup for a NonAdminBackup that ValidateBackup found valid: the
// tenant's, with the administrator's values where it sets none, for the tenant's namespace only, without the resources
// that tenants do not get. location is the Velero BackupStorageLocation that ValidateBackup returned.
//
// Nothing in the result is shared with nab or the policy. The result keeps to the tenant's namespace and to the policy
// whether or not the spec was found valid.
func BuildBackupSpec(nab *oadpv1alpha1.NonAdminBackup, p Policy, location string) velerov1.BackupSpec {
	spec := &velerov1.BackupSpec{}
	if nab.Spec.BackupSpec != nil {
		spec = nab.Spec.BackupSpec.DeepCopy()
	}
	if enforced := p.EnforceBackupSpec; enforced != nil {
		if enforced.DefaultVolumesToFsBackup != nil {
			spec.DefaultVolumesToRestic = nil
		}
		applyEnforced(spec, enforced)
	}

	spec.IncludedNamespaces = []string{nab.Namespace}
	spec.ExcludedNamespaces = nil
	spec.IncludedClusterScopedResources = nil
	spec.VolumeSnapshotLocations = nil
	if isTrue(spec.IncludeClusterResources) {
		*spec.IncludeClusterResources = false
	}
	spec.StorageLocation = location
	excludeFromBackup(spec)
	return *spec
}
