package fdb

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/watch/watched"
	"holdfast.dev/holdfast/workflows/contract"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch

// expiries are the pods that expire and delete backups. The queue of expirations starts the workflow of each turn; pod events
// signal it.
type expiries struct {
	*watched.Kind[*corev1.Pod]
}

func newExpiries(env *watched.Env) *expiries {
	e := &expiries{}
	e.Kind = watched.New(watched.Kind[*corev1.Pod]{
		Env: env, Name: "foundationdbexpiry", Workflow: contract.KindFDBExpiry, Reported: contract.KindFDBExpiry.Workflow,
		Sources: []watched.Source{{Of: &corev1.Pod{}, Events: e.podEvents()}},
	})
	return e
}

// podEvents: the state of a pod, and its deletion. Its creation is its turn's own.
func (e *expiries) podEvents() watched.Events {
	enqueue := func(object client.Object, q watched.Queue) {
		if request, owned := ownedByFDBBackup(object); owned {
			e.Add(q, request)
		}
	}
	return watched.Events{
		UpdateFunc: func(_ context.Context, update event.UpdateEvent, q watched.Queue) {
			if podMoved(update.ObjectOld.(*corev1.Pod), update.ObjectNew.(*corev1.Pod)) {
				enqueue(update.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, gone event.DeleteEvent, q watched.Queue) { enqueue(gone.Object, q) },
	}
}

func podMoved(before, after *corev1.Pod) bool {
	return before.UID != after.UID || before.Status.Phase != after.Status.Phase || before.Status.Reason != after.Status.Reason ||
		!before.DeletionTimestamp.Equal(after.DeletionTimestamp) ||
		!equality.Semantic.DeepEqual(statesOf(before), statesOf(after))
}

// statesOf are the states of a pod's containers; the rest of their status does not matter.
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
func ownedByFDBBackup(object client.Object) (watched.Request, bool) {
	for _, owner := range object.GetOwnerReferences() {
		group, err := schema.ParseGroupVersion(owner.APIVersion)
		if err == nil && group.Group == fdbv1alpha1.GroupVersion.Group && owner.Kind == fdbv1alpha1.KindFoundationDBBackup {
			return watched.Request{Namespace: object.GetNamespace(), Name: owner.Name, UID: string(owner.UID)}, true
		}
	}
	return watched.Request{}, false
}
