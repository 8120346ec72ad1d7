package outage

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"holdfast.dev/holdfast/k8s/process/failpoint"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
)

// Subjects are the processes under test of one case, a worker and a watcher, and what stands between them and the stack.
type Subjects struct {
	Driver          *Driver
	Proxy           *Proxy // between the worker and the API server
	Worker, Watcher *env.Process
	// Drills is the worker that makes the namespaces of drills, once it has started.
	Drills *env.Process
	// Beside is the worker of a Rollout's other build, once it has started.
	Beside *env.Process

	stack     *env.Env
	newWorker func(name, binary string) (*env.Process, error)
	newDrills func(context.Context) (*env.Process, error)
	restarted chan error // one result per process that a disturbance starts again
}

// SubjectOptions say whom the processes of a case serve, and how they are started.
type SubjectOptions struct {
	// Namespace is the only tenant's namespace that they serve, and their cluster ID.
	Namespace string
	// FoundationDB has the worker serve FoundationDB.
	FoundationDB bool
	// Binaries are those of tools.BuildHoldfast with the tag outage.
	Binaries map[string]string
	// Dir gets the worker's kubeconfig.
	Dir string
	// Environment (KEY=VALUE) is added to that of both, and the flags to those of each.
	Environment           []string
	WorkerArgs, WatchArgs []string
}

// StartSubjects starts the processes of a case and returns when they are ready. Close ends them.
func StartSubjects(ctx context.Context, stack *env.Env, o SubjectOptions) (*Subjects, error) {
	s := &Subjects{Driver: NewDriver(), stack: stack, restarted: make(chan error, 4)}
	if err := s.start(ctx, o); err != nil {
		s.Close()
		return nil, fmt.Errorf("start the processes of %s: %w", o.Namespace, err)
	}
	return s, nil
}

func (s *Subjects) start(ctx context.Context, o SubjectOptions) error {
	kind, account := env.Worker, env.HoldfastWorker
	if o.FoundationDB {
		kind, account = env.FDBWorker, env.HoldfastFDB
	}
	config, err := clientcmd.LoadFromFile(s.stack.Kubeconfig(account))
	if err != nil {
		return err
	}
	for _, cluster := range config.Clusters {
		if s.Proxy, err = NewProxy(ctx, cluster.Server[len("https://"):]); err != nil {
			return err
		}
		cluster.Server = "https://" + s.Proxy.Address()
	}
	kubeconfig := filepath.Join(o.Dir, account+".kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		return err
	}
	environment := append([]string{
		failpoint.EnvURL + "=" + s.Driver.URL(), failpoint.EnvNamespace + "=" + o.Namespace,
	}, o.Environment...)
	common := []string{"--cluster-id=" + o.Namespace}
	s.Watcher, err = s.stack.Other(ctx, env.Watcher, "watcher-"+o.Namespace, o.Binaries[tools.Holdfast], environment,
		slices.Concat(common, o.WatchArgs)...)
	if err != nil {
		return err
	}
	s.newDrills = func(ctx context.Context) (*env.Process, error) {
		return s.stack.Other(ctx, env.DrillWorker, "drills-"+o.Namespace, o.Binaries[tools.HoldfastWorker], environment, common...)
	}
	s.newWorker = func(name, binary string) (*env.Process, error) {
		return s.stack.Other(ctx, kind, name+"-"+o.Namespace, binary, environment,
			slices.Concat(common, []string{"--kubeconfig=" + kubeconfig, env.ApproveAlways}, o.WorkerArgs)...)
	}
	s.Worker, err = s.newWorker("worker", o.Binaries[tools.HoldfastWorker])
	return err
}

// StartDrillWorker starts the worker that makes the namespaces of drills, and returns when it is ready.
func (s *Subjects) StartDrillWorker(ctx context.Context) (err error) {
	s.Drills, err = s.newDrills(ctx)
	return err
}

// Processes are those that have started.
func (s *Subjects) Processes() []*env.Process {
	return slices.DeleteFunc([]*env.Process{s.Worker, s.Beside, s.Watcher, s.Drills}, func(p *env.Process) bool { return p == nil })
}

// Close kills the processes and lets those go on that stand at a point.
func (s *Subjects) Close() {
	for _, process := range s.Processes() {
		_ = process.Kill() // its log tells more than the error
	}
	if s.Proxy != nil {
		s.Proxy.Close()
	}
	s.Driver.Close()
}

// StopWorkers ends the worker, or both of a Rollout, as Kubernetes does.
func (s *Subjects) StopWorkers() error {
	err := s.Worker.Stop()
	if s.Beside != nil {
		err = errors.Join(err, s.Beside.Stop())
	}
	return err
}

// Process returns the case's own process, or what all cases share.
func (s *Subjects) Process(name string) *env.Process {
	switch name {
	case env.Worker:
		return s.Worker
	case env.Watcher:
		return s.Watcher
	case env.DrillWorker:
		return s.Drills
	}
	return s.stack.Component(name)
}

// AwaitRestarts returns when so many processes that were killed are ready again.
func (s *Subjects) AwaitRestarts(count int, patience time.Duration) error {
	for range count {
		if err := Await(s.restarted, patience, "the process that was killed comes back"); err != nil {
			return err
		}
	}
	return nil
}

// Outage returns an action that begins an outage of a component of the stack and lets go; it ends by itself, which over is told.
func (s *Subjects) Outage(ctx context.Context, component, how string, lasting time.Duration, over chan<- error) Action {
	return BeginOutage(ctx, s.stack.Component(component), how, lasting, over)
}

// How a component is away.
const (
	Paused  = "paused"
	Stopped = "stopped"
)
