package velero

import (
	"cmp"
	"context"
	"fmt"
	"io"
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

	"holdfast.dev/holdfast/activities/plan"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/starter/operator"
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
	// LastGood is the begin of the newest backup that Velero calls Completed, a tenant's or an administrator's; nil if there is
	// none.
	LastGood *time.Time `json:"lastGood,omitempty"`
}

// Unprotected are the namespaces that have something to protect and no good backup that began within a time.
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

// holdingColumns are those of `holdfast list unprotected`.
var holdingColumns = []operator.Column[Holding]{
	operator.NewColumn("NAMESPACE", func(h Holding) string { return h.Namespace }),
	operator.NewColumn("WORKLOADS", func(h Holding) string { return operator.Number(&h.Workloads) }),
	operator.NewColumn("CLAIMS", func(h Holding) string { return operator.Number(&h.Claims) }),
	operator.NewColumn("DATA", func(h Holding) string { return operator.Number(&h.Data) }),
	operator.NewColumn("PLANS", func(h Holding) string { return operator.Number(&h.Plans) }),
	operator.NewColumn("LAST-GOOD", func(h Holding) string {
		if h.LastGood == nil {
			return "never"
		}
		return h.LastGood.UTC().Format(time.RFC3339)
	}),
}

// PrintUnprotected writes the table.
func PrintUnprotected(out io.Writer, found []Holding) error {
	return operator.PrintRows(out, holdingColumns, found)
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
			holdings[object.Name] = &Holding{Namespace: object.Name}
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

// readGood notes the newest good backup of each namespace. An administrator's Velero Backup counts for the namespaces that it
// includes.
func readGood(ctx context.Context, reader client.Reader, oadpNamespace string, holdings map[string]*Holding) error {
	var backups oadpv1alpha1.NonAdminBackupList
	if err := reader.List(ctx, &backups); err != nil {
		return fmt.Errorf("list NonAdminBackups: %w", err)
	}
	for i := range backups.Items {
		nab := &backups.Items[i]
		made, lost := nab.Status.VeleroBackup, !plan.GoneSince(nab).IsZero() || !nab.DeletionTimestamp.IsZero()
		if made != nil && made.Status != nil && !lost && whole(nab.Spec.BackupSpec) {
			holdings[nab.Namespace].note(made.Status)
		}
	}
	var others velerov1.BackupList
	if err := reader.List(ctx, &others, client.InNamespace(oadpNamespace)); err != nil {
		return fmt.Errorf("list Velero Backups: %w", err)
	}
	for i := range others.Items {
		made := &others.Items[i]
		if made.Labels[oadpv1alpha1.OadpLabel] == oadpv1alpha1.OadpLabelValue {
			continue // a tenant's: its own object says so
		}
		for name, h := range holdings {
			if includes(&made.Spec, name) {
				h.note(&made.Status)
			}
		}
	}
	return nil
}

// includes reports whether a Velero Backup includes a namespace whole.
func includes(spec *velerov1.BackupSpec, namespace string) bool {
	included := len(spec.IncludedNamespaces) == 0 || slices.Contains(spec.IncludedNamespaces, "*") ||
		slices.Contains(spec.IncludedNamespaces, namespace)
	return included && !slices.Contains(spec.ExcludedNamespaces, namespace) && whole(spec)
}

// whole reports whether a backup has all of its namespaces: one that selects by labels or names resources does not.
func whole(spec *velerov1.BackupSpec) bool {
	all := func(included []string) bool { return len(included) == 0 || slices.Contains(included, "*") }
	return spec != nil && spec.LabelSelector == nil && len(spec.OrLabelSelectors) == 0 &&
		all(spec.IncludedResources) && all(spec.IncludedNamespaceScopedResources)
}

func (h *Holding) note(status *velerov1.BackupStatus) {
	if h == nil || status.Phase != velerov1.BackupPhaseCompleted || status.StartTimestamp == nil {
		return
	}
	if begin := status.StartTimestamp.Time; h.LastGood == nil || begin.After(*h.LastGood) {
		h.LastGood = &begin
	}
}
