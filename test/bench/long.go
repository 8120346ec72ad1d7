package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// steadyLoad is a number of backups a second for a long time, of which each is deleted after a while.
type steadyLoad struct {
	perSecond            float64
	rest                 time.Duration // before it
	lasts, every, keep   time.Duration
	namespaces, watchers int
	// plans make the backups, and delete each by retention when the next one is good.
	plans bool
	// open is how many other plans there are from before the rest on, of which none is due: their workflows are open.
	open int
	// alone: at the end Holdfast is stopped, and Temporal is measured without it.
	alone bool
}

const (
	// steadyEnd is how long the last backups may take after the load has ended.
	steadyEnd = 10 * time.Minute
	// steadyPeriod is the time between two runs of a plan.
	steadyPeriod = 2 * time.Minute
	// steadyClients bounds the requests of the load itself that are under way.
	steadyClients = 64
)

func (l *steadyLoad) flags() {
	flag.Float64Var(&l.perSecond, "long-rate", 12, "profile long: backups a second")
	flag.DurationVar(&l.lasts, "long", time.Hour, "profile long: how long backups are created")
	flag.DurationVar(&l.rest, "long-rest", time.Minute, "profile long: how long nothing happens before")
	flag.DurationVar(&l.every, "long-every", 5*time.Minute, "profile long: time from sample to sample")
	flag.DurationVar(&l.keep, "long-keep", 10*time.Minute, "profile long: how long a backup is kept; 0 for ever")
	flag.BoolVar(&l.plans, "long-plans", false,
		"profile long: plans make the backups, every other minute, and delete each when the next one is good")
	flag.IntVar(&l.open, "long-open", 0, "profile long: other plans, of which none is due")
	flag.IntVar(&l.watchers, "long-watchers", 2, "profile long: watchers")
}

func (l steadyLoad) check() error {
	if l.perSecond <= 0 || l.lasts <= 0 || l.every <= 0 || l.rest <= 0 {
		return errors.New("-long, -long-every, -long-rest and -long-rate: must be above 0")
	}
	if l.keep < 0 || l.open < 0 || l.namespaces < 1 || l.watchers < 1 {
		return errors.New("-long-watchers and -namespaces: must be at least 1; -long-keep and -long-open: must be at least 0")
	}
	return nil
}

// until is when the last backup is deleted, from the beginning.
func (l steadyLoad) until() time.Duration {
	if l.plans {
		return l.lasts
	}
	return l.lasts + l.keep
}

func (l steadyLoad) backups() int { return int(l.perSecond * l.lasts.Seconds()) }

// at is when the backup of a number is due, from the beginning.
func (l steadyLoad) at(i int) time.Duration {
	return time.Duration(float64(i) / l.perSecond * float64(time.Second))
}

func (l steadyLoad) key(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: namespaceName(i % l.namespaces), Name: fmt.Sprintf("steady-%06d", i)}
}

// measureLong puts the load on a stack and takes a sample of it every now and then. With Temporal's own server it also counts
// what PostgreSQL does.
func measureLong(ctx context.Context, of steadyLoad) (*longReport, error) {
	if err := of.check(); err != nil {
		return nil, err
	}
	// No Audit: the record of an hour would fill a disk.
	r, err := startRig(ctx, of.watchers, of.namespaces, env.Options{CountStatements: true})
	if err != nil {
		return nil, err
	}
	defer r.stop()
	of.alone = !of.plans // whose Schedules go on
	return r.load(ctx, of)
}

// load puts the load on the stack until all that it has made is served.
func (r *rig) load(ctx context.Context, of steadyLoad) (*longReport, error) {
	s := &sampler{rig: r, load: of, report: &longReport{
		PerSecond: of.perSecond, Namespaces: of.namespaces, Watchers: of.watchers, Plans: of.plans, KeptSeconds: of.keep.Seconds(),
	}}
	if err := s.countStatements(ctx); err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	group, loading := errgroup.WithContext(ctx)
	if of.plans {
		group.Go(func() error { return r.createSteadyPlans(loading, of) })
	} else {
		group.Go(func() error { return r.createSteadily(loading, of) })
		group.Go(func() error { return r.deleteSteadily(loading, of) })
	}
	group.Go(func() error { return s.run(loading) })
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("%w; stand-in: %w", err, r.velero.failure())
	}
	if err := s.end(ctx); err != nil || !of.alone {
		return s.report, err
	}
	return s.report, s.alone(ctx)
}

// createSteadily creates the backups at their times, however late earlier ones are. What is measured counts from those times.
func (r *rig) createSteadily(ctx context.Context, of steadyLoad) error {
	return steadily(ctx, of, 0, func(ctx context.Context, key types.NamespacedName, due time.Time) error {
		r.seen.begin(key, due)
		return r.client.Create(ctx, newBackup(key, &velerov1.BackupSpec{}))
	})
}

// createSteadyPlans creates as many plans as make that many backups a second, evenly.
func (r *rig) createSteadyPlans(ctx context.Context, of steadyLoad) error {
	group, creating := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for i := range int(of.perSecond * steadyPeriod.Seconds()) {
		plan := newPlan(of.key(i), "*/2 * * * *", steadyPeriod.String())
		plan.Spec.Keep = &v1alpha1.Keep{Last: 1}
		group.Go(func() error { return r.client.Create(creating, plan) })
	}
	return group.Wait()
}

// deleteSteadily has the backups deleted, with their data, if they are not kept for ever.
func (r *rig) deleteSteadily(ctx context.Context, of steadyLoad) error {
	if of.keep == 0 {
		return nil
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"deleteBackup":true}}`))
	return steadily(ctx, of, of.keep, func(ctx context.Context, key types.NamespacedName, _ time.Time) error {
		return r.client.Patch(ctx, newBackup(key, &velerov1.BackupSpec{}), patch)
	})
}

// steadily calls do for each backup, so much later than it is due.
func steadily(
	ctx context.Context, of steadyLoad, later time.Duration, do func(context.Context, types.NamespacedName, time.Time) error,
) error {
	begin := time.Now()
	group, doing := errgroup.WithContext(ctx)
	group.SetLimit(steadyClients)
	for i := range of.backups() {
		due := begin.Add(of.at(i) + later)
		if !sleep(doing, time.Until(due)) {
			break
		}
		group.Go(func() error { return do(doing, of.key(i), due) })
	}
	return group.Wait()
}
