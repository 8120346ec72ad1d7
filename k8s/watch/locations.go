package watch

import (
	"context"
	"fmt"
	"sync"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/location"
	"holdfast.dev/holdfast/workflows/contract"
)

// locations turns the events of NonAdminBackupStorageLocations, and of what belongs to them, into signals for their own
// workflow and for that of their approval.
type locations struct {
	*Watcher
	*intake  // its own, not the Watcher's
	gatherer *location.Gatherer
	// approving are the approvals that this watcher knows to be open.
	approving sync.Map
}

var secretKind = corev1.SchemeGroupVersion.WithKind("Secret")

// addLocations adds the watcher of storage locations to the manager.
func (w *Watcher) addLocations() error {
	l := &locations{
		Watcher: w,
		gatherer: &location.Gatherer{
			Reader: w.manager.GetClient(), Policy: w.policy, ClusterID: w.ClusterID, OADPNamespace: w.OADPNamespace,
		},
		intake: newIntake(),
	}
	w.locations = l
	controller := builder.TypedControllerManagedBy[Request](w.manager).
		Named("nonadminbackupstoragelocation").
		Watches(&oadpv1alpha1.NonAdminBackupStorageLocation{}, l.locationEvents()).
		Watches(&velerov1.BackupStorageLocation{}, l.veleroEvents()).
		Watches(&oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest{}, l.requestEvents()).
		WatchesMetadata(&corev1.Secret{}, l.secretEvents())
	if err := l.feed(controller, l.look); err != nil {
		return fmt.Errorf("build the watcher of NonAdminBackupStorageLocations: %w", err)
	}
	return nil
}

// look signals the workflows of a location that is not settled. It comes again after the resync interval.
func (l *locations) look(ctx context.Context, request Request) (reconcile.Result, error) {
	return l.attend(l.Watcher, request, func(ref contract.ObjectRef, came time.Time) (reconcile.Result, error) {
		objects, err := l.gatherer.Gather(ctx, ref)
		unseen := err == nil && incomplete(objects)
		if err == nil {
			err = l.signal(ctx, ref, objects, request.Force || unseen, func(kind string, err error) error {
				return l.measured(kind, ref, came, err)
			})
		}
		if err != nil || request.Force || objects.Location == nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{RequeueAfter: l.ResyncInterval}, nil
	})
}

// signal tells the approval first: it must be closed when its location is gone, which nothing else would tell again after a
// kill between the two.
func (l *locations) signal(
	ctx context.Context, ref contract.ObjectRef, o *location.Objects, force bool, measured func(string, error) error,
) error {
	if err := l.signalApproval(ctx, ref, o, force, measured); err != nil {
		return err
	}
	switch {
	case o.Location == nil && location.Settled(o.View()):
		gone := contract.Changed{Reason: "deleted"}
		return measured(contract.KubernetesKindLocation, l.Workflows.SignalRunning(ctx, contract.KindLocation, ref, gone))
	case force || !location.Settled(o.View()):
		changed := contract.Changed{Reason: "changed"}
		return measured(contract.KubernetesKindLocation, l.Workflows.SignalWithStart(ctx, contract.KindLocation, ref, changed))
	}
	return nil
}

// signalApproval keeps the approval's workflow open as long as it is needed, and tells it when something is due, or is decided
// and waits: it shows that. With force it is told whatever the cache says.
func (l *locations) signalApproval(
	ctx context.Context, ref contract.ObjectRef, o *location.Objects, force bool, measured func(string, error) error,
) error {
	view := o.Approval()
	changed := contract.Changed{Reason: "changed"}
	waits := location.NextApproval(view) == contract.ApprovalWait && !location.DecisionWaits(view)
	switch {
	case view.Needed && view.Found && waits && !force:
		l.approving.Store(ref, true)
		return measured(contract.KubernetesKindApproval, l.Workflows.Ensure(ctx, contract.KindApproval, ref))
	case view.Needed && view.Found:
		l.approving.Store(ref, true)
		return measured(contract.KubernetesKindApproval, l.Workflows.SignalWithStart(ctx, contract.KindApproval, ref, changed))
	}
	if _, open := l.approving.Load(ref); !open && o.Request == nil {
		return nil
	}
	err := measured(contract.KubernetesKindApproval, l.Workflows.SignalRunning(ctx, contract.KindApproval, ref, changed))
	if err == nil {
		l.approving.Delete(ref)
	}
	return err
}

// eachLocation calls do for every NonAdminBackupStorageLocation in the cache that matches. The objects are the cache's own.
func (l *locations) eachLocation(
	ctx context.Context, do func(*oadpv1alpha1.NonAdminBackupStorageLocation), matching ...client.ListOption,
) {
	eachCached(ctx, l.Watcher, &oadpv1alpha1.NonAdminBackupStorageLocationList{}, do, matching...)
}

// lookAtAll has every location looked at soon.
func (l *locations) lookAtAll(ctx context.Context) {
	l.eachLocation(ctx, func(object *oadpv1alpha1.NonAdminBackupStorageLocation) {
		l.enqueue(ctx, requestFor(object))
	})
}
