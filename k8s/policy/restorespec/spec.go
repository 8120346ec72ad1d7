package restorespec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/velero"
)

// Source is what a NonAdminRestore restores, as far as it exists. An object that does not name its tenant's object as its
// origin counts as absent.
type Source struct {
	// NAB is the NonAdminBackup that the spec names, of the same namespace.
	NAB *oadpv1alpha1.NonAdminBackup
	// Backup is its Velero Backup.
	Backup *velerov1.Backup
	// Location is the Velero BackupStorageLocation that holds the Backup.
	Location *velerov1.BackupStorageLocation
	// Allowlist is what may be restored from a tenant's Location; nil if the caller does not judge that.
	Allowlist *Allowlist
}

// Tenants reports whether the backup lies in a tenant's storage location, where it may hold anything.
func (s Source) Tenants() bool {
	return s.Location != nil && owner.Tenants(s.Location)
}

// Validate judges a NonAdminRestore's spec, by the objects of the backup that it names. nil means valid, an
// *check.InvalidSpecError that it is not.
//
// The order of the checks and their texts are those of the Non-Admin Controller; its missing checks of a field come after its
// own.
func Validate(nar *oadpv1alpha1.NonAdminRestore, source Source, p policy.Policy) error {
	spec := nar.Spec.RestoreSpec
	if spec == nil {
		if nar.Spec.Unreadable != "" {
			return check.Invalid("NonAdminRestore spec.restoreSpec is invalid: %s", nar.Spec.Unreadable)
		}
		return check.Invalid("NonAdminRestore spec.restoreSpec is not set")
	}
	if err := CheckSize(check.Size(spec)); err != nil {
		return err
	}
	if spec.ScheduleName != "" {
		return restricted("scheduleName")
	}
	if err := checkRestoreSource(nar, source); err != nil {
		return err
	}
	if err := checkRestoreScope(spec); err != nil {
		return err
	}
	if err := checkRestoreValues(spec); err != nil {
		return err
	}
	enforced := enforcedRestoreSpec(p)
	if err := check.Enforced("spec.restoreSpec", spec, enforced); err != nil {
		return err
	}
	if problem := check.BadNumber("spec.restoreSpec", spec, enforced); problem != "" {
		return check.Invalid("NonAdminRestore %s", problem)
	}
	if !source.Tenants() {
		return checkUpdates(effectiveRestoreSpec(nar, p))
	}
	if spec.ResourceModifier != nil {
		return check.Invalid("NonAdminRestore spec.restoreSpec.resourceModifier is restricted, must not be set to restore a backup " +
			"from a NonAdminBackupStorageLocation")
	}
	if enforced != nil && enforced.ResourceModifier != nil {
		return check.External("the administrator enforces spec.restoreSpec.resourceModifier, " +
			"with which no backup can be restored from a NonAdminBackupStorageLocation")
	}
	return checkAllowlist(source.Allowlist, effectiveRestoreSpec(nar, p))
}

// checkAllowlist refuses an empty restore: Velero would restore everything.
func checkAllowlist(allowlist *Allowlist, spec *velerov1.RestoreSpec) error {
	switch {
	case allowlist == nil:
		return nil
	case allowlist.Problem != "":
		return check.External("nothing can be restored from a NonAdminBackupStorageLocation now: %s", allowlist.Problem)
	case len(allowlist.Chosen(spec)) == 0:
		return check.External("NonAdminRestore spec.restoreSpec selects nothing that can be restored from a "+
			"NonAdminBackupStorageLocation: only what ClusterRole %q may create in a namespace is%s", allowlist.ClusterRole,
			reason(allowlist.shadowed(spec)))
	}
	return nil
}

// checkUpdates refuses what Velero would refuse: an included resource that is excluded from updates.
func checkUpdates(spec *velerov1.RestoreSpec) error {
	if spec.ExistingResourcePolicy != velerov1.PolicyTypeUpdate {
		return nil
	}
	for _, excluded := range excludedFromUpdates {
		if slices.Contains(spec.IncludedResources, excluded) {
			return invalidRestore("includedResources", "must not contain "+excluded+
				" with existingResourcePolicy update, which leaves roles, limits and plans as they are")
		}
	}
	return nil
}

func restricted(field string) error {
	return check.Invalid("NonAdminRestore nonAdminRestore.spec.restoreSpec.%s is restricted", field)
}

// checkRestoreScope refuses a spec that reaches beyond the tenant's namespace.
func checkRestoreScope(spec *velerov1.RestoreSpec) error {
	switch {
	case spec.IncludedNamespaces != nil:
		return restricted("includedNamespaces")
	case spec.ExcludedNamespaces != nil:
		return restricted("excludedNamespaces")
	case spec.NamespaceMapping != nil:
		return restricted("namespaceMapping")
	case check.IsTrue(spec.IncludeClusterResources):
		return check.Invalid("NonAdminRestore nonAdminRestore.spec.restoreSpec.includeClusterResources is restricted, " +
			"can only be set to false")
	}
	return nil
}

const unfit = "NonAdminRestore spec.restoreSpec.backupName is invalid: "

// SpeaksOfSource reports whether the message of a verdict on a NonAdminRestore is about the backup that it names, so that it
// may change with the backup alone.
func SpeaksOfSource(message string) bool { return strings.HasPrefix(message, unfit) }

// checkRestoreSource refuses a backup that is not the tenant's, does not exist yet, or whose data cannot be read.
func checkRestoreSource(nar *oadpv1alpha1.NonAdminRestore, source Source) error {
	name := nar.Spec.RestoreSpec.BackupName
	if name == "" {
		return check.Invalid("NonAdminRestore spec.restoreSpec.backupName is not set")
	}
	if problems := check.NameProblems(name); len(problems) > 0 {
		return check.Invalid(unfit+"%s", strings.Join(problems, ", "))
	}
	if why := source.Unfit(nar.Namespace, name); why != "" {
		return check.External(unfit+"%s", why)
	}
	return nil
}

// Unfit says why the NonAdminBackup of that name cannot be restored; empty if it can.
func (s Source) Unfit(namespace, name string) string {
	const notReady = "NonAdminBackup is not ready to be restored"
	if s.NAB == nil {
		return fmt.Sprintf("%s %q not found", oadpv1alpha1.Resource(oadpv1alpha1.ResourceNonAdminBackups), name)
	}
	switch spec := s.NAB.Spec; {
	case !s.NAB.DeletionTimestamp.IsZero(), spec.DeleteBackup, spec.ForceDeleteBackup:
		return notReady + ": it is being deleted"
	case s.NAB.Status.Phase != oadpv1alpha1.NonAdminPhaseCreated:
		return notReady
	case s.Backup == nil:
		return notReady + ": its Velero Backup does not exist"
	}
	switch phase := s.Backup.Status.Phase; {
	case !velero.Usable(phase):
		return fmt.Sprintf(notReady+": its Velero Backup is not complete (phase %s)", cmp.Or(phase, velerov1.BackupPhaseNew))
	case !s.Backup.DeletionTimestamp.IsZero():
		return notReady + ": its Velero Backup is being deleted"
	}
	switch location := s.Location; {
	case location == nil:
		return fmt.Sprintf(notReady+": the BackupStorageLocation %q that holds its data does not exist", s.Backup.Spec.StorageLocation)
	case !owner.MayHold(location, namespace):
		return notReady + ": it lies in a storage location of another namespace"
	case location.Status.Phase != velerov1.BackupStorageLocationPhaseAvailable:
		return fmt.Sprintf(notReady+": the BackupStorageLocation %q that holds its data is not available", location.Name)
	}
	return ""
}

// enforcedRestoreSpec is what the administrator enforces, without cluster-scoped resources: tenants' restores never include
// them.
func enforcedRestoreSpec(p policy.Policy) *velerov1.RestoreSpec {
	if p.EnforceRestoreSpec == nil || !check.IsTrue(p.EnforceRestoreSpec.IncludeClusterResources) {
		return p.EnforceRestoreSpec
	}
	enforced := p.EnforceRestoreSpec.DeepCopy()
	enforced.IncludeClusterResources = nil
	return enforced
}

// CheckSize judges a NonAdminRestore by the size of its spec alone, see Validate.
func CheckSize(size int) error {
	if size > check.MaxSpecBytes {
		return check.Invalid("NonAdminRestore spec.restoreSpec is too large: %d bytes of JSON, %d are allowed",
			size, check.MaxSpecBytes)
	}
	return nil
}
