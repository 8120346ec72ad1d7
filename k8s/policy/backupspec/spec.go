package backupspec

import (
	"context"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
)

// Validate judges a NonAdminBackup's spec. nil means valid, a *check.InvalidSpecError that it is not; any other error means
// that it could not be judged now. The reader reads the storage location that the spec names, if any. For a valid spec,
// Validate returns the name of its Velero BackupStorageLocation, or "" for the administrator's default.
//
// The order of the checks and their texts are those of the Non-Admin Controller, which lets a tenant name any ConfigMap and any
// number.
func Validate(
	ctx context.Context, reader client.Reader, oadpNamespace string, nab *oadpv1alpha1.NonAdminBackup, p policy.Policy,
) (location string, err error) {
	if err := checkBackupScope(nab); err != nil {
		return "", err
	}
	if location, err = backupLocation(ctx, reader, oadpNamespace, nab); err != nil {
		return "", err
	}
	if nab.Spec.BackupSpec.VolumeSnapshotLocations != nil {
		return "", check.Invalid("NonAdminBackup spec.backupSpec.volumeSnapshotLocations is restricted")
	}
	if own := nab.Spec.BackupSpec.ResourcePolicy; own != nil && check.OwnConfigMap(own.Name) {
		return "", check.ReservedConfigMap("NonAdminBackup spec.backupSpec.resourcePolicy")
	}
	if err := check.Enforced("spec.backupSpec", asVeleroReads(nab.Spec.BackupSpec), p.EnforceBackupSpec); err != nil {
		return "", err
	}
	if problem := check.BadNumber("spec.backupSpec", nab.Spec.BackupSpec, p.EnforceBackupSpec); problem != "" {
		return "", check.Invalid("NonAdminBackup %s", problem)
	}
	return location, checkFilters(nab.Spec.BackupSpec, p)
}

// asVeleroReads returns a copy of a spec in which a field has its meaning under one name only: in Velero the old name of
// defaultVolumesToFsBackup wins, which would bypass an enforced value.
func asVeleroReads(spec *velerov1.BackupSpec) *velerov1.BackupSpec {
	spec = spec.DeepCopy()
	if check.IsTrue(spec.DefaultVolumesToRestic) {
		spec.DefaultVolumesToFsBackup = spec.DefaultVolumesToRestic
	}
	return spec
}

// checkBackupScope refuses a spec that reaches beyond the tenant's namespace.
func checkBackupScope(nab *oadpv1alpha1.NonAdminBackup) error {
	spec := nab.Spec.BackupSpec
	if spec == nil {
		if nab.Spec.Unreadable != "" {
			return check.Invalid("NonAdminBackup spec.backupSpec is invalid: %s", nab.Spec.Unreadable)
		}
		return check.Invalid("NonAdminBackup spec.backupSpec is not set")
	}
	if err := CheckSize(check.Size(spec)); err != nil {
		return err
	}
	for _, namespace := range spec.IncludedNamespaces {
		if namespace != nab.Namespace {
			return check.Invalid("NonAdminBackup spec.backupSpec.includedNamespaces is restricted, "+
				"can not contain namespaces other than: %s", nab.Namespace)
		}
	}
	if spec.ExcludedNamespaces != nil {
		return check.Invalid("NonAdminBackup spec.backupSpec.excludedNamespaces is restricted")
	}
	if check.IsTrue(spec.IncludeClusterResources) {
		return check.Invalid("NonAdminBackup spec.backupSpec.includeClusterResources is restricted, can only be set to false")
	}
	if len(spec.IncludedClusterScopedResources) > 0 {
		return check.Invalid("NonAdminBackup spec.backupSpec.includedScopedResources is restricted, must remain empty")
	}
	return nil
}

// Build returns the spec of the Velero Backup for a NonAdminBackup that Validate found valid: the tenant's spec with the
// administrator's values in unset fields, for the tenant's namespace only, without the excluded resources. location is the
// Velero BackupStorageLocation that Validate returned.
//
// Nothing in the result is shared with nab or the policy. The result keeps to the tenant's namespace and to the policy whether
// or not the spec was found valid.
func Build(nab *oadpv1alpha1.NonAdminBackup, p policy.Policy, location string) velerov1.BackupSpec {
	spec := &velerov1.BackupSpec{}
	if nab.Spec.BackupSpec != nil {
		spec = nab.Spec.BackupSpec
	}
	spec = asVeleroReads(merged(spec, p))
	spec.DefaultVolumesToRestic = nil // goes with restic (velero#9467): the API server would remove it, and volumes be left out
	spec.IncludedNamespaces = []string{nab.Namespace}
	spec.ExcludedNamespaces = nil
	spec.IncludedClusterScopedResources = nil
	spec.VolumeSnapshotLocations = nil
	if check.IsTrue(spec.IncludeClusterResources) {
		*spec.IncludeClusterResources = false
	}
	spec.StorageLocation = location
	excludeFromBackup(spec)
	return *spec
}

// merged returns a tenant's spec with the administrator's values.
func merged(spec *velerov1.BackupSpec, p policy.Policy) *velerov1.BackupSpec {
	spec = spec.DeepCopy()
	if enforced := p.EnforceBackupSpec; enforced != nil {
		own := filtersByKind(spec) && filtersByScope(spec)
		if enforced.DefaultVolumesToFsBackup != nil {
			spec.DefaultVolumesToRestic = nil
		}
		check.ApplyEnforced(spec, enforced)
		if !own {
			byScope(spec)
		}
	}
	return spec
}

// Fits reports whether a spec is small enough for a NonAdminBackup, whose status repeats it.
func Fits(spec *velerov1.BackupSpec) bool { return check.Size(spec) <= check.MaxSpecBytes }

// CheckSize judges a NonAdminBackup by the size of its spec alone, see Validate.
func CheckSize(size int) error {
	if size > check.MaxSpecBytes {
		return check.Invalid("NonAdminBackup spec.backupSpec is too large: %d bytes of JSON, %d are allowed", size, check.MaxSpecBytes)
	}
	return nil
}
