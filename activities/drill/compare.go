package drill

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"holdfast.dev/holdfast/activities/restored"
	"holdfast.dev/holdfast/activities/verdict"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/objectstore"
)

// stricter are texts of errors that come from the drill's namespace, which is stricter than the tenant's. They say nothing about
// the backup.
var stricter = []struct{ text, what string }{
	{"may not be used when `type` is 'ClusterIP'", "a Service with a node port of its own"},
	{"violates PodSecurity", "a Pod that the Pod Security level of its namespace refuses"},
	{"exceeded quota", "what is beyond the ResourceQuota of its namespace"},
	{"failed quota", "what is beyond the ResourceQuota of its namespace"},
	{"must be less than or equal to cpu limit", beyondLimitRange},
	{"must be less than or equal to memory limit", beyondLimitRange},
	{"must be less than or equal to ephemeral-storage limit", beyondLimitRange},
	{"of the namespace does not allow", "a Pod that the Pod Security level of its namespace refuses"},
	{"it needs SecurityContextConstraints", "a Pod that needs SecurityContextConstraints of its own"},
	{"ValidatingAdmissionPolicy 'holdfast-drill-contents'", "what may not be in its namespace"},
}

const beyondLimitRange = "a container that requests more than the LimitRange of its namespace gives"

// excused says what a drill does not restore, if an error comes from its namespace; empty for others.
func excused(message string) string {
	for _, each := range stricter {
		if strings.Contains(message, each.text) {
			return each.what
		}
	}
	return ""
}

// erring matches the start of an error of Velero's about one object: resource, namespace and name.
var erring = regexp.MustCompile(`error restoring ([\w.-]+)/[^/]+/([^:]+):`)

// compare says what is missing, what Velero reported, and what a drill does not restore. reported is the number of errors by the
// Velero Restore's status.
func compare(c restored.Comparison, volumes []objectstore.VolumeInfo, reported int) (findings []finding) {
	failures := c.Results[objectstore.ErrorsKey]
	lines := slices.Concat(failures.Namespaces[c.Into], failures.Velero, failures.Cluster)
	left := map[string]bool{} // objects that the namespace refused
	for _, line := range lines {
		what := excused(line)
		if what == "" {
			findings = append(findings, wrong("Velero: %s", line))
			continue
		}
		findings = append(findings, notVerified("a drill does not restore %s: %s", what, line))
		if of := erring.FindStringSubmatch(line); of != nil {
			resource, _, _ := strings.Cut(of[1], ".")
			left[resource+"/"+of[2]] = true
		}
	}
	switch {
	case c.Results == nil && reported > 0:
		findings = append(findings, inconclusive("Velero reports %s, and has not written them to the object store",
			verdict.Count(int64(reported), "error")))
	case reported > len(lines):
		findings = append(findings, wrong("Velero reports %s, and its results name %d of them",
			verdict.Count(int64(reported), "error"), len(lines)))
	}
	for _, object := range c.Missing() {
		kind, name, _ := strings.Cut(object, " ")
		resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
		if !left[resource.Resource+"/"+name] {
			findings = append(findings, wrong("%s is in the backup and was not restored", object))
		}
	}
	findings = append(findings, unrestored(c)...)
	return append(findings, dataless(c, volumes)...)
}

// onPurpose reports whether a drill never restores a kind: what it means is bound to the tenant's namespace.
func onPurpose(kind schema.GroupKind) bool {
	return restored.NotReported.Has(kind) || restored.Derived.Has(kind) || kind.Group == "rbac.authorization.k8s.io" ||
		kind.Group == oadpv1alpha1.GroupVersion.Group || kind.Group == holdfastv1alpha1.GroupVersion.Group
}

// unrestored says which objects of the backup a drill does not restore.
func unrestored(c restored.Comparison) (findings []finding) {
	for _, listed := range slices.Sorted(maps.Keys(c.Backup)) {
		kind, resource := restored.KindOf(listed)
		if onPurpose(kind) || restored.AsksFor(c.Spec, kind, resource) {
			continue
		}
		if names := c.Named(listed); len(names) > 0 && len(c.Restored[listed]) == 0 {
			findings = append(findings, notVerified("a drill does not restore %s: %s", kind.Kind, summed(names)))
		}
	}
	return findings
}

// dataless says of which claims the data do not come back.
func dataless(c restored.Comparison, volumes []objectstore.VolumeInfo) (findings []finding) {
	of := map[string]objectstore.VolumeInfo{}
	for i := range volumes {
		of[volumes[i].PVCName] = volumes[i]
	}
	for _, claim := range c.Named("v1/PersistentVolumeClaim") {
		switch volume, known := of[claim]; {
		case !known, volume.Skipped:
			findings = append(findings, notVerified("the data of claim %s are not in the backup", claim))
		case volume.BackupMethod != objectstore.MethodPodVolumeBackup:
			findings = append(findings, notVerified("a drill does not restore the data of claim %s, which are a snapshot (%s)",
				claim, volume.BackupMethod))
		}
	}
	return findings
}

func summed(names []string) string {
	const named = 5
	text := strings.Join(names[:min(named, len(names))], ", ")
	if more := len(names) - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
