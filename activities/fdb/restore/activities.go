package restore

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/k8s"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb/restoretool"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/workflows/contract"
)

// Reasons of Events on a FoundationDBRestore besides those of StatusEvents.
const (
	eventFDBRestoreAbandoned = "Abandoned"
	eventFDBRestoreAborted   = "RestoreAborted"
)

// Activities acts on FoundationDBRestores.
type Activities struct {
	// Client reads and writes at the API server itself.
	Client client.Client
	// Gatherer reads through Client.
	Gatherer *Gatherer
	// Events records what happened, for the user; best effort.
	Events events.EventRecorder
}

// Register registers the activities with a worker under their wire names.
func (r *Activities) Register(registry worker.ActivityRegistry) {
	register(registry, contract.ObserveFDBRestore, r.Observe,
		func(in contract.FDBRestoreStep) contract.ObjectRef { return in.Ref }, r)
	register(registry, contract.PlanFDBRestore, r.Plan,
		func(in contract.FDBRestorePlanning) contract.ObjectRef { return in.Ref }, r)
	register(registry, contract.PublishFDBRestore, r.Publish,
		func(in contract.FDBRestoreFindings) contract.ObjectRef { return in.Ref }, r)
	register(registry, contract.ReleaseFDBRestore, r.Release,
		func(in contract.FDBRestoreRelease) contract.ObjectRef { return in.Ref }, r)
}

func register[In any](
	registry worker.ActivityRegistry, as contract.Activity[In, contract.FDBRestoreView],
	step func(context.Context, In) (contract.FDBRestoreView, error), ref func(In) contract.ObjectRef, r *Activities,
) {
	retried := func(in In, view contract.FDBRestoreView, info activity.Info) { r.recordRetried(ref(in), view, info) }
	activities.Register(registry, as, activities.Guard(activities.NeverPaused, step, retried))
}

// sight is what an activity has read of a FoundationDBRestore.
type sight struct {
	*Objects
	namespaceEnding bool
}

func (s *sight) view() contract.FDBRestoreView {
	view := s.Objects.View()
	view.NamespaceEnding = s.namespaceEnding
	return view
}

func (r *Activities) update(
	ctx context.Context, ref contract.ObjectRef, act func(*sight) error,
) (contract.FDBRestoreView, error) {
	gather := func() (*sight, error) {
		objects, err := r.Gatherer.Gather(ctx, ref)
		if err != nil {
			return nil, err
		}
		sight := &sight{Objects: objects}
		if objects.Object != nil {
			objects.Object = objects.Object.DeepCopy()
			if !objects.Object.DeletionTimestamp.IsZero() {
				sight.namespaceEnding, err = k8s.NamespaceTerminating(ctx, r.Client, ref.Namespace)
			}
		}
		return sight, err
	}
	seen := func(s *sight) error {
		if s.Object == nil {
			return activities.ErrGone
		}
		return act(s)
	}
	return activities.Update(fdbv1alpha1.ResourceFoundationDBRestores, gather, seen, (*sight).view)
}

// Observe reads the present state and adds our finalizer while the restore may run: it keeps the object until the restore has
// ended.
func (r *Activities) Observe(ctx context.Context, step contract.FDBRestoreStep) (contract.FDBRestoreView, error) {
	return r.update(ctx, step.Ref, func(s *sight) error {
		if !s.Object.DeletionTimestamp.IsZero() || s.Object.Status.State.Final() {
			return nil
		}
		_, err := activities.PatchObject(ctx, r.Client, s.Object, func() {
			controllerutil.AddFinalizer(s.Object, fdbv1alpha1.FinalizerAbort)
		})
		return err
	})
}

// Plan records, once, what is going to be restored, so that a repeated start restores the same.
func (r *Activities) Plan(ctx context.Context, planning contract.FDBRestorePlanning) (contract.FDBRestoreView, error) {
	return r.update(ctx, planning.Ref, func(s *sight) error {
		if !s.PlanDue(planning) {
			return nil
		}
		_, err := activities.PatchStatus(ctx, r.Client, s.Object, func() { ApplyPlan(s.Object, planning.Plan) })
		return err
	})
}

// Publish writes the findings into the status.
func (r *Activities) Publish(ctx context.Context, findings contract.FDBRestoreFindings) (contract.FDBRestoreView, error) {
	return r.update(ctx, findings.Ref, func(s *sight) error {
		before := s.Object.Status.DeepCopy()
		changed, err := activities.PatchStatus(ctx, r.Client, s.Object, func() { ApplyFindings(s.Object, findings, time.Now()) })
		if !changed {
			return err
		}
		for _, event := range StatusEvents(*before, s.Object.Status) {
			kind := corev1.EventTypeNormal
			if event.Warning {
				kind = corev1.EventTypeWarning
			}
			activities.RecordEvent(r.Events, s.Object, kind, event.Reason, "Reconcile", "%s", event.Note)
		}
		if now := s.Object.Status.State; now != before.State && now.Final() {
			metrics.FDBRestoreEnded(restoretool.Word(now))
		}
		return err
	})
}

// Release removes our finalizer from an object that is being deleted, and records an Event about the state of its restore.
func (r *Activities) Release(ctx context.Context, release contract.FDBRestoreRelease) (contract.FDBRestoreView, error) {
	return r.update(ctx, release.Ref, func(s *sight) error {
		if s.Object.DeletionTimestamp.IsZero() || !controllerutil.ContainsFinalizer(s.Object, fdbv1alpha1.FinalizerAbort) {
			return nil
		}
		// The Event comes before the change: if the change is made but its answer is lost, nobody would record it. Twice is better than
		// never.
		switch {
		case release.Note == "":
		case release.Aborted:
			activities.RecordEvent(r.Events, s.Object, corev1.EventTypeWarning, eventFDBRestoreAborted, "Delete", "%s", release.Note)
		default:
			activities.RecordEvent(r.Events, s.Object, corev1.EventTypeWarning, eventFDBRestoreAbandoned, "Delete", "%s", release.Note)
		}
		_, err := activities.PatchObject(ctx, r.Client, s.Object, func() {
			controllerutil.RemoveFinalizer(s.Object, fdbv1alpha1.FinalizerAbort)
		})
		return err
	})
}

// recordRetried records an Event for a step that failed and was retried until it succeeded.
func (r *Activities) recordRetried(ref contract.ObjectRef, view contract.FDBRestoreView, info activity.Info) {
	if !view.Found {
		return
	}
	object := &fdbv1alpha1.FoundationDBRestore{ObjectMeta: metav1.ObjectMeta{
		Namespace: ref.Namespace, Name: ref.Name, UID: types.UID(ref.UID),
	}}
	activities.RecordEvent(r.Events, object, corev1.EventTypeWarning, activities.EventRetried, "Retry",
		"%s succeeded at attempt %d, %s after the first",
		info.ActivityType.Name, info.Attempt, time.Since(info.ScheduledTime).Round(time.Second))
}
