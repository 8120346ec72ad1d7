package watch

import (
	"context"
	"errors"
)

// The further rights of a watcher that serves FoundationDB: it reads, and writes nothing but, on FoundationDBBackups, the version
// of the cluster. `make generate` writes deploy/components/fdb/rbac/watcher_role.yaml.
//
// +kubebuilder:rbac:groups=fdb.holdfast.dev,resources=foundationdbbackups,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=fdb.holdfast.dev,resources=foundationdbrestores,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.foundationdb.org,resources=foundationdbclusters,verbs=list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch

// foundationDB is the watchers of FoundationDB's kinds. A nil one watches nothing.
type foundationDB struct {
	backups  *fdbBackups
	restores *fdbRestores
	// expiries watches the pods that expire and delete backups.
	expiries *fdbExpiries
}

// addFoundationDB adds the watchers to the manager, if they are wanted.
func (w *Watcher) addFoundationDB() error {
	if !w.FoundationDB {
		return nil
	}
	w.fdb = &foundationDB{}
	return errors.Join(w.addFDBBackups(), w.addFDBExpiries())
}

// sweep judges every object by live lists, while the informers may still be silent after an outage.
func (f *foundationDB) sweep(ctx context.Context) error {
	if f == nil {
		return nil
	}
	return errors.Join(f.backups.sweep(ctx), f.restores.sweep(ctx))
}

// remindAll has every object looked at soon.
func (f *foundationDB) remindAll(ctx context.Context) {
	if f != nil {
		f.backups.remindAll(ctx)
		f.restores.lookAtAll(ctx)
	}
}
