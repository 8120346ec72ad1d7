package fdb

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/workflows/contract"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch

// expiries are the pods that expire and delete backups. The queue of expirations starts the workflow of each turn; pod events
// signal it.
type expiries struct {
	*controllers.Kind[*corev1.Pod]
}

func newExpiries(env *controllers.Env) *expiries {
	e := &expiries{}
	e.Kind = controllers.New(controllers.Kind[*corev1.Pod]{
		Env: env, Name: "foundationdbexpiry", Workflow: contract.KindFDBExpiry, Reported: contract.KindFDBExpiry.Workflow,
		Own: expiryPods, Sources: []controllers.Source{{Of: expiryPods, Events: e.podEvents()}},
	})
	return e
}

// podEvents: the state of a pod, and its deletion. Its creation is its turn's own.
func (e *expiries) podEvents() controllers.Events {
	return controllers.On(controllers.Deleted, podMoved, func(_ context.Context, pod *corev1.Pod, q controllers.Queue) {
		for _, owner := range owners(pod.OwnerReferences) {
			e.Add(q, controllers.Request{Namespace: pod.Namespace, Name: owner.Name, UID: string(owner.UID)})
		}
	})
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
