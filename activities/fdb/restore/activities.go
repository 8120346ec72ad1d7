package restore

import (
	"context"
	"time"

	"go.temporal.io/sdk/worker"
	corev1 "k8s.io/api/core/v1"
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
	activities.Cluster
	// Gatherer reads through Client.
	Gatherer *Gatherer
}

// Register registers the activities with a worker under their wire names.
func (r *Activities) Register(registry worker.ActivityRegistry) {
	object := activities.Object[sight, contract.FDBRestoreView]{
		Cluster: r.Cluster, Kind: &fdbv1alpha1.FoundationDBRestore{}, Resource: fdbv1alpha1.ResourceFoundationDBRestores,
		Gather: r.gather,
		Gone:   func(s *sight) bool { return s.Object == nil },
		View:   (*sight).view,
		Found:  func(view contract.FDBRestoreView) bool { return view.Found },
	}
	activities.RegisterStep(registry, object, contract.ObserveFDBRestore, r.Observe)
	activities.RegisterStep(registry, object, contract.PlanFDBRestore, r.Plan)
	activities.RegisterStep(registry, object, contract.PublishFDBRestore, r.Publish)
	activities.RegisterStep(registry, object, contract.ReleaseFDBRestore, r.Release)
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

func (r *Activities) gather(ctx context.Context, ref contract.ObjectRef) (*sight, error) {
	objects, err := r.Gatherer.Gather(ctx, ref)
	if err != nil {
		return nil, err
	}
	s := &sight{Objects: objects}
	if s.Object != nil && !s.Object.DeletionTimestamp.IsZero() {
		s.namespaceEnding, err = k8s.NamespaceTerminating(ctx, r.Client, ref.Namespace)
	}
	return s, err
}

// Observe reads the present state and adds our finalizer while the restore may run: it keeps the object until the restore has
// ended.
func (r *Activities) Observe(ctx context.Context, s *sight, _ contract.ObjectStep) error {
	if !s.Object.DeletionTimestamp.IsZero() || s.Object.Status.State.Final() {
		return nil
	}
	_, err := r.PatchObject(ctx, s.Object, func() {
		controllerutil.AddFinalizer(s.Object, fdbv1alpha1.FinalizerAbort)
	})
	return err
}

// Plan records, once, what is going to be restored, so that a repeated start restores the same.
func (r *Activities) Plan(ctx context.Context, s *sight, planning contract.FDBRestorePlanning) error {
	if !s.PlanDue(planning) {
		return nil
	}
	_, err := r.PatchStatus(ctx, s.Object, func() { ApplyPlan(s.Object, planning.Plan) })
	return err
}

// Publish writes the findings into the status.
func (r *Activities) Publish(ctx context.Context, s *sight, findings contract.FDBRestoreFindings) error {
	before := s.Object.Status.DeepCopy()
	changed, err := r.PatchStatus(ctx, s.Object, func() { ApplyFindings(s.Object, findings, time.Now()) })
	if !changed {
		return err
	}
	for _, event := range StatusEvents(*before, s.Object.Status) {
		kind := corev1.EventTypeNormal
		if event.Warning {
			kind = corev1.EventTypeWarning
		}
		r.Record(s.Object, kind, event.Reason, "Reconcile", "%s", event.Note)
	}
	if now := s.Object.Status.State; now != before.State && now.Final() {
		metrics.FDBRestoreEnded(restoretool.Word(now))
	}
	return err
}

// Release removes our finalizer from an object that is being deleted, and records an Event about the state of its restore.
func (r *Activities) Release(ctx context.Context, s *sight, release contract.FDBRestoreRelease) error {
	if s.Object.DeletionTimestamp.IsZero() || !controllerutil.ContainsFinalizer(s.Object, fdbv1alpha1.FinalizerAbort) {
		return nil
	}
	// The Event comes before the change: if the change is made but its answer is lost, nobody would record it. Twice is better than
	// never.
	switch {
	case release.Note == "":
	case release.Aborted:
		r.Record(s.Object, corev1.EventTypeWarning, eventFDBRestoreAborted, "Delete", "%s", release.Note)
	default:
		r.Record(s.Object, corev1.EventTypeWarning, eventFDBRestoreAbandoned, "Delete", "%s", release.Note)
	}
	_, err := r.PatchObject(ctx, s.Object, func() {
		controllerutil.RemoveFinalizer(s.Object, fdbv1alpha1.FinalizerAbort)
	})
	return err
}
