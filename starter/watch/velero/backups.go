package velero

import (
	"context"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/backup"
	turns "holdfast.dev/holdfast/activities/queue"
	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/controllers"
	backupworkflow "holdfast.dev/holdfast/workflows/backup"
	"holdfast.dev/holdfast/workflows/contract"
)

// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminbackups,verbs=list;watch
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backups,verbs=list;watch
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=deletebackuprequests;podvolumebackups;datauploads,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch

// backups are the NonAdminBackups.
type backups struct {
	served[*oadpv1alpha1.NonAdminBackup]
}

func newBackups(env *Env) *backups {
	b := &backups{served[*oadpv1alpha1.NonAdminBackup]{
		env: env, pool: contract.PoolBackups, origin: owner.Backup, made: veleroBackups, volumeLabel: velerov1.BackupNameLabel,
		moved: func(before, after client.Object) bool {
			return before.(*velerov1.Backup).Status.QueuePosition != after.(*velerov1.Backup).Status.QueuePosition
		},
		atOnce: controllers.Never, deletion: deletionOf,
	}}
	b.Kind = controllers.New(controllers.Kind[*oadpv1alpha1.NonAdminBackup]{
		Env: env.Env, Name: "nonadminbackup", Workflow: contract.KindBackup,
		Own: nonAdminBackups, Shared: true, InTurns: true,
		Sources: []controllers.Source{
			{Of: nonAdminBackups, Events: controllers.Both(b.events(), b.placeEvents())},
			{Of: veleroBackups, Events: b.veleroEvents()},
			{Of: deleteRequests, Events: b.deleteRequestEvents()},
			{Of: nonAdminLocations, Events: b.locationEvents()},
			{Of: veleroLocations, Events: b.locationEvents()},
			{Of: caches.Namespaces, Events: controllers.Both(b.namespaceEvents(), b.quotaEvents())},
			{Of: podVolumeBackups, Events: b.volumeEvents()},
			{Of: dataUploads, Events: b.volumeEvents()},
			{Of: restoreDrills, Events: b.drillEvents()},
		},
		Judge: b.judge,
		PolicyMatters: func(nab *oadpv1alpha1.NonAdminBackup) bool {
			return b.backingOff(nab) || k8s.WaitsForTurn(nab.Status.Conditions)
		},
		Phases: metrics.NonAdminBackups,
		Census: b.count, Unfinished: unfinishedBackup,
	})
	return b
}

func (b *backups) judge(ctx context.Context, from client.Reader, ref contract.ObjectRef) (controllers.View, error) {
	gatherer := &backup.Gatherer{
		Reader: from, Policy: b.env.Policy, ClusterID: b.ClusterID, OADPNamespace: b.OADPNamespace, Cached: true,
	}
	o, err := gatherer.Gather(ctx, ref)
	if err != nil || o.NAB == nil {
		return controllers.View{}, err
	}
	if o.Rules != nil { // otherwise there is no verdict, or none on a spec
		o.Verdict = omittedBackup.verdict(o.Verdict, o.NAB)
	}
	err = caches.Each(ctx, b.Client, restoreDrills.Object, func(drill client.Object) {
		o.NoteDrill(drill.(*holdfastv1alpha1.RestoreDrill))
	}, client.InNamespace(ref.Namespace))
	if err != nil {
		return controllers.View{}, err
	}
	view := o.View(time.Now())
	return b.inTurn(ctx, o.NAB, controllers.View{
		Found: true, Due: !backupworkflow.Settled(view),
		Unstarted:  (o.Backup == nil && b.awaitsCreation(o.NAB) && !o.DeletionRequested()) || b.beginsDeletion(o, view),
		Waits:      backupworkflow.AwaitsVelero(view),
		VeleroName: o.BackupName, Uncounted: uncounted(o), Again: untilPlace(o, time.Now()), Drill: o.DrillDue(),
	}, view.AwaitsTurn, o.Backup == nil && turns.Awaits(o.NAB, b.ClusterID)), nil
}

// deletionOf is what the spec of a backup says about its deletion, empty if nothing.
func deletionOf(object client.Object) string {
	switch spec := object.(*oadpv1alpha1.NonAdminBackup).Spec; {
	case spec.ForceDeleteBackup:
		return "force"
	case spec.DeleteBackup:
		return "with its data"
	}
	return ""
}

// beginsDeletion reports whether a backup that has started is to be deleted, and its status does not announce that yet. Thousands
// that are deleted at once take turns with those that start. What a terminating namespace releases does not wait.
func (b *backups) beginsDeletion(o *backup.Objects, view contract.BackupView) bool {
	return o.DeletionRequested() && !b.awaitsCreation(o.NAB) && o.NAB.Status.Phase != oadpv1alpha1.NonAdminPhaseDeleting &&
		!view.NamespaceTerminating && !backupworkflow.Settled(view)
}

// uncounted reports whether a backup that has volumes counts none in its status. A workflow can count them as long as the
// Velero Backup exists, also after the end: the watcher may have seen them too late, or not have run.
func uncounted(o *backup.Objects) bool {
	return o.Backup != nil && o.Backup.Status.StartTimestamp != nil &&
		o.NAB.Status.DataMoverDataUploads == nil && o.NAB.Status.FileSystemPodVolumeBackups == nil
}
