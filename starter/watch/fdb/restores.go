package fdb

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb/restoretool"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/workflows/contract"
	fdbrestore "holdfast.dev/holdfast/workflows/fdb/restore"
)

// +kubebuilder:rbac:groups=fdb.holdfast.dev,resources=foundationdbrestores,verbs=list;watch

// restores are the FoundationDBRestores.
type restores struct {
	*controllers.Kind[*fdbv1alpha1.FoundationDBRestore]
}

func newRestores(env *controllers.Env, clusters cache.Cache) *restores {
	f := &restores{}
	f.Kind = controllers.New(controllers.Kind[*fdbv1alpha1.FoundationDBRestore]{
		Env: env, Name: "foundationdbrestore", Workflow: contract.KindFDBRestore,
		Own: fdbRestores,
		Judge: judge(fdbv1alpha1.KindFoundationDBRestore, restoreSettled,
			func(object *fdbv1alpha1.FoundationDBRestore) int64 { return object.Status.ObservedGeneration }),
		Unfinished: func(object *fdbv1alpha1.FoundationDBRestore) bool { return !restoreSettled(object) },
		Further:    f.addClusters(clusters),
	})
	f.Sources = []controllers.Source{
		{Of: fdbRestores, Events: f.OwnEvents(true, controllers.Never)},
		{Of: fdbBackups, Events: f.backupEvents()},
		{Of: caches.Secrets, Events: f.secretEvents()},
		{Of: caches.Namespaces, Events: f.namespaceEvents()},
	}
	return f
}

// restoreSettled judges by the object alone.
func restoreSettled(object *fdbv1alpha1.FoundationDBRestore) bool {
	return fdbrestore.Settled(contract.FDBRestoreView{
		Found: true, BeingDeleted: !object.DeletionTimestamp.IsZero(), Held: held(object),
		Observed: object.Status.ObservedGeneration == object.Generation, State: restoretool.Word(object.Status.State),
	})
}

// eachOpen calls do for every FoundationDBRestore of a namespace that is not settled.
func (f *restores) eachOpen(ctx context.Context, namespace string, do func(*fdbv1alpha1.FoundationDBRestore)) {
	f.Each(ctx, func(object *fdbv1alpha1.FoundationDBRestore) {
		if !restoreSettled(object) {
			do(object)
		}
	}, client.InNamespace(namespace))
}
