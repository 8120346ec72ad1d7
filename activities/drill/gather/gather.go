package gather

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/workflows/contract"
)

// Gatherer reads one RestoreDrill and all that was made for it. Reader is the API server in the worker, the cache in the watcher.
type Gatherer struct {
	Reader        client.Reader
	ClusterID     string
	OADPNamespace string
	// Cached: Reader is the watcher's cache. Older drills are not looked for.
	Cached bool
	// Now returns the time, that of the machine if nil.
	Now func() time.Time
}

// Objects is one RestoreDrill and what was made for it, as read. The objects are the reader's own: copy before changing.
type Objects struct {
	// Ref is the drill that was asked for, and Name the name of all that is made for it.
	Ref  contract.ObjectRef
	Name string
	// Drill is nil if no object of the requested UID exists.
	Drill *holdfastv1alpha1.RestoreDrill
	// Namespace and Restore were made for the drill, which they may outlive; nil when absent.
	Namespace *metav1.PartialObjectMetadata
	Restore   *velerov1.Restore
	// Occupied names what has the drill's name and was not made for it; empty if nothing has.
	Occupied string
	// Ahead are older drills of the tenant's namespace, the oldest first, that a drill waits for before it begins: one of a
	// namespace runs at a time. Of many, some are enough.
	Ahead []string
	// At is when all this was read.
	At time.Time
	// Wanted is the namespace that the policy describes, if that was read.
	Wanted contract.DrillNamespace
}

// Gather reads the objects. An error means that one could not be read, never that something is absent.
func (g *Gatherer) Gather(ctx context.Context, ref contract.ObjectRef) (*Objects, error) {
	o := &Objects{Ref: ref, Name: owner.DrillName(g.ClusterID, types.UID(ref.UID)), At: g.now()}
	drill := &holdfastv1alpha1.RestoreDrill{}
	exists, err := k8s.Get(ctx, g.Reader, holdfastv1alpha1.KindRestoreDrill, ref.Namespace, ref.Name, drill)
	if err != nil {
		return nil, err
	}
	if exists && string(drill.UID) == ref.UID {
		o.Drill = drill
		if o.Ahead, err = g.ahead(ctx, drill); err != nil {
			return nil, err
		}
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if exists, err = k8s.Get(ctx, g.Reader, "Namespace", "", o.Name, namespace); err != nil {
		return nil, err
	}
	if exists && o.madeForIt("Namespace", namespace, g) {
		o.Namespace = namespace
	}
	restore := &velerov1.Restore{}
	if exists, err = k8s.Get(ctx, g.Reader, "Velero Restore", g.OADPNamespace, o.Name, restore); err != nil {
		return nil, err
	}
	if exists && o.madeForIt("Velero Restore", restore, g) {
		o.Restore = restore
	}
	return o, nil
}

func (g *Gatherer) ahead(ctx context.Context, drill *holdfastv1alpha1.RestoreDrill) (names []string, err error) {
	if g.Cached || !waits(drill) {
		return nil, nil
	}
	// In small pages: a RestoreDrill may have half a megabyte. The first page with an older one is enough to wait.
	for next := ""; len(names) == 0; {
		var page holdfastv1alpha1.RestoreDrillList
		err := g.Reader.List(ctx, &page, client.InNamespace(drill.Namespace), client.Limit(drillsPage), client.Continue(next))
		if err != nil {
			return nil, fmt.Errorf("list RestoreDrills in %s: %w", drill.Namespace, err)
		}
		names = olderOpen(page.Items, drill)
		if next = page.Continue; next == "" {
			break
		}
	}
	return names, nil
}

// drillsPage is how many RestoreDrills are listed at a time.
const drillsPage = 20

// olderOpen are the drills that are older and have not ended, the oldest first.
func olderOpen(all []holdfastv1alpha1.RestoreDrill, drill *holdfastv1alpha1.RestoreDrill) (names []string) {
	slices.SortFunc(all, compareAge)
	for i := range all {
		other := &all[i]
		open := other.Status.Backup != "" && other.Status.Phase != holdfastv1alpha1.DrillEnded && other.DeletionTimestamp.IsZero()
		if open && compareAge(*other, *drill) < 0 {
			names = append(names, other.Name)
		}
	}
	return names
}

// waits reports whether a drill is admitted and has not begun.
func waits(drill *holdfastv1alpha1.RestoreDrill) bool {
	status := &drill.Status
	return status.Backup != "" && status.Started == nil && status.Concluded == nil && drill.DeletionTimestamp.IsZero()
}

func compareAge(one, other holdfastv1alpha1.RestoreDrill) int {
	return cmp.Or(one.CreationTimestamp.Compare(other.CreationTimestamp.Time), strings.Compare(one.Name, other.Name))
}

// madeForIt reports whether an object of the drill's name was made for it.
func (o *Objects) madeForIt(kind string, found client.Object, g *Gatherer) bool {
	if owner.ForDrill(g.ClusterID, found, types.UID(o.Ref.UID)) {
		return true
	}
	o.Occupied = kind + " " + found.GetName()
	return false
}

func (g *Gatherer) now() time.Time {
	if g.Now != nil {
		return g.Now()
	}
	return time.Now()
}
