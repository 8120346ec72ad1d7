package restorespec

import (
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/k8s/policy/check"
)

// checkRestoreValues refuses values that Velero refuses or fails at (since 1.18): a Velero Restore cannot be corrected.
func checkRestoreValues(spec *velerov1.RestoreSpec) error {
	if own := spec.ResourceModifier; own != nil && check.OwnConfigMap(own.Name) {
		return check.ReservedConfigMap("NonAdminRestore spec.restoreSpec.resourceModifier")
	}
	if own := spec.ResourcePolicy; own != nil && check.OwnConfigMap(own.Name) {
		return check.ReservedConfigMap("NonAdminRestore spec.restoreSpec.resourcePolicy")
	}
	if spec.LabelSelector != nil && spec.OrLabelSelectors != nil {
		return invalidRestore("labelSelector", "spec.restoreSpec.orLabelSelectors is set too, only one can be")
	}
	for field, selectors := range map[string][]*metav1.LabelSelector{
		"labelSelector": {spec.LabelSelector}, "orLabelSelectors": spec.OrLabelSelectors,
	} {
		for _, selector := range selectors {
			if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
				return invalidRestore(field, err.Error())
			}
		}
	}
	switch spec.ExistingResourcePolicy {
	case "", velerov1.PolicyTypeNone, velerov1.PolicyTypeUpdate:
	default:
		return invalidRestore("existingResourcePolicy", "must be none or update")
	}
	return checkRestoreResources(spec)
}

func checkRestoreResources(spec *velerov1.RestoreSpec) error {
	if slices.Contains(spec.IncludedResources, "*") && slices.ContainsFunc(spec.IncludedResources, isOther("*")) {
		return invalidRestore("includedResources", `must either contain "*" only, or no "*"`)
	}
	if slices.Contains(spec.ExcludedResources, "*") {
		return invalidRestore("excludedResources", `must not contain "*"`)
	}
	for _, excluded := range spec.ExcludedResources {
		if slices.Contains(spec.IncludedResources, excluded) {
			return invalidRestore("excludedResources", "must not contain what includedResources contains: "+excluded)
		}
	}
	return nil
}

func isOther(than string) func(string) bool { return func(item string) bool { return item != than } }

func invalidRestore(field, problem string) error {
	return check.Invalid("NonAdminRestore spec.restoreSpec.%s is invalid: %s", field, problem)
}
