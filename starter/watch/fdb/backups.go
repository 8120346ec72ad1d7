package fdb

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fdb/gather"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/workflows/contract"
	fdbbackup "holdfast.dev/holdfast/workflows/fdb/backup"
)

// +kubebuilder:rbac:groups=fdb.holdfast.dev,resources=foundationdbbackups,verbs=list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch

// backups are the FoundationDBBackups.
type backups struct {
	*controllers.Kind[*fdbv1alpha1.FoundationDBBackup]
	// clusters reads FoundationDBClusters from a cache of their own.
	clusters client.Reader
}

func newBackups(env *controllers.Env, clusters cache.Cache) *backups {
	f := &backups{clusters: clusters}
	f.Kind = controllers.New(controllers.Kind[*fdbv1alpha1.FoundationDBBackup]{
		Env: env, Name: "foundationdbbackup", Workflow: contract.KindFDBBackup,
		Own: fdbBackups,
		Judge: judge(fdbv1alpha1.KindFoundationDBBackup, settled,
			func(object *fdbv1alpha1.FoundationDBBackup) int64 { return object.Status.ObservedGeneration }),
		// If Temporal loses its database, it loses who uses which container, and whose data expire.
		SignalIfLost: idleWithData,
		Census:       f.count,
		Further:      f.addClusters(clusters),
	})
	f.Sources = []controllers.Source{
		{Of: fdbBackups, Events: f.backupEvents()},
		{Of: agents, Events: f.agentsEvents()},
		{Of: caches.Secrets, Events: f.secretEvents()},
		{Of: caches.Namespaces, Events: f.namespaceEvents()},
	}
	return f
}

func settled(object *fdbv1alpha1.FoundationDBBackup) bool {
	return fdbbackup.Settled((&gather.Objects{Object: object}).View())
}

// idleWithData: only a signal starts the workflow of the object, and its data are in the store; a guard and the queue of
// expirations must know of them.
func idleWithData(object *fdbv1alpha1.FoundationDBBackup) bool {
	return settled(object) && len(object.Status.Backups) > 0
}
