package finalization

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
)

// validationTask checks whether the restored objects work: claims are bound, workloads become ready within the limit, and
// nothing of the backup is missing. It changes nothing.
type validationTask struct{}

// Name implements Task.
func (validationTask) Name() string { return "validation" }

// Summary implements Task.
func (validationTask) Summary() string {
	return "Check whether volumes are bound, workloads ready, and nothing is missing"
}

// Timeout implements Task.
func (validationTask) Timeout() time.Duration { return 2 * time.Minute }

// Run implements Task.
func (validationTask) Run(ctx context.Context, c *Context) (Findings, error) {
	var found Findings
	states, err := c.states(ctx)
	if err != nil {
		return found, err
	}
	var waits []string
	for _, state := range states {
		switch {
		case state.broken:
			add(&found.Errors.Namespace, "%s %s", state.object, state.problem)
		case state.problem != "" && c.Expired:
			add(&found.Warnings.Namespace, "%s %s", state.object, state.problem)
		case state.problem != "":
			waits = append(waits, state.object)
		}
	}
	if len(waits) > 0 {
		return found, &NotYetError{For: summed(waits)}
	}
	comparison, err := c.compare(ctx)
	if err != nil {
		return found, c.storeProblem(&found, err)
	}
	if c.fromTenantsLocation() {
		filtered(comparison).describe(&found)
	}
	for _, object := range missingObjects(comparison) {
		add(&found.Warnings.Namespace, "%s is in the backup and was not restored", object)
	}
	return found, nil
}

// fromTenantsLocation: Holdfast has made a modifier for the restore.
func (c *Context) fromTenantsLocation() bool {
	modifier := c.Restore.Spec.ResourceModifier
	return modifier != nil && modifier.Name == c.Restore.Name
}

// summed names the first of some objects, and how many more there are.
func summed(objects []string) string {
	const named = 3
	text := strings.Join(objects[:min(named, len(objects))], ", ")
	if more := len(objects) - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// state is the problem of one restored object.
type state struct {
	object  string
	problem string // empty if there is none
	broken  bool   // it will not be solved without a change
}

// states checks every restored object that can be ready or not.
func (c *Context) states(ctx context.Context) ([]state, error) {
	var claims corev1.PersistentVolumeClaimList
	if err := c.Client.List(ctx, &claims, c.restored()...); err != nil {
		return nil, fmt.Errorf("list restored PersistentVolumeClaims: %w", err)
	}
	usage, err := c.usage(ctx, claims.Items)
	if err != nil {
		return nil, err
	}
	var states []state
	for i := range claims.Items {
		states = append(states, claimState(&claims.Items[i], usage))
	}
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{}, &corev1.PodList{},
	} {
		c.Progress()
		if err := c.Client.List(ctx, list, c.restored()...); err != nil {
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

func claimState(claim *corev1.PersistentVolumeClaim, usage *usage) state {
	s := state{object: "PersistentVolumeClaim " + claim.Name}
	switch {
	case claim.Status.Phase == corev1.ClaimBound:
	case claim.Status.Phase == corev1.ClaimLost:
		s.problem, s.broken = "has lost its PersistentVolume", true
	case usage.binds(claim):
		s.problem = "is not bound"
	}
	return s
}

func workloadState(object runtime.Object) state {
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
	return state{}
}

func replicaState(object string, wanted *int32, ready int32, observed bool) state {
	want := int32(1)
	if wanted != nil {
		want = *wanted
	}
	switch {
	case !observed:
		return state{object: object, problem: "has not been observed by its controller"}
	case ready < want:
		return state{object: object, problem: fmt.Sprintf("is not ready: %d of %d replicas are", ready, want)}
	}
	return state{object: object}
}

// podState is for Pods without a controller: others are counted with their controllers.
func podState(pod *corev1.Pod) state {
	s := state{object: "Pod " + pod.Name}
	for _, owner := range pod.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			return s
		}
	}
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
	case corev1.PodFailed:
		s.problem, s.broken = "has failed", true
	default:
		s.problem = "is not ready"
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				s.problem = ""
			}
		}
	}
	return s
}

// compare reads the lists of the backup and of the restore.
func (c *Context) compare(ctx context.Context) (comparison, error) {
	spec := c.Restore.Spec
	compared := comparison{
		namespace: c.NAR.Namespace, spec: &spec, asked: c.NAR.Spec.RestoreSpec,
		shadowed: restorespec.ReadShadowed(c.Restore.Annotations[restorespec.ShadowedAnnotation]),
	}
	if compared.asked == nil { // unreadable, since an edit
		compared.asked = &velerov1.RestoreSpec{}
	}
	if compared.selects() && !c.fromTenantsLocation() {
		return compared, nil
	}
	store, err := c.Store(ctx)
	if err != nil {
		return compared, err
	}
	if compared.backup, err = store.BackupResources(ctx, spec.BackupName, c.NAR.Namespace); err != nil {
		return compared, err
	}
	c.Progress()
	if compared.restored, err = store.RestoreResources(ctx, c.Restore.Name, c.NAR.Namespace); err != nil {
		return compared, err
	}
	c.Progress()
	compared.results, err = store.RestoreResults(ctx, c.Restore.Name)
	if errors.Is(err, objectstore.ErrNotFound) {
		err = nil
	}
	return compared, err
}
