package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

const (
	hostileNamespaces = 20
	// hostilePatience bounds the whole profile, but for what a flag has it wait.
	hostilePatience = 20 * time.Minute
	// hostileReady is how long a component may take to become ready among so many objects.
	hostileReady = 15 * time.Minute
	// catchesUp is how long after the API server's return the watchers are observed: they list anew within seconds.
	catchesUp = time.Minute
)

// crowd is what the watchers see in profiles hostile and big.
type crowd struct {
	ordinary, large, namespaces, watchers int
	// away is how long the API server is away after the start. If rest is not 0, nothing happens for so long instead.
	away, rest time.Duration
	// stopMiB is where a watcher is killed; where the manifest's limit would have it killed if 0.
	stopMiB float64
	// memoryLimit is GOMEMLIMIT; the manifest's if empty.
	memoryLimit string
}

func (c *crowd) hostileFlags() {
	c.namespaces = hostileNamespaces
	flag.IntVar(&c.ordinary, "hostile-ordinary", 30_000, "profile hostile: settled backups of ordinary size")
	flag.IntVar(&c.large, "hostile-large", 1000, "profile hostile: backups of the largest size")
	flag.IntVar(&c.watchers, "hostile-watchers", 2, "profile hostile: watchers")
	flag.DurationVar(&c.away, "hostile-away", 20*time.Second, "profile hostile: how long the API server is away")
	flag.Float64Var(&c.stopMiB, "hostile-stop-mib", 0,
		"profile hostile: memory at which a watcher is killed; 0 for the limit of its Deployment")
}

func (c *crowd) bigFlags() {
	flag.IntVar(&c.ordinary, "big-backups", 100_000, "profile big: settled backups")
	flag.IntVar(&c.namespaces, "big-namespaces", 10_000, "profile big: namespaces that they are spread over")
	flag.IntVar(&c.watchers, "big-watchers", 2, "profile big: watchers")
	flag.DurationVar(&c.rest, "big-rest", 10*time.Minute, "profile big: how long nothing happens after the start")
	flag.StringVar(&c.memoryLimit, "big-gomemlimit", "850MiB", "profile big: GOMEMLIMIT of a watcher")
	flag.Float64Var(&c.stopMiB, "big-stop-mib", 1024, "profile big: memory at which a watcher is killed")
}

func (c crowd) check() error {
	if c.ordinary < 0 || c.large < 0 || c.watchers < 1 || c.namespaces < 1 || c.away < 0 || c.rest < 0 {
		return errors.New("-hostile-watchers, -big-watchers and -big-namespaces: must be at least 1; " +
			"the other numbers of profiles hostile and big: must be at least 0")
	}
	return nil
}

// measureCrowd lets watchers start over settled backups, of which some may be as large as a tenant can make them. Then the API
// server goes away and comes back, or nothing happens for a while. All are settled: nothing must be started and nothing written.
func measureCrowd(ctx context.Context, of crowd) (*crowdReport, error) {
	if err := of.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, hostilePatience+of.away+of.rest)
	defer cancel()
	report := &crowdReport{
		Ordinary: of.ordinary, Large: of.large, Namespaces: of.namespaces,
		AwaySeconds: of.away.Seconds(), RestSeconds: of.rest.Seconds(),
	}
	var err error
	if report.Shipped, err = shippedWatcher(); err != nil {
		return nil, err
	}
	report.Shipped.GoMemLimit = cmp.Or(of.memoryLimit, report.Shipped.GoMemLimit)
	r, err := startRigAs(ctx, 1, report.Shipped, env.Options{
		GoDefaults: true, Audit: true, ReadyTimeout: hostileReady,
		EtcdArgs: []string{fmt.Sprintf("--quota-backend-bytes=%d", 16<<30)},
	})
	if err != nil {
		return nil, err
	}
	defer r.stop()
	if err := r.gather(ctx, of, report); err != nil {
		return nil, err
	}
	started, err := r.workflowsStarted(ctx)
	if err != nil {
		return nil, err
	}
	guarded, release := r.guard(ctx, cmp.Or(of.stopMiB, report.Shipped.LimitMiB))
	defer release()
	if err := r.startCrowded(guarded, of.watchers, report); err != nil {
		return nil, errors.Join(context.Cause(guarded), err)
	}
	observe := r.observeOutage
	if of.rest > 0 {
		observe = r.observeRest
	}
	if err := observe(guarded, of, report); err != nil {
		return nil, errors.Join(context.Cause(guarded), err)
	}
	now, err := r.workflowsStarted(ctx)
	if err != nil {
		return nil, err
	}
	report.WorkflowsStarted = now - started
	report.APIServer, err = usageOf(r.stack.Component(env.KubeAPIServer).PID())
	return report, err
}

// gather makes the crowd, with the API server stopped, and starts that again.
func (r *rig) gather(ctx context.Context, of crowd, report *crowdReport) error {
	if err := r.createNamespaces(ctx, of.namespaces); err != nil {
		return err
	}
	m, err := r.makeModels(ctx, of.large > 0)
	if err != nil {
		return err
	}
	report.OrdinaryBytes = sizeOf(m.ordinary.nab)
	if of.large > 0 {
		report.LargeBytes = sizeOf(m.large[0])
	}
	var before oadpv1alpha1.NonAdminBackupList
	if err := r.client.List(ctx, &before); err != nil {
		return err
	}
	r.unwatch()
	apiServer := r.stack.Component(env.KubeAPIServer)
	if err := apiServer.Stop(); err != nil {
		return err
	}
	say("storing %d backups of %d bytes and %d of %d", of.ordinary, report.OrdinaryBytes, of.large, report.LargeBytes)
	written, err := r.storeCrowd(ctx, of, m)
	if err != nil {
		return err
	}
	report.StoredMiB = float64(written) / (1 << 20)
	if err := apiServer.Restart(ctx); err != nil {
		return err
	}
	if err := r.checkCrowd(ctx, len(before.Items)+of.ordinary+of.large); err != nil || of.rest == 0 {
		return err
	}
	return r.awaitServed(ctx)
}

// startCrowded starts all watchers at once, as a Deployment does.
func (r *rig) startCrowded(ctx context.Context, count int, report *crowdReport) error {
	begin := time.Now()
	report.Watchers = make([]watcherReport, count)
	group, starting := errgroup.WithContext(ctx)
	r.watchers = nil
	for i := range count {
		name := env.Watcher
		if i > 0 {
			name = fmt.Sprintf("%s-%d", env.Watcher, i+1)
		}
		r.watchers = append(r.watchers, name)
		group.Go(func() error {
			err := r.startOne(starting, name)
			report.Watchers[i].Start.ReadySeconds = time.Since(begin).Seconds()
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if !sleep(ctx, quietTime) {
		return ctx.Err()
	}
	if err := r.noteUsage(report, func(w *watcherReport) *phaseReport { return &w.Start }); err != nil {
		return err
	}
	var err error
	report.Start, err = r.countAsked(begin)
	return err
}

func (r *rig) startOne(ctx context.Context, name string) error {
	if watcher := r.stack.Component(name); watcher != nil {
		return watcher.Restart(ctx)
	}
	_, err := r.stack.StartWatcher(ctx, name)
	return err
}

// observeRest counts what is requested while nothing happens.
func (r *rig) observeRest(ctx context.Context, of crowd, report *crowdReport) error {
	say("watching for %s what is requested while nothing happens", of.rest)
	begin := time.Now()
	if !sleep(ctx, of.rest) {
		return ctx.Err()
	}
	if err := r.noteAfter(report, begin); err != nil {
		return err
	}
	var err error
	report.Reads, err = r.measureReads(ctx)
	return err
}

// noteAfter notes what the watchers have taken by the end, and requested since then.
func (r *rig) noteAfter(report *crowdReport, since time.Time) error {
	if err := r.noteUsage(report, func(w *watcherReport) *phaseReport { return &w.After }); err != nil {
		return err
	}
	var err error
	report.After, err = r.countAsked(since)
	return err
}

// observeOutage stops the API server for a while, and observes the watchers for a minute after its return.
func (r *rig) observeOutage(ctx context.Context, of crowd, report *crowdReport) error {
	say("the API server is away for %s", of.away)
	apiServer := r.stack.Component(env.KubeAPIServer)
	if err := apiServer.Stop(); err != nil {
		return err
	}
	if !sleep(ctx, of.away) {
		return ctx.Err()
	}
	if err := apiServer.Restart(ctx); err != nil {
		return err
	}
	begin := time.Now()
	group, waiting := errgroup.WithContext(ctx)
	for i, name := range r.watchers {
		group.Go(func() error {
			err := r.stack.Component(name).WaitReady(waiting)
			report.Watchers[i].After.ReadySeconds = time.Since(begin).Seconds()
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	say("the API server is back; observing the watchers for %s", catchesUp)
	if !sleep(ctx, catchesUp-time.Since(begin)) {
		return ctx.Err()
	}
	return r.noteAfter(report, begin)
}

// guard kills a watcher that takes more memory than that; the context's cause says so. Every now and then it says what they take.
func (r *rig) guard(ctx context.Context, stopMiB float64) (context.Context, func()) {
	guarded, stop := context.WithCancelCause(ctx)
	go func() {
		const sayEvery = 75
		for round := 1; sleep(guarded, 200*time.Millisecond); round++ {
			for _, process := range r.stack.Components() {
				used, err := usageOf(process.PID())
				if err != nil || !strings.HasPrefix(process.Name(), env.Watcher) {
					continue // an error: it has ended, or not begun
				}
				if round%sayEvery == 0 {
					say("%s: at most %.0f MiB", process.Name(), used.PeakMiB)
				}
				if used.PeakMiB < stopMiB {
					continue
				}
				stop(fmt.Errorf("%s took more than %.0f MiB (its Deployment's limit, or -hostile-stop-mib) after %.1f CPU seconds",
					process.Name(), stopMiB, used.CPUSeconds))
				_ = process.Kill() // else the stack's end does it
			}
		}
	}()
	return guarded, func() { stop(nil) }
}

func (r *rig) noteUsage(report *crowdReport, phase func(*watcherReport) *phaseReport) error {
	for i, name := range r.watchers {
		watcher := r.stack.Component(name)
		if !watcher.Running() {
			return fmt.Errorf("%s has ended:\n%s", name, watcher.LogTail(25))
		}
		used, err := usageOf(watcher.PID())
		if err != nil {
			return err
		}
		report.Watchers[i].Name = name
		into := phase(&report.Watchers[i])
		into.PeakMiB, into.CPUSeconds = used.PeakMiB, used.CPUSeconds
		say("%s: at most %.0f MiB, %.1f CPU seconds so far", name, used.PeakMiB, used.CPUSeconds)
	}
	return nil
}

func sleep(ctx context.Context, duration time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(duration):
		return true
	}
}
