package expiry

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/worker"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/fdb/gather"
	"holdfast.dev/holdfast/activities/fdb/jobs"
	"holdfast.dev/holdfast/activities/fdb/tools"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/workflows/contract"
)

// Activities plans turns of the queue of expirations and acts on their pods.
type Activities struct {
	// Client reads and writes at the API server itself.
	Client client.Client
	// Gatherer reads through Client.
	Gatherer *gather.Gatherer
	// Timeout is how long a pod may run; 1 hour unless set.
	Timeout time.Duration
	// Now is time.Now unless set.
	Now func() time.Time
}

// maxTurnPods is how many pods of earlier turns a plan lists: there are more only if somebody else has made them.
const maxTurnPods = 20

func (e *Activities) now() int64 {
	if e.Now == nil {
		return time.Now().Unix()
	}
	return e.Now().Unix()
}

// Register registers the activities with a worker under their wire names.
func (e *Activities) Register(registry worker.ActivityRegistry) {
	activities.RegisterGuarded(registry, activities.NeverPaused, contract.PlanFDBExpiry, e.Plan)
	activities.RegisterGuarded(registry, activities.NeverPaused, contract.ApplyFDBPod, e.Apply)
	activities.RegisterGuarded(registry, activities.NeverPaused, contract.ObserveFDBPod, e.Observe)
	activities.RegisterGuarded(registry, activities.NeverPaused, contract.DeleteFDBPod, e.Delete)
	activities.RegisterGuarded(registry, activities.NeverPaused, contract.FindFDBExpiries, e.Find)
}

// Plan returns what a turn has to do, and which pods of other turns still exist.
func (e *Activities) Plan(ctx context.Context, step contract.FDBExpiryStep) (contract.FDBExpiryPlan, error) {
	objects, err := e.Gatherer.Gather(ctx, step.Ref)
	if err != nil {
		return contract.FDBExpiryPlan{}, err
	}
	plan := jobs.PlanTurn(objects, step.Job, step.Turn, e.now())
	if len(plan.Delete) > 0 {
		if plan.Sharing, err = e.sharing(ctx, step.Ref, plan.Delete); err != nil {
			return contract.FDBExpiryPlan{}, err
		}
	}
	if len(validation.IsValidLabelValue(step.Ref.Name)) > 0 {
		return plan, nil // no pod could be made
	}
	err = e.eachPod(ctx, func(pod *corev1.Pod) {
		if turn, _ := jobs.TurnOf(pod); jobs.Ours(pod, step.Ref) && turn != step.Turn {
			view := jobs.View(pod)
			view.Result, view.Failed, view.Waiting = nil, "", "" // each is read again before the turn waits for it
			plan.Pods = append(plan.Pods, view)
		}
	}, client.InNamespace(step.Ref.Namespace), client.MatchingLabels{fdbv1alpha1.LabelExpiry: step.Ref.Name})
	slices.SortFunc(plan.Pods, func(a, b contract.FDBPodView) int { return cmp.Compare(a.Name, b.Name) })
	plan.Pods = plan.Pods[:min(len(plan.Pods), maxTurnPods)]
	return plan, err
}

// eachPod lists pods page by page.
func (e *Activities) eachPod(ctx context.Context, visit func(*corev1.Pod), options ...client.ListOption) error {
	err := activities.EachPage(ctx, e.Client, func(page *corev1.PodList) {
		for i := range page.Items {
			visit(&page.Items[i])
		}
	}, options...)
	if err != nil {
		return fmt.Errorf("list pods that expire: %w", err)
	}
	return nil
}

// Apply creates the pod of a step, unless it exists. It refuses the step if a pod of that name is not ours, and if the object
// does not want the step any more.
func (e *Activities) Apply(ctx context.Context, step contract.FDBPodStep) (contract.FDBPodView, error) {
	objects, err := e.Gatherer.Gather(ctx, step.Ref)
	if err != nil {
		return contract.FDBPodView{}, err
	}
	name := jobs.NameOf(step)
	if objects.Object == nil {
		return refusedPod(name, "the FoundationDBBackup is gone"), nil
	}
	plan := jobs.PlanTurn(objects, step.Job, step.Turn, e.now())
	if why := jobs.Covers(plan, step); why != "" {
		if pod, err := e.Observe(ctx, step); err != nil || pod.Found {
			return pod, err
		}
		return refusedPod(name, why), nil
	}
	wanted, err := jobs.Pod(objects.Object, jobs.Version(objects), step, cmp.Or(e.Timeout, time.Hour))
	if err != nil {
		return refusedPod(name, err.Error()), nil
	}
	err = e.Client.Create(ctx, wanted)
	switch {
	case err == nil:
		return jobs.View(wanted), nil
	case apierrors.IsAlreadyExists(err):
		return e.applied(ctx, step, name)
	case activities.Refused(err), apierrors.IsForbidden(err): // the template, a quota, an admission policy, a missing permission
		if apierrors.IsForbidden(err) {
			metrics.AccessDenied(contract.ApplyFDBPod.Name)
		}
		return refusedPod(name, err.Error()), nil
	}
	return contract.FDBPodView{}, fmt.Errorf("create pod %s/%s: %w", step.Ref.Namespace, name, err)
}

// applied returns the pod that existed already when it was to be created.
func (e *Activities) applied(ctx context.Context, step contract.FDBPodStep, name string) (contract.FDBPodView, error) {
	pod, err := e.read(ctx, step)
	switch {
	case err != nil:
		return contract.FDBPodView{}, err
	case pod == nil: // it was deleted meanwhile
		return contract.FDBPodView{Name: name}, nil
	case !jobs.Ours(pod, step.Ref):
		return refusedPod(name, "there is a pod of that name that Holdfast has not made for this backup: delete it"), nil
	}
	return jobs.View(pod), nil
}

func refusedPod(name, why string) contract.FDBPodView {
	return contract.FDBPodView{Name: name, Refused: true, Failed: fdb.Bound(fdb.Redact(why, nil), tools.MaxFDBMessage)}
}

// read returns the pod that has the name of a step's pod, also if it is not ours; nil if there is none.
func (e *Activities) read(ctx context.Context, step contract.FDBPodStep) (*corev1.Pod, error) {
	name := jobs.NameOf(step)
	if name == "" {
		return nil, nil //nolint:nilnil // without a name there is no pod
	}
	pod := &corev1.Pod{}
	exists, err := gather.Find(ctx, e.Client, "Pod", step.Ref.Namespace, name, pod)
	if err != nil || !exists {
		return nil, err
	}
	return pod, nil
}

// Observe returns the state of a step's pod. It ignores a pod that is not ours.
func (e *Activities) Observe(ctx context.Context, step contract.FDBPodStep) (contract.FDBPodView, error) {
	pod, err := e.read(ctx, step)
	if err != nil {
		return contract.FDBPodView{}, err
	}
	if pod == nil || !jobs.Ours(pod, step.Ref) {
		return contract.FDBPodView{Name: jobs.NameOf(step)}, nil
	}
	return jobs.View(pod), nil
}

// Delete deletes the pod of a step. The pod exists until its container has ended.
func (e *Activities) Delete(ctx context.Context, step contract.FDBPodStep) (contract.FDBPodView, error) {
	pod, err := e.read(ctx, step)
	switch {
	case err != nil:
		return contract.FDBPodView{}, err
	case pod == nil || !jobs.Ours(pod, step.Ref):
		return contract.FDBPodView{Name: jobs.NameOf(step)}, nil
	case !pod.DeletionTimestamp.IsZero():
		return jobs.View(pod), nil
	}
	err = e.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}, client.GracePeriodSeconds(jobs.GraceSeconds))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // another pod has the name now
		return contract.FDBPodView{}, fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return e.Observe(ctx, step)
}
