package drill

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/worker"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"holdfast.dev/holdfast/activities"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// +kubebuilder:rbac:groups=fdb.holdfast.dev,resources=foundationdbdrills,verbs=get;list;patch
// +kubebuilder:rbac:groups=fdb.holdfast.dev,resources=foundationdbdrills/status,verbs=patch
// +kubebuilder:rbac:groups=fdb.holdfast.dev,resources=foundationdbrestores,verbs=create;delete

// Activities acts on FoundationDBDrills and on the FoundationDBRestores made for them.
type Activities struct{ activities.Cluster }

// Register registers the activities with a worker under their wire names.
func (a *Activities) Register(registry worker.ActivityRegistry) {
	object := activities.Object[Objects, contract.FDBDrillView]{
		Cluster: a.Cluster, Kind: &fdbv1alpha1.FoundationDBDrill{}, Resource: fdbv1alpha1.ResourceFoundationDBDrills,
		Gather: func(ctx context.Context, ref contract.ObjectRef) (*Objects, error) { return Gather(ctx, a.Client, ref) },
		Gone:   func(o *Objects) bool { return o.Drill == nil },
		View:   (*Objects).View,
		Found:  func(view contract.FDBDrillView) bool { return view.Found },
	}
	activities.RegisterStep(registry, object, contract.ObserveFDBDrill, a.Observe)
	activities.RegisterStep(registry, object, contract.AdmitFDBDrill, a.Admit)
	activities.RegisterStep(registry, object, contract.PlanFDBDrill, a.Plan)
	activities.RegisterStep(registry, object, contract.StartFDBDrillRestore, a.Start)
	activities.RegisterStep(registry, object, contract.ConcludeFDBDrill, a.Conclude)
	activities.RegisterStep(registry, object, contract.RemoveFDBDrillRestore, a.RemoveRestore)
	activities.RegisterStep(registry, object, contract.EndFDBDrill, a.End)
}

// stays reports whether the drill is not being deleted.
func (o *Objects) stays() bool { return o.Drill.DeletionTimestamp.IsZero() }

func (a *Activities) patch(ctx context.Context, o *Objects, change func()) error {
	before := o.Drill.Status.DeepCopy()
	changed, err := a.PatchStatus(ctx, o.Drill, func() {
		change()
		o.Drill.Status.ObservedGeneration = o.Drill.Generation
	})
	if changed {
		a.recordChanges(o.Drill, before)
	}
	return err
}

// Observe reads the present state, and notes that the restore has completed, or that the target cannot be cleared.
func (a *Activities) Observe(ctx context.Context, o *Objects, step contract.FDBDrillStep) error {
	return a.patch(ctx, o, func() {
		o.mirror()
		if status := &o.Drill.Status; status.Begun != nil && status.Ended == nil && step.Uncleared != "" {
			status.Uncleared = step.Uncleared
		}
	})
}

// Admit adds our finalizer, and begins the drill or refuses it.
func (a *Activities) Admit(ctx context.Context, o *Objects, _ contract.FDBDrillStep) error {
	if !o.stays() || o.Drill.Status.Ended != nil {
		return nil
	}
	others, err := a.others(ctx, o.Drill.Namespace)
	if err != nil {
		return err
	}
	_, err = a.PatchObject(ctx, o.Drill, func() {
		controllerutil.AddFinalizer(o.Drill, fdbv1alpha1.FinalizerDrillTarget)
	})
	if err != nil {
		return err
	}
	return a.patch(ctx, o, func() { o.admit(others) })
}

// Plan writes down what is restored, and what the source holds at that version.
func (a *Activities) Plan(ctx context.Context, o *Objects, step contract.FDBDrillStep) error {
	if !o.stays() || step.Survey == nil {
		return nil
	}
	others, err := a.others(ctx, o.Drill.Namespace)
	if err != nil {
		return err
	}
	return a.patch(ctx, o, func() { o.plan(*step.Survey, others) })
}

// Start makes the FoundationDBRestore, once.
func (a *Activities) Start(ctx context.Context, o *Objects, _ contract.FDBDrillStep) error {
	status := &o.Drill.Status
	switch {
	case !o.stays() || status.Begun != nil || status.Concluded != nil || status.Version == 0:
		return nil // no longer due
	case o.changed() != "":
		return a.patch(ctx, o, func() { o.refuse(o.changed()) })
	case o.Restore == nil:
		restore := o.NewRestore()
		if err := a.Client.Create(ctx, restore); err != nil {
			return fmt.Errorf("create FoundationDBRestore %s: %w", restore.Name, err)
		}
		o.Restore = restore
	case !o.Ours():
		return a.patch(ctx, o, func() { o.conclude(nil) })
	}
	return a.patch(ctx, o, o.begin)
}

// Conclude writes the verdict.
func (a *Activities) Conclude(ctx context.Context, o *Objects, step contract.FDBDrillStep) error {
	if !o.stays() {
		return nil
	}
	return a.patch(ctx, o, func() { o.conclude(step.Check) })
}

// RemoveRestore deletes the FoundationDBRestore, whose workflow aborts it first if it runs. That it was made is noted before:
// only then is the target cleared.
func (a *Activities) RemoveRestore(ctx context.Context, o *Objects, step contract.FDBDrillStep) error {
	if !o.Ours() {
		return nil
	}
	if err := a.patch(ctx, o, o.begin); err != nil {
		return err
	}
	uid := o.Restore.UID
	err := a.Client.Delete(ctx, o.Restore, client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete FoundationDBRestore %s: %w", o.Restore.Name, err)
	}
	present, err := Gather(ctx, a.Client, step.Ref)
	if err == nil {
		*o = *present
	}
	return err
}

// End records that nothing more is done, and removes our finalizer.
func (a *Activities) End(ctx context.Context, o *Objects, step contract.FDBDrillStep) error {
	status := &o.Drill.Status
	due := status.Begun == nil || step.Cleared || status.Cleared != nil || status.Ended != nil || o.lost() != ""
	if o.Ours() || !due || (o.stays() && o.Drill.Status.Concluded == nil) {
		return nil // no longer due
	}
	if err := a.patch(ctx, o, func() { o.end(step.Cleared) }); err != nil {
		return err
	}
	_, err := a.PatchObject(ctx, o.Drill, func() {
		controllerutil.RemoveFinalizer(o.Drill, fdbv1alpha1.FinalizerDrillTarget)
	})
	if err != nil {
		return err
	}
	if !o.stays() && len(o.Drill.Finalizers) == 0 {
		return activities.ErrGone
	}
	return nil
}
