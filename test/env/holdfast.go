package env

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"holdfast.dev/holdfast/test/tools"
)

// ApproveAlways has a worker take decisions through this Temporal, which asks nobody who he is.
const ApproveAlways = "--approve-through-temporal=always"

// What Process.Address knows about a worker or watcher.
const (
	AddressHealth  = "health"
	AddressMetrics = "metrics"
)

func (e *Env) startHoldfast(ctx context.Context, kubernetes, temporal *gate) error {
	if err := kubernetes.wait(ctx); err != nil {
		return err
	}
	if err := temporal.wait(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		_, err := e.StartWorker(ctx, Worker, e.options.WorkerArgs...)
		return err
	})
	group.Go(func() error {
		_, err := e.StartWatcher(ctx, Watcher, e.options.WatchArgs...)
		return err
	})
	return group.Wait()
}

// StartWorker starts a holdfast-worker under a name of its own ("worker-2") with further flags, and waits until it is ready.
func (e *Env) StartWorker(ctx context.Context, name string, args ...string) (*Process, error) {
	return e.startOwn(ctx, own{
		name: name, kind: Worker, binary: tools.HoldfastWorker, user: HoldfastWorker, args: append([]string{ApproveAlways}, args...),
	})
}

// StartWatcher starts a "holdfast watch" under a name of its own ("watcher-2") with further flags, and waits until it is ready.
func (e *Env) StartWatcher(ctx context.Context, name string, args ...string) (*Process, error) {
	return e.startOwn(ctx, own{
		name: name, kind: Watcher, binary: tools.Holdfast, subcommand: []string{"watch"}, user: HoldfastWatcher, args: args,
		env: e.options.WatchEnv,
	})
}

// Other starts a worker (kind Worker) or watcher (kind Watcher) of another build than the stack's own, with further
// environment variables (KEY=VALUE) and flags. Of a flag or variable given twice the last one counts, so a test can give it
// another cluster ID or kubeconfig.
func (e *Env) Other(ctx context.Context, kind, name, binary string, environment []string, args ...string) (*Process, error) {
	o := own{name: name, kind: kind, path: binary, user: HoldfastWorker, env: environment, args: args}
	if kind == Watcher {
		o.subcommand, o.user = []string{"watch"}, HoldfastWatcher
	}
	return e.startOwn(ctx, o)
}

// own describes one of Holdfast's own processes.
type own struct {
	name, kind, binary string
	path               string // of another binary
	subcommand         []string
	user               string
	env, args          []string
}

func (e *Env) startOwn(ctx context.Context, o own) (*Process, error) {
	taken, err := freePorts.take(2)
	if err != nil {
		return nil, err
	}
	metrics, health := address(taken[0]), address(taken[1])
	args := append(slices.Clone(o.subcommand),
		"--kubeconfig", e.Kubeconfig(o.user), "--cluster-id", e.ClusterID(), "--oadp-namespace", OADPNamespace,
		"--metrics-bind-address", metrics, "--health-probe-bind-address", health, "--log-format", "json")
	return e.launch(ctx, command{
		name: o.name, kind: o.kind, path: cmp.Or(o.path, e.bin[o.binary]), args: append(args, o.args...),
		env:       slices.Concat([]string{"TEMPORAL_ADDRESS=" + e.temporalAddress}, e.options.HoldfastEnv, o.env),
		addresses: map[string]string{AddressMetrics: metrics, AddressHealth: health},
		ready:     httpReady("http://"+health+"/readyz", ""),
	})
}
