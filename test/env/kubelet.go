package env

import (
	"context"
	"fmt"

	"holdfast.dev/holdfast/test/env/kubelet"
)

// Kubelet returns the kubelet stand-in, nil without Options.Kubelet.
func (e *Env) Kubelet() *kubelet.Kubelet { return e.kubelet }

func (e *Env) startKubelet(ctx context.Context, kubernetes *gate) error {
	if err := kubernetes.wait(ctx); err != nil {
		return err
	}
	config, err := e.RESTConfig(Admin)
	if err != nil {
		return err
	}
	config.UserAgent = "holdfast-kubelet"
	k, err := kubelet.Start(ctx, config, *e.options.Kubelet, e.path("kubelet"), e.path("logs", "pods"), e.progress.say)
	if err != nil {
		return fmt.Errorf("start the kubelet: %w", err)
	}
	e.kubelet = k
	e.progress.say("kubelet ready")
	return nil
}
