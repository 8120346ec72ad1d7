package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Lose stops everything, and throws away what the API server and Temporal have stored. Only the S3 server, and what it holds, is
// left.
func (e *Env) Lose() error {
	if e.server != nil {
		return errors.New("lose Temporal's data: only those of its development server can be thrown away")
	}
	if e.kubelet != nil {
		e.kubelet.Stop()
	}
	e.stopAll(Worker, Watcher)
	e.stopAll(Velero, KubeControllerManager)
	e.stopAll(KubeAPIServer, Temporal)
	e.stopAll(Etcd)
	files, err := filepath.Glob(e.temporalDB() + "*")
	if err != nil {
		return fmt.Errorf("list Temporal's data: %w", err)
	}
	for _, path := range append(files, e.path("data", "etcd")) {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("throw away %s: %w", path, err)
		}
	}
	return nil
}

// NewCluster starts an empty control plane after Lose, and the kubelet if there was one. The OADP namespace comes with what is
// installed in it.
func (e *Env) NewCluster(ctx context.Context) error {
	if err := e.restart(ctx, [][]string{{Etcd, KubeAPIServer, KubeControllerManager}}); err != nil {
		return err
	}
	if e.kubelet == nil {
		return nil
	}
	controlPlane := newGate()
	close(controlPlane.open)
	return e.startKubelet(ctx, controlPlane)
}

// NewTemporal starts an empty Temporal after Lose.
func (e *Env) NewTemporal(ctx context.Context) error { return e.restart(ctx, [][]string{{Temporal}}) }

// NewVelero installs Velero in a cluster that has none, with further flags, and starts it.
func (e *Env) NewVelero(ctx context.Context, args ...string) error {
	if err := e.install(ctx); err != nil {
		return err
	}
	if err := e.Apply(ctx, e.veleroDeployment(args...), e.storageLocation(), e.veleroSecret()); err != nil {
		return err
	}
	return e.Component(Velero).RestartWith(ctx, args...)
}

// RolloutVelero starts Velero again with the flags that its Deployment now has, as Kubernetes does after a change of it.
func (e *Env) RolloutVelero(ctx context.Context) error {
	deployment := &appsv1.Deployment{}
	if err := e.client.Get(ctx, client.ObjectKeyFromObject(e.veleroDeployment()), deployment); err != nil {
		return fmt.Errorf("get Velero's Deployment: %w", err)
	}
	always := len(veleroArgs())
	return e.Component(Velero).RestartWith(ctx, deployment.Spec.Template.Spec.Containers[0].Args[always:]...)
}
