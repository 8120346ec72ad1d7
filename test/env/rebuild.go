package env

import (
	"context"
	"errors"
	"fmt"
	"os"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"holdfast.dev/holdfast/workflows/contract"
)

// Rebuild stops everything, throws away what the API server has stored, and starts everything again with the kinds, roles and
// the storage location of a new installation. Buckets and Temporal keep what they hold but for the cluster's heartbeat, whose end
// releases the cluster ID for the new API server, see docs/fleet.md. Namespaces of tenants are gone.
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
	if err := e.endHeartbeat(ctx); err != nil {
		return err
	}
	return e.restart(ctx, [][]string{{Velero}, {Worker}, {Watcher}})
}

func (e *Env) endHeartbeat(ctx context.Context) error {
	temporal, err := client.DialContext(ctx, client.Options{HostPort: e.TemporalAddress()})
	if err != nil {
		return fmt.Errorf("connect to Temporal: %w", err)
	}
	defer temporal.Close()
	err = temporal.TerminateWorkflow(ctx, contract.HeartbeatID(e.ClusterID()), "", "replaced by another cluster")
	var none *serviceerror.NotFound
	if err != nil && !errors.As(err, &none) {
		return fmt.Errorf("end the cluster's heartbeat: %w", err)
	}
	return nil
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
