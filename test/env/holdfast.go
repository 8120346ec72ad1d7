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
	if e.options.FoundationDB {
		group.Go(func() error {
			_, err := e.StartFDBWorker(ctx, FDBWorker, e.options.FDBWorkerArgs...)
			return err
		})
	}
	if e.options.Drills {
		group.Go(func() error {
			_, err := e.startOwn(ctx, own{name: DrillWorker, kind: DrillWorker, binary: tools.HoldfastWorker})
			return err
		})
	}
	group.Go(func() error {
		_, err := e.StartWatcher(ctx, Watcher, e.options.WatchArgs...)
		return err
	})
	return group.Wait()
}

// StartWorker starts a holdfast-worker under a name of its own ("worker-2") with further flags, and waits until it is ready.
func (e *Env) StartWorker(ctx context.Context, name string, args ...string) (*Process, error) {
	return e.startOwn(ctx, own{
		name: name, kind: Worker, binary: tools.HoldfastWorker, args: append([]string{ApproveAlways}, args...),
	})
}

// StartFDBWorker starts a holdfast-worker that serves FoundationDB, as StartWorker.
func (e *Env) StartFDBWorker(ctx context.Context, name string, args ...string) (*Process, error) {
	return e.startOwn(ctx, own{name: name, kind: FDBWorker, binary: tools.HoldfastWorker, args: args})
}

// StartWatcher starts a "holdfast watch" under a name of its own ("watcher-2") with further flags, and waits until it is ready.
func (e *Env) StartWatcher(ctx context.Context, name string, args ...string) (*Process, error) {
	return e.startOwn(ctx, own{
		name: name, kind: Watcher, binary: tools.Holdfast, args: args, env: e.options.WatchEnv,
	})
}

// Other starts a worker (kind Worker or FDBWorker) or watcher (kind Watcher) of another build than the stack's own, with further
// environment variables (KEY=VALUE) and flags. Of a flag or variable given twice the last one counts, so a test can give it
// another cluster ID or kubeconfig.
func (e *Env) Other(ctx context.Context, kind, name, binary string, environment []string, args ...string) (*Process, error) {
	return e.startOwn(ctx, own{name: name, kind: kind, path: binary, env: environment, args: args})
}

// own describes one of Holdfast's own processes.
type own struct {
	name, kind, binary string
	path               string // of another binary
	env, args          []string
}

// accountOf is whom a kind of process runs as.
var accountOf = map[string]string{
	Worker: HoldfastWorker, FDBWorker: HoldfastFDB, DrillWorker: HoldfastDrills, Watcher: HoldfastWatcher,
}

// firstArgs are the flags by which a kind of process serves its part.
func (e *Env) firstArgs(kind string) []string {
	switch {
	case kind == Worker:
		return []string{"--serve=velero"}
	case kind == FDBWorker:
		return []string{"--serve=fdb"}
	case kind == DrillWorker:
		return []string{"--serve=drills"}
	case e.options.FoundationDB:
		return []string{"watch", "--serve=all"}
	}
	return []string{"watch", "--serve=velero"}
}

func (e *Env) startOwn(ctx context.Context, o own) (*Process, error) {
	taken, err := freePorts.take(2)
	if err != nil {
		return nil, err
	}
	metrics, health := address(taken[0]), address(taken[1])
	args := append(e.firstArgs(o.kind),
		"--kubeconfig", e.Kubeconfig(accountOf[o.kind]), "--cluster-id", e.ClusterID(), "--oadp-namespace", OADPNamespace,
		"--metrics-bind-address", metrics, "--health-probe-bind-address", health, "--log-format", "json")
	return e.launch(ctx, command{
		name: o.name, kind: o.kind, path: cmp.Or(o.path, e.bin[o.binary]), args: append(args, o.args...),
		env:       slices.Concat(ownEnv(), e.temporalEnvironment(), e.options.HoldfastEnv, o.env),
		addresses: map[string]string{AddressMetrics: metrics, AddressHealth: health},
		ready:     httpReady("http://"+health+"/readyz", ""),
	})
}
