package watch

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// fdbExpiries turns the events of the pods that expire and delete backups into signals of their turns' workflows, which only the
// queue of expirations starts.
type fdbExpiries struct {
	*Watcher
	*intake
}

// expirySelector selects the pods that expire or delete backups.
func expirySelector() labels.Selector {
	made, err := labels.NewRequirement(fdbv1alpha1.LabelExpiry, selection.Exists, nil)
	utilruntime.Must(err) // the label's name is a constant
	return labels.NewSelector().Add(*made)
}

// addFDBExpiries adds the watcher of the pods to the manager.
func (w *Watcher) addFDBExpiries() error {
	e := &fdbExpiries{Watcher: w, intake: newIntake()}
	w.fdb.expiries = e
	pods := builder.TypedControllerManagedBy[Request](w.manager).
		Named("foundationdbexpiry").
		Watches(&corev1.Pod{}, e.podEvents())
	if err := e.feed(pods, e.look); err != nil {
		return fmt.Errorf("build the watcher of the pods that expire FoundationDB backups: %w", err)
	}
	return nil
}

// look tells the turn of a backup, if one runs, that something has happened to its pod.
func (e *fdbExpiries) look(ctx context.Context, request Request) (reconcile.Result, error) {
	return e.always(request, func(ref contract.ObjectRef, came time.Time) (reconcile.Result, error) {
		changed := contract.Changed{Reason: "changed"}
		return reconcile.Result{}, e.measured(contract.WorkflowFDBExpiry, ref, came,
			e.Workflows.SignalRunning(ctx, contract.KindFDBExpiry, ref, changed))
	})
}

// podEvents: how far a pod is, and whether it goes. That it was made is its turn's own doing.
func (e *fdbExpiries) podEvents() events {
	enqueue := func(object client.Object, q queue) {
		if request, owned := ownedByFDBBackup(object); owned {
			e.add(q, request)
		}
	}
	return events{
		UpdateFunc: func(_ context.Context, update event.UpdateEvent, q queue) {
			if podMoved(update.ObjectOld.(*corev1.Pod), update.ObjectNew.(*corev1.Pod)) {
				enqueue(update.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, gone event.DeleteEvent, q queue) { enqueue(gone.Object, q) },
	}
}

func podMoved(before, after *corev1.Pod) bool {
	return before.UID != after.UID || before.Status.Phase != after.Status.Phase || before.Status.Reason != after.Status.Reason ||
		!before.DeletionTimestamp.Equal(after.DeletionTimestamp) ||
		!equality.Semantic.DeepEqual(statesOf(before), statesOf(after))
}

// statesOf are the states of a pod's containers; what else their status says does not matter.
func statesOf(pod *corev1.Pod) map[string]corev1.ContainerState {
	states := map[string]corev1.ContainerState{}
	for _, container := range pod.Status.ContainerStatuses {
		states[container.Name] = container.State
	}
	for _, container := range pod.Status.InitContainerStatuses {
		states["init "+container.Name] = container.State
	}
	return states
}

// ownedByFDBBackup is the request for the FoundationDBBackup that owns a pod.
func ownedByFDBBackup(object client.Object) (Request, bool) {
	for _, owner := range object.GetOwnerReferences() {
		group, err := schema.ParseGroupVersion(owner.APIVersion)
		if err == nil && group.Group == fdbv1alpha1.GroupVersion.Group && owner.Kind == fdbv1alpha1.KindFoundationDBBackup {
			return Request{Namespace: object.GetNamespace(), Name: owner.Name, UID: string(owner.UID)}, true
		}
	}
	return Request{}, false
}

// namespaceEvents: in a namespace that begins to be deleted no pod can delete data any more, and must nothing hang on our
// finalizers. A backup that was already being deleted sees no event of its own then.
func (f *fdbBackups) namespaceEvents() events {
	enqueue := func(ctx context.Context, namespace client.Object, q queue) {
		f.each(ctx, func(object *fdbv1alpha1.FoundationDBBackup) {
			f.add(q, requestFor(object).forced(true))
		}, client.InNamespace(namespace.GetName()))
	}
	terminating := func(namespace metav1.Object) bool { return !namespace.GetDeletionTimestamp().IsZero() }
	return events{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if terminating(e.Object) {
				enqueue(ctx, e.Object, q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if terminating(e.ObjectNew) && !terminating(e.ObjectOld) {
				enqueue(ctx, e.ObjectNew, q)
			}
		},
	}
}
