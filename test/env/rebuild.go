package env

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"
)

// Rebuild stops everything, throws away what the API server has stored, and starts everything again with the kinds, roles and
// the storage location of a new installation. Buckets and Temporal keep what they hold. Namespaces of tenants are gone.
func (e *Env) Rebuild(ctx context.Context) error {
	e.stopAll(Worker, Watcher)
	e.stopAll(Velero, KubeControllerManager)
	e.stopAll(KubeAPIServer, Temporal, S3)
	e.stopAll(Etcd)
	if err := os.RemoveAll(e.path("data", "etcd")); err != nil {
		return fmt.Errorf("throw away the API server's data: %w", err)
	}
	if err := e.restart(ctx, [][]string{{S3}, {Temporal}, {Etcd, KubeAPIServer, KubeControllerManager}}); err != nil {
		return err
	}
	if err := e.install(ctx); err != nil {
		return err
	}
	if e.hasVelero() {
		if err := e.Apply(ctx, e.veleroDeployment(), e.storageLocation(), e.veleroSecret()); err != nil {
			return err
		}
	}
	return e.restart(ctx, [][]string{{Velero}, {Worker}, {Watcher}})
}

// restart starts components again that this stack has: each chain one after the other, the chains side by side.
func (e *Env) restart(ctx context.Context, chains [][]string) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, chain := range chains {
		group.Go(func() error {
			for _, name := range chain {
				if p := e.Component(name); p != nil {
					if err := p.Restart(ctx); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	return group.Wait()
}
