package velero

import (
	"path"
	"slices"
	"strings"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/velero"
)

// unmissed are kinds that a backup may leave out and hold all of a namespace: those that no tenant's backup has, cluster-scoped
// ones, and what Kubernetes, Velero and its plugins make anew.
var unmissed = slices.Concat(check.ExcludedNamespaceScoped, check.ExcludedClusterScoped, []string{
	"events", "events.events.k8s.io", "endpoints", "endpointslices.discovery.k8s.io", "leases.coordination.k8s.io",
	"volumesnapshots.snapshot.storage.k8s.io", "volumesnapshotcontents.snapshot.storage.k8s.io",
	"nodes", "namespaces", "storageclasses.storage.k8s.io", "storageclasses",
	"clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
	"customresourcedefinitions.apiextensions.k8s.io", "priorityclasses.scheduling.k8s.io",
})

// leftOut says what a Velero Backup leaves out of a namespace with so many claims; empty if nothing.
func leftOut(spec *velerov1.BackupSpec, claims int) (left []string) {
	if selects(spec.LabelSelector) || (len(spec.OrLabelSelectors) > 0 && !slices.ContainsFunc(spec.OrLabelSelectors, selectsAll)) {
		left = append(left, "what its labels do not select")
	}
	for _, included := range [][]string{spec.IncludedResources, spec.IncludedNamespaceScopedResources} {
		if len(included) > 0 && !slices.Contains(included, "*") {
			left = append(left, "all but "+strings.Join(included, ", "))
		}
	}
	for _, kind := range slices.Concat(spec.ExcludedResources, spec.ExcludedNamespaceScopedResources) {
		if !slices.Contains(unmissed, kind) && !slices.Contains(left, kind) {
			left = append(left, kind)
		}
	}
	asFiles := check.IsTrue(spec.DefaultVolumesToFsBackup) || check.IsTrue(spec.DefaultVolumesToRestic)
	if claims > 0 && isFalse(spec.SnapshotVolumes) && !asFiles {
		left = append(left, "volumes, but those that Pods choose by annotation")
	}
	if rules := spec.ResourcePolicy; rules != nil {
		left = append(left, "what resource policy "+rules.Name+" leaves out")
	}
	return left
}

func isFalse(b *bool) bool { return b != nil && !*b }

func selects(by *metav1.LabelSelector) bool {
	return by != nil && len(by.MatchLabels)+len(by.MatchExpressions) > 0
}

func selectsAll(by *metav1.LabelSelector) bool { return !selects(by) }

// includes reports whether a Velero Backup certainly includes a namespace, as Velero 1.18 reads names and patterns (*, ?, [abc]).
// What else a pattern may be, other versions read in their own ways: it includes nothing, and excludes everything.
func includes(spec *velerov1.BackupSpec, namespace string) bool {
	matches := func(orUnclear bool) func(string) bool {
		return func(pattern string) bool {
			matched, err := path.Match(pattern, namespace) // names of namespaces have no slash
			if err != nil || strings.ContainsAny(pattern, `^\!{},|()`) {
				return orUnclear
			}
			return matched
		}
	}
	included := len(spec.IncludedNamespaces) == 0 || slices.ContainsFunc(spec.IncludedNamespaces, matches(false))
	return included && !slices.ContainsFunc(spec.ExcludedNamespaces, matches(true))
}

// note adds a Velero Backup, whose data are in a location, if it is a good one of the namespace. What a tenant's own bucket holds
// says nothing of other namespaces, and a backup that began before the namespace was made nothing of what is in it.
func (h *Holding) note(made *velerov1.Backup, location *velerov1.BackupStorageLocation) {
	status := &made.Status
	if !velero.Good(status.Phase) || status.StartTimestamp == nil || !made.DeletionTimestamp.IsZero() {
		return
	}
	begin := status.StartTimestamp.Time
	if location == nil || !owner.MayHold(location, h.Namespace) || !includes(&made.Spec, h.Namespace) || begin.Before(h.created) {
		return
	}
	newer := func(than *time.Time) bool { return than == nil || begin.After(*than) }
	switch left := leftOut(&made.Spec, h.Claims); {
	case len(left) == 0 && newer(h.LastGood):
		h.LastGood = &begin
	case len(left) > 0 && newer(h.LastPartly):
		h.LastPartly, h.LeftOut = &begin, left
	}
}
