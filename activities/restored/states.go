package restored

import (
	"context"
	"fmt"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Objects are those that a Velero Restore has created in a namespace.
type Objects struct {
	// Client reads from the API server itself.
	Client client.Reader
	// Namespace is where, and Restore the name of the Velero Restore.
	Namespace, Restore string
	// Progress is called between steps.
	Progress func()
}

// Selector selects the objects.
func (o *Objects) Selector() []client.ListOption {
	return []client.ListOption{client.InNamespace(o.Namespace), client.MatchingLabels{velerov1.RestoreNameLabel: o.Restore}}
}

// State is the problem of one restored object.
type State struct {
	Object string
	// Problem is empty if there is none.
	Problem string
	// Broken: it will not be solved without a change.
	Broken bool
}

// States checks every restored object that can be ready or not.
func (o *Objects) States(ctx context.Context) ([]State, error) {
	var claims corev1.PersistentVolumeClaimList
	if err := o.Client.List(ctx, &claims, o.Selector()...); err != nil {
		return nil, fmt.Errorf("list restored PersistentVolumeClaims: %w", err)
	}
	usage, err := o.Usage(ctx, claims.Items)
	if err != nil {
		return nil, err
	}
	var states []State
	for i := range claims.Items {
		states = append(states, claimState(&claims.Items[i], usage))
	}
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{}, &corev1.PodList{},
	} {
		o.Progress()
		if err := o.Client.List(ctx, list, o.Selector()...); err != nil {
			return nil, fmt.Errorf("list restored workloads (%T): %w", list, err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			states = append(states, workloadState(item))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return states, nil
}

func claimState(claim *corev1.PersistentVolumeClaim, usage *Usage) State {
	s := State{Object: "PersistentVolumeClaim " + claim.Name}
	switch {
	case claim.Status.Phase == corev1.ClaimBound:
	case claim.Status.Phase == corev1.ClaimLost:
		s.Problem, s.Broken = "has lost its PersistentVolume", true
	case usage.Binds(claim):
		s.Problem = "is not bound"
	}
	return s
}

func workloadState(object runtime.Object) State {
	switch workload := object.(type) {
	case *appsv1.Deployment:
		return replicaState("Deployment "+workload.Name, workload.Spec.Replicas, workload.Status.AvailableReplicas,
			workload.Status.ObservedGeneration >= workload.Generation)
	case *appsv1.StatefulSet:
		return replicaState("StatefulSet "+workload.Name, workload.Spec.Replicas, workload.Status.ReadyReplicas,
			workload.Status.ObservedGeneration >= workload.Generation)
	case *appsv1.DaemonSet:
		wanted := workload.Status.DesiredNumberScheduled
		return replicaState("DaemonSet "+workload.Name, &wanted, workload.Status.NumberReady,
			workload.Status.ObservedGeneration >= workload.Generation)
	case *corev1.Pod:
		return podState(workload)
	}
	return State{}
}

func replicaState(object string, wanted *int32, ready int32, observed bool) State {
	want := int32(1)
	if wanted != nil {
		want = *wanted
	}
	switch {
	case !observed:
		return State{Object: object, Problem: "has not been observed by its controller"}
	case ready < want:
		return State{Object: object, Problem: fmt.Sprintf("is not ready: %d of %d replicas are", ready, want)}
	}
	return State{Object: object}
}

// podState is for Pods without a controller: others are counted with their controllers.
func podState(pod *corev1.Pod) State {
	s := State{Object: "Pod " + pod.Name}
	for _, owner := range pod.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			return s
		}
	}
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
	case corev1.PodFailed:
		s.Problem, s.Broken = "has failed", true
	default:
		s.Problem = "is not ready"
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				s.Problem = ""
			}
		}
	}
	return s
}

// Usage says which claims can be expected to be bound: a claim whose class waits for the first consumer needs one.
type Usage struct {
	consumed map[string]bool // claims that a Pod mounts
	waiting  map[string]bool // classes that wait for the first consumer
}

// Binds reports whether a claim can be expected to be bound.
func (u *Usage) Binds(claim *corev1.PersistentVolumeClaim) bool {
	class := claim.Spec.StorageClassName
	return class == nil || !u.waiting[*class] || u.consumed[claim.Name]
}

// Usage reads what unbound claims wait for.
func (o *Objects) Usage(ctx context.Context, claims []corev1.PersistentVolumeClaim) (*Usage, error) {
	u := &Usage{consumed: map[string]bool{}, waiting: map[string]bool{}}
	unbound := slices.ContainsFunc(claims, func(claim corev1.PersistentVolumeClaim) bool {
		return claim.Status.Phase == corev1.ClaimPending
	})
	if !unbound {
		return u, nil
	}
	classes, err := waitingClasses(ctx, o.Client)
	if err != nil {
		return nil, err
	}
	u.waiting = classes
	if len(classes) == 0 {
		return u, nil
	}
	var pods corev1.PodList
	if err := o.Client.List(ctx, &pods, client.InNamespace(o.Namespace)); err != nil {
		return nil, fmt.Errorf("list Pods: %w", err)
	}
	for i := range pods.Items {
		for _, volume := range pods.Items[i].Spec.Volumes {
			if volume.PersistentVolumeClaim != nil {
				u.consumed[volume.PersistentVolumeClaim.ClaimName] = true
			}
		}
	}
	return u, nil
}

// waitingClasses returns the storage classes that bind a claim only when a Pod needs it.
func waitingClasses(ctx context.Context, reader client.Reader) (map[string]bool, error) {
	var list storagev1.StorageClassList
	if err := reader.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list StorageClasses: %w", err)
	}
	waiting := map[string]bool{}
	for i := range list.Items {
		mode := list.Items[i].VolumeBindingMode
		if mode != nil && *mode == storagev1.VolumeBindingWaitForFirstConsumer {
			waiting[list.Items[i].Name] = true
		}
	}
	return waiting, nil
}
