package location

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"holdfast.dev/holdfast/activities"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// Activities acts on NonAdminBackupStorageLocations, on what is made for them in the OADP namespace, and on the requests for
// their approval.
type Activities struct {
	// Client reads from and writes to the API server itself.
	Client client.Client
	// Gatherer reads through Client, Secrets too.
	Gatherer *Gatherer
	// Events writes Events for the tenant; best effort.
	Events events.EventRecorder
	// Paused returns an error while another controller serves these kinds; nothing is done then.
	Paused func() error
	// DecisionsOff returns why decisions through Temporal do not count, nil while they do.
	DecisionsOff func() error
	// Identity says which Temporal client sent a decision.
	Identity func(context.Context, contract.DecisionStep) (string, error)
}

// Register registers the activities with a worker under their wire names.
func (l *Activities) Register(registry worker.ActivityRegistry) {
	retried := func(in contract.LocationStep, _ contract.LocationView, info activity.Info) {
		l.recordRetried(in.Ref, info)
	}
	activities.Register(registry, contract.RefreshLocation, activities.Guard(l.Paused, l.Refresh, retried))
	activities.Register(registry, contract.AdmitLocation, activities.Guard(l.Paused, l.Admit, retried))
	activities.Register(registry, contract.SyncLocation, activities.Guard(l.Paused, l.Sync, retried))
	activities.Register(registry, contract.WithdrawLocation, activities.Guard(l.Paused, l.Withdraw, retried))
	activities.Register(registry, contract.DeleteLocation, activities.Guard(l.Paused, l.Delete, retried))
	activities.Register(registry, contract.ReleaseLocation, activities.Guard(l.Paused, l.Release, retried))
	l.registerApproval(registry)
}

// errUnchanged from what update calls says that it wrote nothing: what was read is the present state.
var errUnchanged = errors.New("nothing was written")

// update reads the location and all that belongs to it, calls act, and reads again if act wrote. After a conflict with another
// writer it starts over. act may change its argument.
func (l *Activities) update(
	ctx context.Context, ref contract.ObjectRef, act func(*Objects) error,
) (*Objects, error) {
	var objects *Objects
	conflicts := activities.Conflicts(oadpv1alpha1.ResourceNonAdminBackupStorageLocations)
	err := retry.OnError(activities.ConflictBackoff(), conflicts, func() error {
		var err error
		if objects, err = l.Gatherer.Gather(ctx, ref); err != nil {
			return err
		}
		switch err := act(objects); {
		case errors.Is(err, errUnchanged):
			return nil
		case err != nil && !errors.Is(err, activities.ErrGone):
			return err
		}
		objects, err = l.Gatherer.Gather(ctx, ref)
		return err
	})
	return objects, err
}

func (l *Activities) step(
	ctx context.Context, step contract.LocationStep, act func(*Objects) error,
) (contract.LocationView, error) {
	return l.view(ctx, step, ifThere(act))
}

func (l *Activities) view(
	ctx context.Context, step contract.LocationStep, act func(*Objects) error,
) (contract.LocationView, error) {
	objects, err := l.update(ctx, step.Ref, act)
	if err != nil {
		return contract.LocationView{}, err
	}
	return objects.View(), nil
}

// ifThere does nothing for a deleted location.
func ifThere(act func(*Objects) error) func(*Objects) error {
	return func(o *Objects) error {
		if o.Location == nil {
			return errUnchanged
		}
		return act(o)
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
	changed, err := activities.PatchStatus(ctx, l.Client, o.Location, func() {
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
func (l *Activities) Refresh(ctx context.Context, step contract.LocationStep) (contract.LocationView, error) {
	return l.step(ctx, step, func(o *Objects) error {
		if !o.Location.DeletionTimestamp.IsZero() || len(o.Location.Status.Conditions) == 0 {
			return errUnchanged // nothing to show, or nobody to read it
		}
		changed, err := l.showChanges(ctx, o, unchanged)
		if err == nil && !changed {
			return errUnchanged
		}
		return err
	})
}

// Admit validates the present spec and writes the verdict: the Accepted condition and, for an accepted spec, the name of what
// will be made, our finalizer and, if the policy requires approval, the approval request.
func (l *Activities) Admit(ctx context.Context, step contract.LocationStep) (contract.LocationView, error) {
	return l.step(ctx, step, func(o *Objects) error {
		if !o.Location.DeletionTimestamp.IsZero() {
			return nil
		}
		if err := l.show(ctx, o, o.ApplyVerdict); err != nil {
			return err
		}
		if o.Usable() || o.Velero != nil { // a user's replace may have removed it
			_, err := activities.PatchObject(ctx, l.Client, o.Location, func() {
				controllerutil.AddFinalizer(o.Location, oadpv1alpha1.NabslFinalizer)
			})
			if err != nil {
				return err
			}
		}
		return l.keepRequest(ctx, o)
	})
}

// keepRequest makes an approval request if the policy requires approval, and deletes it otherwise.
func (l *Activities) keepRequest(ctx context.Context, o *Objects) error {
	switch required := o.Rules.RequireApproval(); {
	case required && o.Request == nil && o.Usable():
		request := o.NewRequest()
		if err := l.Client.Create(ctx, request); err != nil {
			return fmt.Errorf("create approval request %s: %w", client.ObjectKeyFromObject(request), asConflict(err))
		}
	case !required && o.Request != nil:
		return l.delete(ctx, o.Request)
	}
	return nil
}

// asConflict: an earlier attempt of ours has made what exists already, or somebody else: the next read shows which.
func asConflict(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return apierrors.NewConflict(oadpv1alpha1.Resource("objects"), "of that name", err)
	}
	return err
}

// delete deletes the very object that was read; if it is gone, that is success.
func (l *Activities) delete(ctx context.Context, object client.Object) error {
	uid := object.GetUID()
	err := l.Client.Delete(ctx, object, client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// Withdraw deletes the Velero BackupStorageLocation and the Secret of a location without a spec in force.
func (l *Activities) Withdraw(ctx context.Context, step contract.LocationStep) (contract.LocationView, error) {
	return l.step(ctx, step, func(o *Objects) error {
		if spec, _ := o.InForce(); spec != nil || !o.Rules.RequireApproval() || !o.Location.DeletionTimestamp.IsZero() {
			return nil // no longer due
		}
		if err := l.deleteMade(ctx, o); err != nil {
			return err
		}
		o.Velero, o.Copy = nil, nil
		return l.show(ctx, o, unchanged)
	})
}

func (l *Activities) deleteMade(ctx context.Context, o *Objects) error {
	if o.Copy != nil {
		secret := &corev1.Secret{ObjectMeta: o.Copy.ObjectMeta}
		if err := l.delete(ctx, secret); err != nil {
			return err
		}
	}
	if o.Velero != nil {
		return l.delete(ctx, o.Velero)
	}
	return nil
}

// Delete carries out the deletion except its end (docs/tenants.md, "Delete a location"): it deletes the approval request,
// the Secret, the Velero BackupStorageLocation, and then the tenant's NonAdminBackups in the location, for whose end it does not
// wait. It does so too for a location that is gone, because its tenant removed the finalizer.
func (l *Activities) Delete(ctx context.Context, step contract.LocationStep) (contract.LocationView, error) {
	return l.view(ctx, step, func(o *Objects) error {
		if o.Location != nil {
			if o.Location.DeletionTimestamp.IsZero() {
				return nil
			}
			if err := l.show(ctx, o, ApplyDeleting); err != nil {
				return err
			}
		}
		if o.Request != nil {
			if err := l.delete(ctx, o.Request); err != nil {
				return err
			}
		}
		if err := l.deleteMade(ctx, o); err != nil {
			return err
		}
		for i := range o.Backups {
			if err := l.delete(ctx, &o.Backups[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// Release removes our finalizer when nothing remains, so that the object is deleted.
func (l *Activities) Release(ctx context.Context, step contract.LocationStep) (contract.LocationView, error) {
	return l.step(ctx, step, func(o *Objects) error {
		if o.Location.DeletionTimestamp.IsZero() || o.View().Remains > 0 {
			return nil
		}
		released, err := activities.PatchObject(ctx, l.Client, o.Location, func() {
			controllerutil.RemoveFinalizer(o.Location, oadpv1alpha1.NabslFinalizer)
		})
		if released {
			l.recordReleased(o.Location)
		}
		return err
	})
}
