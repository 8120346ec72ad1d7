package policy

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/k8s/policy/check"
)

// check returns what the policy must not say: fields that Holdfast decides itself, and periods that do not fit together.
// They are the checks that OADP's operator makes.
func (p *Policy) check() []string {
	return slices.Concat(p.checkBackupSpec(), p.checkRestoreSpec(), p.checkPeriods(), p.checkEnforcedConfig())
}

func (p *Policy) checkBackupSpec() []string {
	spec := p.EnforceBackupSpec
	if spec == nil {
		return nil
	}
	return append(badNumber("enforceBackupSpec", spec), nonEnforceable("enforceBackupSpec",
		set{"storageLocation", spec.StorageLocation != ""},
		set{"volumeSnapshotLocations", spec.VolumeSnapshotLocations != nil},
		set{"includedNamespaces", spec.IncludedNamespaces != nil},
		set{"excludedNamespaces", spec.ExcludedNamespaces != nil},
		set{"includeClusterResources as true", check.IsTrue(spec.IncludeClusterResources)},
		set{"includedClusterScopedResources", len(spec.IncludedClusterScopedResources) > 0},
	)...)
}

func (p *Policy) checkRestoreSpec() []string {
	spec := p.EnforceRestoreSpec
	if spec == nil {
		return nil
	}
	return append(badNumber("enforceRestoreSpec", spec), nonEnforceable("enforceRestoreSpec",
		set{"scheduleName", spec.ScheduleName != ""},
		set{"includedNamespaces", spec.IncludedNamespaces != nil},
		set{"excludedNamespaces", spec.ExcludedNamespaces != nil},
		set{"namespaceMapping", spec.NamespaceMapping != nil},
	)...)
}

func badNumber(path string, spec any) []string {
	if problem := check.BadNumber(path, spec, spec); problem != "" {
		return []string{problem}
	}
	return nil
}

type set struct {
	field string
	is    bool
}

func nonEnforceable(spec string, fields ...set) []string {
	var problems []string
	for _, field := range fields {
		if field.is {
			problems = append(problems, fmt.Sprintf("%s.%s is non-enforceable by admins", spec, field.field))
		}
	}
	return problems
}

func (p *Policy) checkPeriods() []string {
	collection, sync := p.GarbageCollection(), p.BackupSync()
	var problems []string
	for _, period := range []struct {
		field string
		value time.Duration
	}{{"garbageCollectionPeriod", collection}, {"backupSyncPeriod", sync}} {
		if period.value < 0 {
			problems = append(problems, fmt.Sprintf("%s must not be negative: %v", period.field, period.value))
		}
	}
	if sync > 0 && collection > 0 && sync >= collection {
		problems = append(problems, fmt.Sprintf("backupSyncPeriod (%v) must be less than garbageCollectionPeriod (%v)",
			sync, collection))
	}
	if enforced := p.EnforcedLocationSync(); enforced != nil && sync > 0 && enforced.Duration >= sync {
		problems = append(problems, fmt.Sprintf("enforceBSLSpec.backupSyncPeriod (%v) must be less than backupSyncPeriod (%v)",
			enforced.Duration, sync))
	}
	return problems
}

// checkEnforcedConfig: if the policy enforces a value that no tenant may set, every tenant would be refused for it.
func (p *Policy) checkEnforcedConfig() []string {
	if p.EnforceBSLSpec == nil {
		return nil
	}
	if key, problem := check.ConfigProblem(p.EnforceBSLSpec.Config); problem != "" {
		return []string{fmt.Sprintf("enforceBSLSpec.config.%s %s", key, problem)}
	}
	return nil
}

// EnforcedLocationSync returns the sync period that the policy enforces for storage locations; nil if none.
func (p *Policy) EnforcedLocationSync() *metav1.Duration {
	if p.EnforceBSLSpec == nil {
		return nil
	}
	return p.EnforceBSLSpec.BackupSyncPeriod
}
