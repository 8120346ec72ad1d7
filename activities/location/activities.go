package location

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/worker"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"holdfast.dev/holdfast/activities"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// Activities acts on NonAdminBackupStorageLocations, on what is made for them in the OADP namespace, and on the requests for
// their approval.
type Activities struct {
	activities.Cluster
	// Gatherer reads through Client, Secrets too.
	Gatherer *Gatherer
	// DecisionsOff returns why decisions through Temporal do not count, nil while they do.
	DecisionsOff func() error
	// Identity says which Temporal client sent a decision.
	Identity func(context.Context, contract.DecisionStep) (string, error)
}

// Register registers the activities with a worker under their wire names.
func (l *Activities) Register(registry worker.ActivityRegistry) {
	locations := l.locations()
	activities.RegisterStep(registry, locations, contract.RefreshLocation, l.Refresh)
	activities.RegisterStep(registry, locations, contract.AdmitLocation, l.Admit)
	activities.RegisterWhole(registry, locations, contract.SyncLocation, l.Sync)
	activities.RegisterStep(registry, locations, contract.WithdrawLocation, l.Withdraw)
	activities.RegisterStep(registry, locations, contract.ReleaseLocation, l.Release)
	locations.Outlived = true
	activities.RegisterStep(registry, locations, contract.DeleteLocation, l.Delete)
	approvals := l.approvals()
	activities.RegisterStep(registry, approvals, contract.RefreshApproval, l.RefreshApproval)
	activities.RegisterStep(registry, approvals, contract.AdvanceApproval, l.AdvanceApproval)
	activities.RegisterWhole(registry, approvals, contract.DecideApproval, l.Decide)
}

func (l *Activities) locations() activities.Object[Objects, contract.LocationView] {
	return object(l, (*Objects).View)
}

func (l *Activities) approvals() activities.Object[Objects, contract.ApprovalView] {
	return object(l, (*Objects).Approval)
}

func object[View any](l *Activities, view func(*Objects) View) activities.Object[Objects, View] {
	return activities.Object[Objects, View]{
		Cluster: l.Cluster, Kind: &oadpv1alpha1.NonAdminBackupStorageLocation{},
		Resource: oadpv1alpha1.ResourceNonAdminBackupStorageLocations,
		Gather:   l.Gatherer.Gather,
		Gone:     func(o *Objects) bool { return o.Location == nil },
		Rereads:  true,
		View:     view,
		Found:    func(View) bool { return true },
	}
}

// show updates the status, after change has done its part, and writes Events for what is new in it.
func (l *Activities) show(
	ctx context.Context, o *Objects, change func(*oadpv1alpha1.NonAdminBackupStorageLocation),
) error {
	_, err := l.showChanges(ctx, o, change)
	return err
}

// showChanges is show; it reports whether the status changed.
func (l *Activities) showChanges(
	ctx context.Context, o *Objects, change func(*oadpv1alpha1.NonAdminBackupStorageLocation),
) (bool, error) {
	before := o.Location.DeepCopy()
	changed, err := l.PatchStatus(ctx, o.Location, func() {
		change(o.Location)
		if o.Location.DeletionTimestamp.IsZero() {
			o.Show(o.Location)
		}
	})
	if changed {
		l.recordChanges(before, o.Location)
	}
	return changed, err
}

func unchanged(*oadpv1alpha1.NonAdminBackupStorageLocation) {}

// Refresh reads the present state and updates the status.
func (l *Activities) Refresh(ctx context.Context, o *Objects, _ contract.ObjectStep) error {
	if !o.Location.DeletionTimestamp.IsZero() || len(o.Location.Status.Conditions) == 0 {
		return activities.ErrUnchanged // nothing to show, or nobody to read it
	}
	changed, err := l.showChanges(ctx, o, unchanged)
	if err == nil && !changed {
		return activities.ErrUnchanged
	}
	return err
}

// Admit validates the present spec and writes the verdict: the Accepted condition and, for an accepted spec, the name of what
// will be made, our finalizer and, if the policy requires approval, the approval request.
func (l *Activities) Admit(ctx context.Context, o *Objects, _ contract.ObjectStep) error {
	if !o.Location.DeletionTimestamp.IsZero() {
		return nil
	}
	if err := l.show(ctx, o, o.ApplyVerdict); err != nil {
		return err
	}
	if o.Usable() || o.Velero != nil { // a user's replace may have removed it
		_, err := l.PatchObject(ctx, o.Location, func() {
			controllerutil.AddFinalizer(o.Location, oadpv1alpha1.NabslFinalizer)
		})
		if err != nil {
			return err
		}
	}
	return l.keepRequest(ctx, o)
}

// keepRequest makes an approval request if the policy requires approval, and deletes it otherwise.
func (l *Activities) keepRequest(ctx context.Context, o *Objects) error {
	switch required := o.Rules.RequireApproval(); {
	case required && o.Request == nil && o.Usable():
		request := o.NewRequest()
		if err := l.Client.Create(ctx, request); err != nil {
			return fmt.Errorf("create approval request %s: %w", client.ObjectKeyFromObject(request), activities.AsConflict(err))
		}
	case !required && o.Request != nil:
		return l.Cluster.Delete(ctx, o.Request)
	}
	return nil
}

// Withdraw deletes the Velero BackupStorageLocation and the Secret of a location without a spec in force.
func (l *Activities) Withdraw(ctx context.Context, o *Objects, _ contract.ObjectStep) error {
	if spec, _ := o.InForce(); spec != nil || !o.Rules.RequireApproval() || !o.Location.DeletionTimestamp.IsZero() {
		return nil // no longer due
	}
	if err := l.deleteMade(ctx, o); err != nil {
		return err
	}
	o.Velero, o.Copy = nil, nil
	return l.show(ctx, o, unchanged)
}

func (l *Activities) deleteMade(ctx context.Context, o *Objects) error {
	if o.Copy != nil {
		secret := &corev1.Secret{ObjectMeta: o.Copy.ObjectMeta}
		if err := l.Cluster.Delete(ctx, secret); err != nil {
			return err
		}
	}
	if o.Velero != nil {
		return l.Cluster.Delete(ctx, o.Velero)
	}
	return nil
}

// Delete carries out the deletion except its end (docs/tenants.md, "Delete a location"): it deletes the approval request,
// the Secret, the Velero BackupStorageLocation, and then the tenant's NonAdminBackups in the location, for whose end it does not
// wait. It does so too for a location that is gone, because its tenant removed the finalizer.
func (l *Activities) Delete(ctx context.Context, o *Objects, _ contract.ObjectStep) error {
	if o.Location != nil {
		if o.Location.DeletionTimestamp.IsZero() {
			return nil
		}
		if err := l.show(ctx, o, ApplyDeleting); err != nil {
			return err
		}
	}
	if o.Request != nil {
		if err := l.Cluster.Delete(ctx, o.Request); err != nil {
			return err
		}
	}
	if err := l.deleteMade(ctx, o); err != nil {
		return err
	}
	for i := range o.Backups {
		if err := l.Cluster.Delete(ctx, &o.Backups[i]); err != nil {
			return err
		}
	}
	return nil
}

// Release removes our finalizer when nothing remains, so that the object is deleted.
func (l *Activities) Release(ctx context.Context, o *Objects, _ contract.ObjectStep) error {
	if o.Location.DeletionTimestamp.IsZero() || o.View().Remains > 0 {
		return nil
	}
	released, err := l.PatchObject(ctx, o.Location, func() {
		controllerutil.RemoveFinalizer(o.Location, oadpv1alpha1.NabslFinalizer)
	})
	if released {
		l.recordReleased(o.Location)
	}
	return err
}
