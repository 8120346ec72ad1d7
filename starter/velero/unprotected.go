package velero

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/terminal"
)

// Holding is what a namespace has that a backup would protect, and how it is protected.
type Holding struct {
	Namespace string `json:"namespace"`
	// Workloads are Deployments, StatefulSets, DaemonSets and CronJobs, Claims PersistentVolumeClaims, Data ConfigMaps and Secrets
	// without those that every namespace gets.
	Workloads int `json:"workloads"`
	Claims    int `json:"claims"`
	Data      int `json:"data"`
	// Plans are BackupPlans.
	Plans int `json:"plans"`
	// LastGood is the begin of the newest backup of all of it that Velero calls Completed, a tenant's or an administrator's; nil if
	// there is none.
	LastGood *time.Time `json:"lastGood,omitempty"`
	// LastPartly is that of the newest which leaves something out, LeftOut what that is.
	LastPartly *time.Time `json:"lastPartly,omitempty"`
	LeftOut    []string   `json:"leftOut,omitempty"`

	created time.Time
}

// Unprotected are the namespaces that have something to protect and no good backup of all of it that began within a time.
func Unprotected(holdings []Holding, now time.Time, within time.Duration) []Holding {
	found := []Holding{}
	for _, h := range holdings {
		holds := h.Workloads+h.Claims+h.Data > 0
		if holds && (h.LastGood == nil || now.Sub(*h.LastGood) > within) {
			found = append(found, h)
		}
	}
	slices.SortFunc(found, func(a, b Holding) int {
		return cmp.Or(goodOf(a).Compare(goodOf(b)), cmp.Compare(a.Namespace, b.Namespace))
	})
	return found
}

func goodOf(h Holding) time.Time {
	if h.LastGood == nil {
		return time.Time{}
	}
	return *h.LastGood
}

// HoldingColumns are those of `holdfast list unprotected`.
var HoldingColumns = []operator.Column[Holding]{
	operator.NewColumn("NAMESPACE", func(h Holding) string { return h.Namespace }),
	operator.NewColumn("WORKLOADS", func(h Holding) string { return operator.Number(&h.Workloads) }),
	operator.NewColumn("CLAIMS", func(h Holding) string { return operator.Number(&h.Claims) }),
	operator.NewColumn("DATA", func(h Holding) string { return operator.Number(&h.Data) }),
	operator.NewColumn("PLANS", func(h Holding) string { return operator.Number(&h.Plans) }),
	operator.NewColumn("LAST-GOOD", func(h Holding) string { return cmp.Or(operator.Moment(h.LastGood), "never") }),
	operator.NewColumn("LAST-PARTLY", func(h Holding) string { return operator.Moment(h.LastPartly) }),
	operator.NewColumn("LEFT-OUT", func(h Holding) string { return terminal.Printable(strings.Join(h.LeftOut, "; ")) }),
}

// counted are the kinds that are counted.
var counted = []struct {
	kind schema.GroupVersionKind
	into func(*Holding) *int
}{
	{appsv1.SchemeGroupVersion.WithKind("Deployment"), func(h *Holding) *int { return &h.Workloads }},
	{appsv1.SchemeGroupVersion.WithKind("StatefulSet"), func(h *Holding) *int { return &h.Workloads }},
	{appsv1.SchemeGroupVersion.WithKind("DaemonSet"), func(h *Holding) *int { return &h.Workloads }},
	{batchv1.SchemeGroupVersion.WithKind("CronJob"), func(h *Holding) *int { return &h.Workloads }},
	{corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), func(h *Holding) *int { return &h.Claims }},
	{corev1.SchemeGroupVersion.WithKind("ConfigMap"), func(h *Holding) *int { return &h.Data }},
	{corev1.SchemeGroupVersion.WithKind("Secret"), func(h *Holding) *int { return &h.Data }},
	{holdfastv1alpha1.GroupVersion.WithKind(holdfastv1alpha1.KindBackupPlan), func(h *Holding) *int { return &h.Plans }},
}

// ReadHoldings reads what the namespaces of tenants hold: all but Kubernetes' and OpenShift's own and that of Velero. Of the
// objects only the metadata are read.
func ReadHoldings(ctx context.Context, reader client.Reader, oadpNamespace string) ([]Holding, error) {
	holdings := map[string]*Holding{}
	err := eachMetadata(ctx, reader, corev1.SchemeGroupVersion.WithKind("Namespace"), func(object *metav1.PartialObjectMetadata) {
		if object.Name != oadpNamespace && !systems(object.Name) && object.DeletionTimestamp.IsZero() {
			holdings[object.Name] = &Holding{Namespace: object.Name, created: object.CreationTimestamp.Time}
		}
	})
	if err != nil {
		return nil, err
	}
	for _, each := range counted {
		err := eachMetadata(ctx, reader, each.kind, func(object *metav1.PartialObjectMetadata) {
			if h := holdings[object.Namespace]; h != nil && !everywhere(object) {
				*each.into(h)++
			}
		})
		if err != nil {
			return nil, err
		}
	}
	if err := readGood(ctx, reader, oadpNamespace, holdings); err != nil {
		return nil, err
	}
	all := []Holding{}
	for _, h := range holdings {
		all = append(all, *h)
	}
	slices.SortFunc(all, func(a, b Holding) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return all, nil
}

// systems reports whether a namespace is Kubernetes' or OpenShift's own.
func systems(namespace string) bool {
	return strings.HasPrefix(namespace, "kube-") || strings.HasPrefix(namespace, "openshift-") || namespace == "openshift"
}

// everywhere reports whether an object is one that every namespace gets.
func everywhere(object *metav1.PartialObjectMetadata) bool {
	_, ofAccount := object.Annotations["kubernetes.io/service-account.name"]
	return ofAccount || object.Name == "kube-root-ca.crt" || object.Name == "openshift-service-ca.crt"
}

const pageSize = 500

func eachMetadata(
	ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, do func(*metav1.PartialObjectMetadata),
) error {
	for next := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := reader.List(ctx, list, client.Limit(pageSize), client.Continue(next)); err != nil {
			return fmt.Errorf("list %ss: %w", kind.Kind, err)
		}
		for i := range list.Items {
			do(&list.Items[i])
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// readGood notes the good backups of each namespace: those that Velero has, a tenant's as an administrator's, by what Velero was
// given.
func readGood(ctx context.Context, reader client.Reader, oadpNamespace string, holdings map[string]*Holding) error {
	var places velerov1.BackupStorageLocationList
	if err := reader.List(ctx, &places, client.InNamespace(oadpNamespace)); err != nil {
		return fmt.Errorf("list Velero BackupStorageLocations: %w", err)
	}
	locations := map[string]*velerov1.BackupStorageLocation{}
	for i := range places.Items {
		locations[places.Items[i].Name] = &places.Items[i]
	}
	var backups velerov1.BackupList
	if err := reader.List(ctx, &backups, client.InNamespace(oadpNamespace)); err != nil {
		return fmt.Errorf("list Velero Backups: %w", err)
	}
	for i := range backups.Items {
		made := &backups.Items[i]
		for h := range concerned(made, holdings) {
			h.note(made, locations[made.Spec.StorageLocation])
		}
	}
	return nil
}

// concerned are the namespaces that a Velero Backup may include: those that it names, or all if it has a pattern, or none.
func concerned(made *velerov1.Backup, holdings map[string]*Holding) iter.Seq[*Holding] {
	names := made.Spec.IncludedNamespaces
	if len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return strings.ContainsAny(name, "*?[") }) {
		return maps.Values(holdings)
	}
	return func(yield func(*Holding) bool) {
		for _, name := range names {
			if h := holdings[name]; h != nil && !yield(h) {
				return
			}
		}
	}
}
