package env

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast.dev/holdfast/test/tools"
)

// start builds what is missing and starts the components, each as soon as what it needs is there.
func (e *Env) start(ctx context.Context) error {
	if err := e.build(ctx); err != nil {
		return err
	}
	begin := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	temporal, s3, kubernetes := newGate(), newGate(), newGate()
	group.Go(func() error { return temporal.openAfter(func() error { return e.startTemporal(ctx) }) })
	group.Go(func() error { return s3.openAfter(func() error { return e.startS3(ctx) }) })
	group.Go(func() error { return kubernetes.openAfter(func() error { return e.startKubernetes(ctx) }) })
	group.Go(func() error { return e.startVelero(ctx, kubernetes, s3) })
	if e.options.Kubelet != nil {
		group.Go(func() error { return e.startKubelet(ctx, kubernetes) })
	}
	if e.options.Holdfast {
		group.Go(func() error { return e.startHoldfast(ctx, kubernetes, temporal) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	e.progress.say("all components ready (%.1fs)", time.Since(begin).Seconds())
	return nil
}

// build finds the paths of all programs that this stack runs.
func (e *Env) build(ctx context.Context) error {
	e.bin = maps.Clone(e.options.Bin)
	if e.bin == nil {
		e.bin = map[string]string{}
	}
	needed := []string{tools.Etcd, tools.KubeAPIServer, tools.KubeControllerManager, tools.Kubectl, tools.Velero}
	switch {
	case e.without(Temporal):
	case e.options.TemporalServer:
		needed = append(needed, tools.TemporalServer, tools.TemporalSQLTool, tools.TemporalUI)
	default:
		needed = append(needed, tools.Temporal)
	}
	if e.hasS3() {
		needed = append(needed, tools.VersityGW)
	}
	if e.hasVelero() {
		needed = append(needed, tools.VeleroPluginForAWS)
	}
	needed = slices.DeleteFunc(needed, func(name string) bool { return e.bin[name] != "" })
	if len(needed) > 0 {
		built, err := tools.Build(ctx, needed, e.progress)
		if err != nil {
			return err
		}
		maps.Copy(e.bin, built)
	}
	if !e.options.Holdfast || (e.bin[tools.HoldfastWorker] != "" && e.bin[tools.Holdfast] != "") {
		return nil
	}
	built, err := tools.BuildHoldfast(ctx, e.progress)
	if err != nil {
		return err
	}
	maps.Copy(built, e.bin)
	e.bin = built
	return nil
}

// launch starts one component, notes it and waits until it is ready.
func (e *Env) launch(ctx context.Context, c command) (*Process, error) {
	begin := time.Now()
	c.logPath = e.path("logs", c.name+".log")
	c.env = append(e.baseEnv(), c.env...)
	c.readyTimeout = e.options.ReadyTimeout
	c.died = func(p *Process) {
		e.tellPanic(p) // now: where tests do not end, nobody stops the stack
		select {
		case e.deaths <- p:
		default: // nobody looks, and a hundred are enough to tell
		}
	}
	p := &Process{command: c}
	e.mu.Lock()
	for _, other := range e.processes {
		if other.Name() == c.name {
			e.mu.Unlock()
			return nil, fmt.Errorf("start %s: there is one of that name already", c.name)
		}
	}
	e.processes = append(e.processes, p)
	e.mu.Unlock()
	p.lifecycle.Lock()
	defer p.lifecycle.Unlock()
	if err := p.start(ctx); err != nil {
		return nil, err
	}
	e.progress.say("%s ready (%.1fs)", c.name, time.Since(begin).Seconds())
	return p, nil
}

// gate lets others wait until something is done.
type gate struct {
	once sync.Once
	open chan struct{}
}

func newGate() *gate { return &gate{open: make(chan struct{})} }

// openAfter opens the gate when do succeeds.
func (g *gate) openAfter(do func() error) error {
	if err := do(); err != nil {
		return err
	}
	g.once.Do(func() { close(g.open) })
	return nil
}

func (g *gate) wait(ctx context.Context) error {
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
