package backupspec

import (
	"slices"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
)

// Velero has two styles of filters, which it does not take together: by kind (includedResources, excludedResources,
// includeClusterResources) and by scope (the four fields with Scoped in their names).
func filtersByKind(spec *velerov1.BackupSpec) bool {
	return len(spec.IncludedResources)+len(spec.ExcludedResources) > 0 || spec.IncludeClusterResources != nil
}

func filtersByScope(spec *velerov1.BackupSpec) bool {
	return len(spec.IncludedClusterScopedResources)+len(spec.ExcludedClusterScopedResources)+
		len(spec.IncludedNamespaceScopedResources)+len(spec.ExcludedNamespaceScopedResources) > 0
}

// byScope writes what a spec excludes by kind as filters by scope, if it has both: an excluded kind into both scopes, of which
// Velero leaves out the one that the kind is not of.
func byScope(spec *velerov1.BackupSpec) {
	mixed := filtersByKind(spec) && filtersByScope(spec)
	if !mixed || len(spec.IncludedResources) > 0 || slices.Contains(spec.ExcludedResources, "*") {
		return
	}
	spec.ExcludedNamespaceScopedResources = check.WithExcluded(spec.ExcludedNamespaceScopedResources, spec.ExcludedResources)
	spec.ExcludedClusterScopedResources = check.WithExcluded(spec.ExcludedClusterScopedResources, spec.ExcludedResources)
	spec.ExcludedResources = nil
	if spec.IncludeClusterResources != nil { // false: a tenant's never includes them
		spec.IncludeClusterResources, spec.ExcludedClusterScopedResources = nil, []string{"*"}
	}
}

// checkFilters refuses a spec which Velero would refuse, once the administrator's filters are in it, although it would take the
// tenant's own (velero#5333). What Velero refuses of a tenant's own filters is left to Velero.
func checkFilters(spec *velerov1.BackupSpec, p policy.Policy) error {
	if p.EnforceBackupSpec == nil || BadFilters(spec) != "" {
		return nil
	}
	problem := BadFilters(merged(spec, p))
	if problem == "" {
		return nil
	}
	return check.External("the administrator enforces spec.backupSpec.%s, with which Velero rejects this spec: %s",
		strings.Join(namedFilters(p.EnforceBackupSpec), ", "), problem)
}

// BadFilters is why Velero 1.18 refuses the filters of a spec; empty if it does not.
func BadFilters(spec *velerov1.BackupSpec) string {
	pairs := []struct {
		name               string
		includes, excludes []string
		all                bool // may exclude "*"
	}{
		{"Resources", spec.IncludedResources, spec.ExcludedResources, false},
		{"ClusterScopedResources", spec.IncludedClusterScopedResources, spec.ExcludedClusterScopedResources, true},
		{"NamespaceScopedResources", spec.IncludedNamespaceScopedResources, spec.ExcludedNamespaceScopedResources, true},
	}
	switch {
	case filtersByKind(spec) && filtersByScope(spec):
		return "filters by kind (includedResources, excludedResources, includeClusterResources) and by scope cannot be used together"
	case spec.LabelSelector != nil && len(spec.OrLabelSelectors) > 0:
		return "labelSelector and orLabelSelectors cannot be used together"
	}
	for _, pair := range pairs {
		included, excluded := "included"+pair.name, "excluded"+pair.name
		every := slices.Contains(pair.excludes, "*")
		switch {
		case slices.Contains(pair.includes, "*") && slices.ContainsFunc(pair.includes, func(kind string) bool { return kind != "*" }):
			return included + ` has "*" and more`
		case every && !pair.all:
			return excluded + ` has "*"`
		case every && len(pair.includes) > 0:
			return excluded + ` has "*", and ` + included + " is set"
		case every && slices.ContainsFunc(pair.excludes, func(kind string) bool { return kind != "*" }):
			return excluded + ` has "*" and more`
		}
		for _, kind := range pair.excludes {
			if slices.Contains(pair.includes, kind) {
				return included + " and " + excluded + " both have " + kind
			}
		}
	}
	return ""
}

// namedFilters are the filters that a spec sets.
func namedFilters(spec *velerov1.BackupSpec) (names []string) {
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"includedResources", len(spec.IncludedResources) > 0},
		{"excludedResources", len(spec.ExcludedResources) > 0},
		{"includeClusterResources", spec.IncludeClusterResources != nil},
		{"includedNamespaceScopedResources", len(spec.IncludedNamespaceScopedResources) > 0},
		{"excludedNamespaceScopedResources", len(spec.ExcludedNamespaceScopedResources) > 0},
		{"excludedClusterScopedResources", len(spec.ExcludedClusterScopedResources) > 0},
		{"labelSelector", spec.LabelSelector != nil},
		{"orLabelSelectors", len(spec.OrLabelSelectors) > 0},
	} {
		if field.set {
			names = append(names, field.name)
		}
	}
	return names
}
