package finalization

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// maxVolumeLabels limits how many labels of a volume a backup can set.
const maxVolumeLabels = 100

// keptDomains are those whose labels are never set from a backup: Kubernetes' own, which say where a volume is, and those by
// which Velero and Holdfast select their objects.
var keptDomains = []string{"kubernetes.io", "k8s.io", "velero.io", "holdfast.dev", "openshift.io"}

// labelsToSet returns the labels of the backup that a volume should get, and warnings about others.
func labelsToSet(volume *corev1.PersistentVolume, backup map[string]string) (labels map[string]string, warnings []string) {
	labels = map[string]string{}
	affinity := placement(volume)
	invalid := 0
	for _, key := range slices.Sorted(maps.Keys(backup)) {
		value := backup[key]
		present, has := volume.Labels[key]
		_, placed := affinity[key]
		switch {
		case has && present == value, placed, isKept(key):
		case len(validation.IsQualifiedName(key)) > 0, len(validation.IsValidLabelValue(value)) > 0, len(labels) == maxVolumeLabels:
			invalid++
		default:
			labels[key] = value
		}
	}
	if invalid > 0 {
		warnings = append(warnings, fmt.Sprintf(
			"PersistentVolume %s: %d labels of the backup are not valid or too many, and were not set", volume.Name, invalid))
	}
	return labels, warnings
}

// isKept reports whether a label belongs to this cluster: to a kept domain, or to a driver's topology.
func isKept(key string) bool {
	domain, _, qualified := strings.Cut(key, "/")
	if !qualified {
		return false
	}
	domain = strings.ToLower(domain)
	return strings.HasPrefix(domain, "topology.") || slices.ContainsFunc(keptDomains, func(kept string) bool {
		return domain == kept || strings.HasSuffix(domain, "."+kept)
	})
}

// placement returns the values that the volume's own node affinity allows for each topology key.
func placement(volume *corev1.PersistentVolume) map[string][]string {
	allowed := map[string][]string{}
	affinity := volume.Spec.NodeAffinity
	if affinity == nil || affinity.Required == nil {
		return allowed
	}
	for _, term := range affinity.Required.NodeSelectorTerms {
		for _, expression := range term.MatchExpressions {
			if expression.Operator == corev1.NodeSelectorOpIn {
				allowed[expression.Key] = append(allowed[expression.Key], expression.Values...)
			}
		}
	}
	return allowed
}

// foreignTopology reports topology labels that contradict the volume's place: Velero overwrites them with those of the backup's
// cluster (Velero #9358, #9903). Their former values are lost.
func foreignTopology(volume *corev1.PersistentVolume) []string {
	allowed := placement(volume)
	byPart := map[string][]string{}
	for key, values := range allowed {
		byPart[part(key)] = append(byPart[part(key)], values...)
	}
	var warnings []string
	for _, key := range slices.Sorted(maps.Keys(volume.Labels)) {
		values, exact := allowed[key]
		if !exact && isTopology(key) {
			values = byPart[part(key)] // drivers have keys of their own for the same zones
		}
		if len(values) > 0 && !slices.Contains(values, volume.Labels[key]) {
			slices.Sort(values)
			warnings = append(warnings, fmt.Sprintf("PersistentVolume %s: label %s=%s contradicts its node affinity (%s): it is likely "+
				"the backup's; an administrator should correct it", volume.Name, key, volume.Labels[key],
				strings.Join(slices.Compact(values), ", ")))
		}
	}
	return warnings
}

// part is the last part of a topology key, for example "zone".
func part(key string) string { return key[strings.LastIndex(key, "/")+1:] }

func isTopology(key string) bool {
	return strings.HasPrefix(key, "topology.") || strings.HasPrefix(key, "failure-domain.beta.kubernetes.io/")
}
