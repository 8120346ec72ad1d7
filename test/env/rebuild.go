package env

import (
	"context"
	"fmt"
	"os"
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
	for _, name := range []string{S3, Temporal, Etcd, KubeAPIServer, KubeControllerManager} {
		if err := e.restart(ctx, name); err != nil {
			return err
		}
	}
	if err := e.install(ctx); err != nil {
		return err
	}
	if e.hasVelero() {
		if err := e.Apply(ctx, e.veleroDeployment(), e.storageLocation(), e.veleroSecret()); err != nil {
			return err
		}
	}
	for _, name := range []string{Velero, Worker, Watcher} {
		if err := e.restart(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// restart starts a component again, if this stack has it.
func (e *Env) restart(ctx context.Context, name string) error {
	p := e.Component(name)
	if p == nil {
		return nil
	}
	return p.Restart(ctx)
}
