package velero

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/location"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/workflows/approval"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
	locationworkflow "holdfast.dev/holdfast/workflows/location"
)

// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminbackupstoragelocations,verbs=list;watch
// +kubebuilder:rbac:groups=oadp.openshift.io,namespace=openshift-adp,resources=nonadminbackupstoragelocationapprovalrequests,verbs=list;watch
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backupstoragelocations,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch

// locations are the NonAdminBackupStorageLocations, each with its approval.
type locations struct {
	*controllers.Kind[*oadpv1alpha1.NonAdminBackupStorageLocation]
	env *Env
	// approving are the approvals that this watcher knows to be open.
	approving sync.Map
}

func newLocations(env *Env) *locations {
	l := &locations{env: env}
	l.Kind = controllers.New(controllers.Kind[*oadpv1alpha1.NonAdminBackupStorageLocation]{
		Env: env.Env, Name: "nonadminbackupstoragelocation", Workflow: contract.KindLocation,
		Own: nonAdminLocations, Shared: true,
		Judge: l.judge,
		// Approval may be required now, or no longer.
		PolicyMatters: func(*oadpv1alpha1.NonAdminBackupStorageLocation) bool { return true },
		Phases:        metrics.StorageLocations,
		Census:        l.count,
	})
	l.Sources = []controllers.Source{
		{Of: nonAdminLocations, Events: l.locationEvents()},
		{Of: veleroLocations, Events: l.veleroEvents()},
		{Of: approvalRequests, Events: l.requestEvents()},
		{Of: caches.Secrets, Events: l.secretEvents()},
	}
	return l
}

func (l *locations) judge(ctx context.Context, from client.Reader, ref contract.ObjectRef) (controllers.View, error) {
	gatherer := &location.Gatherer{
		Reader: from, Policy: l.env.Policy, ClusterID: l.ClusterID, OADPNamespace: l.OADPNamespace,
	}
	o, err := gatherer.Gather(ctx, ref)
	if err != nil {
		return controllers.View{}, err
	}
	settled := locationworkflow.Settled(o.View())
	return controllers.View{
		Found: o.Location != nil, Due: !settled, Ended: o.Location == nil && settled, Partly: incomplete(o),
		// The approval must be closed when its location is gone; after a kill between the two no event would do it.
		First: func(ctx context.Context, send controllers.Send, force bool) error {
			return l.signalApproval(ctx, ref, o, send, force)
		},
	}, nil
}

// signalApproval keeps the approval's workflow open as long as it is needed, and signals it when a step is due, or when a
// request is decided and waits, which it shows. With force it signals whatever the cache holds.
func (l *locations) signalApproval(
	ctx context.Context, ref contract.ObjectRef, o *location.Objects, send controllers.Send, force bool,
) error {
	view := o.Approval()
	changed := contract.Changed{Reason: "changed"}
	waits := approval.NextApproval(view) == contract.ApprovalWait && !approval.DecisionWaits(view)
	switch {
	case view.Needed && view.Found && waits && !force:
		l.approving.Store(ref, true)
		return send(contract.KindApproval.Kubernetes, func(workflows connect.Workflows) error {
			return workflows.Ensure(ctx, contract.KindApproval, ref)
		})
	case view.Needed && view.Found:
		l.approving.Store(ref, true)
		return send(contract.KindApproval.Kubernetes, func(workflows connect.Workflows) error {
			return workflows.SignalWithStart(ctx, contract.KindApproval, ref, changed)
		})
	}
	if _, open := l.approving.Load(ref); !open && o.Request == nil {
		return nil
	}
	err := send(contract.KindApproval.Kubernetes, func(workflows connect.Workflows) error {
		return workflows.SignalRunning(ctx, contract.KindApproval, ref, changed)
	})
	if err == nil {
		l.approving.Delete(ref)
	}
	return err
}
