package velero

import (
	"context"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	turns "holdfast.dev/holdfast/activities/queue"
	"holdfast.dev/holdfast/activities/restore"
	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/workflows/contract"
	restoreworkflow "holdfast.dev/holdfast/workflows/restore"
)

// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminrestores,verbs=list;watch
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=restores,verbs=list;watch
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=podvolumerestores;datadownloads,verbs=list;watch

// restores are the NonAdminRestores.
type restores struct {
	served[*oadpv1alpha1.NonAdminRestore]
}

func newRestores(env *Env) *restores {
	r := &restores{served[*oadpv1alpha1.NonAdminRestore]{
		env: env, pool: contract.PoolRestores, origin: owner.Restore, made: veleroRestores, volumeLabel: velerov1.RestoreNameLabel,
		moved: controllers.Never,
		atOnce: func(before, after client.Object) bool {
			return !before.GetDeletionTimestamp().Equal(after.GetDeletionTimestamp())
		},
	}}
	r.Kind = controllers.New(controllers.Kind[*oadpv1alpha1.NonAdminRestore]{
		Env: env.Env, Name: "nonadminrestore", Workflow: contract.KindRestore,
		Own: nonAdminRestores, Shared: true, InTurns: true,
		Sources: []controllers.Source{
			{Of: nonAdminRestores, Events: r.events()},
			{Of: veleroRestores, Events: r.veleroEvents()},
			{Of: nonAdminBackups, Events: r.backupEvents()},
			{Of: veleroBackups, Events: r.veleroBackupEvents()},
			{Of: veleroLocations, Events: r.locationEvents()},
			{Of: caches.Namespaces, Events: r.namespaceEvents()},
			{Of: podVolumeRestores, Events: r.volumeEvents()},
			{Of: dataDownloads, Events: r.volumeEvents()},
		},
		Judge: r.judge,
		PolicyMatters: func(nar *oadpv1alpha1.NonAdminRestore) bool {
			return r.backingOff(nar) || k8s.WaitsForTurn(nar.Status.Conditions)
		},
		Phases: metrics.NonAdminRestores,
		Census: r.count, Unfinished: unfinishedRestore,
	})
	return r
}

func (r *restores) judge(ctx context.Context, from client.Reader, ref contract.ObjectRef) (controllers.View, error) {
	gatherer := &restore.Gatherer{
		Reader: from, Policy: r.env.Policy, ClusterID: r.ClusterID, OADPNamespace: r.OADPNamespace,
	}
	o, err := gatherer.Gather(ctx, ref)
	if err != nil || o.NAR == nil {
		return controllers.View{}, err
	}
	if o.Rules != nil {
		o.Verdict = omittedRestore.verdict(o.Verdict, o.NAR)
	}
	view := o.View()
	return r.inTurn(ctx, o.NAR, controllers.View{
		Found: true, Due: !restoreworkflow.Settled(view),
		Unstarted:  o.Restore == nil && r.awaitsCreation(o.NAR) && !lifecycle.DeletionRequested(o.NAR),
		Waits:      restoreworkflow.AwaitsVelero(view),
		VeleroName: o.RestoreName, Uncounted: uncountedRestore(o),
	}, view.AwaitsTurn, o.Restore == nil && turns.Awaits(o.NAR, r.ClusterID)), nil
}

// uncountedRestore reports whether a restore that has volumes counts none in its status.
func uncountedRestore(o *restore.Objects) bool {
	return o.Restore != nil && o.Restore.Status.StartTimestamp != nil &&
		o.NAR.Status.DataMoverDataDownloads == nil && o.NAR.Status.FileSystemPodVolumeRestores == nil
}
