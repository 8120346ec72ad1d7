package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/starter/watch/schedules"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

// planLoad is a number of plans that are all due in the same minute.
type planLoad struct {
	plans, namespaces, watchers int
	// jitter is that of each plan; empty for the default, which depends on its UID.
	jitter string
	// ahead is how long after the first creation they are due; zero for as long as it takes to make them here.
	ahead time.Duration
	// unchanged: they are not due while they are measured.
	unchanged bool
	// observed is how long the processes are observed after they were restarted.
	observed time.Duration
}

// madePerSecond is how many plans two cores make ready in a second, with Temporal's development server on the same cores.
const madePerSecond = 8

// untilReviewed is long enough for the watcher to compare all plans with their Schedules once.
const untilReviewed = schedules.ReviewInterval + 30*time.Second

// planObserver notes when the plans begin their next run, and which have made a good one.
type planObserver struct {
	mutex sync.Mutex
	next  map[types.NamespacedName]time.Time // the first that was shown
	good  map[types.NamespacedName]bool
}

func startPlanObserver(ctx context.Context, c client.WithWatch) (*planObserver, error) {
	o := &planObserver{next: map[types.NamespacedName]time.Time{}, good: map[types.NamespacedName]bool{}}
	watched, err := watchAll(ctx, c, &holdfastv1alpha1.BackupPlanList{})
	if err != nil {
		return nil, fmt.Errorf("watch BackupPlans: %w", err)
	}
	go func() {
		for event := range watched.ResultChan() {
			if plan, ok := event.Object.(*holdfastv1alpha1.BackupPlan); ok {
				o.note(client.ObjectKeyFromObject(plan), plan.Status)
			}
		}
	}()
	return o, nil
}

func (o *planObserver) note(key types.NamespacedName, status holdfastv1alpha1.BackupPlanStatus) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if _, known := o.next[key]; !known && status.NextRun != nil {
		o.next[key] = status.NextRun.Time
	}
	if status.Counts.Good > 0 && status.NextRun != nil {
		o.good[key] = true
	}
}

func (o *planObserver) begins(key types.NamespacedName) time.Time {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.next[key]
}

func (o *planObserver) ready() int {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return len(o.next)
}

func (o *planObserver) succeeded() int {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return len(o.good)
}

// measurePlans makes the plans, waits for their runs, and restarts Holdfast over them.
func measurePlans(ctx context.Context, of planLoad) (*plansReport, error) {
	r, err := startRig(ctx, of.watchers, of.namespaces, env.Options{Audit: true})
	if err != nil {
		return nil, err
	}
	defer r.stop()
	plans, err := startPlanObserver(ctx, r.client)
	if err != nil {
		return nil, err
	}
	report := &plansReport{Plans: of.plans, Namespaces: of.namespaces, Watchers: of.watchers, Jitter: of.jitter}
	due, keys, err := r.createPlans(ctx, of, plans, report)
	if err != nil {
		return nil, err
	}
	if !of.unchanged {
		if err := r.observeRuns(ctx, plans, keys, due, report); err != nil {
			return nil, err
		}
	}
	return report, r.observePlansRestart(ctx, of, plans, report)
}

func (of planLoad) key(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: namespaceName(i % of.namespaces), Name: fmt.Sprintf("plan-%05d", i)}
}

// createPlans returns when all plans have their Schedules, before they are due.
func (r *rig) createPlans(
	ctx context.Context, of planLoad, plans *planObserver, report *plansReport,
) (time.Time, []types.NamespacedName, error) {
	before, err := r.usage()
	if err != nil {
		return time.Time{}, nil, err
	}
	ahead := of.ahead
	if ahead == 0 {
		ahead = time.Minute + time.Duration(of.plans)*time.Second/madePerSecond
	}
	begin := time.Now()
	if of.unchanged {
		ahead = 12 * time.Hour
	}
	due := begin.Add(ahead).Truncate(time.Minute).Add(time.Minute).UTC()
	say("making %d plans, due at %s", of.plans, due.Format(time.TimeOnly))
	keys := make([]types.NamespacedName, of.plans)
	group, creating := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for i := range keys {
		keys[i] = of.key(i)
		group.Go(func() error { return r.client.Create(creating, newPlan(keys[i], dailyAt(due), of.jitter)) })
	}
	if err := group.Wait(); err != nil {
		return due, nil, err
	}
	making, cancel := context.WithDeadline(ctx, due)
	defer cancel()
	if err := awaitCount(making, of.plans, "plans are ready", plans.ready); err != nil {
		return due, nil, fmt.Errorf("-plans-ahead: must be more than %s: not all plans were ready when they were due: %w", ahead, err)
	}
	report.ReadySeconds = time.Since(begin).Seconds()
	report.CPUToMake, err = r.cpuSince(before, of.plans)
	return due, keys, err
}

func dailyAt(due time.Time) string { return fmt.Sprintf("%d %d * * *", due.Minute(), due.Hour()) }

func newPlan(key types.NamespacedName, schedule, jitter string) *holdfastv1alpha1.BackupPlan {
	return &holdfastv1alpha1.BackupPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: holdfastv1alpha1.BackupPlanSpec{
			Schedule: schedule, Jitter: jitter, Keep: &holdfastv1alpha1.Keep{Last: 3},
			Template: holdfastv1alpha1.BackupTemplate{Spec: holdfastv1alpha1.BackupTemplateSpec{BackupSpec: &velerov1.BackupSpec{}}},
		},
	}
}

// cpuSince is what the processes have used of the CPU since, in milliseconds for each of some.
func (r *rig) cpuSince(before map[string]usage, each int) (map[string]float64, error) {
	used := &burstReport{Backups: each}
	err := r.countUsage(used, before)
	return used.CPUMillisecondsPerEach, err
}

// observeRuns waits until each plan has made a good backup, and measures how late they began.
func (r *rig) observeRuns(
	ctx context.Context, plans *planObserver, keys []types.NamespacedName, due time.Time, report *plansReport,
) error {
	planned := make([]time.Time, len(keys))
	first := plans.begins(keys[0])
	for i, key := range keys {
		planned[i] = plans.begins(key)
		if planned[i].Before(first) {
			first = planned[i]
		}
	}
	say("the first begins at %s", first.Format(time.TimeOnly))
	if !sleep(ctx, time.Until(first)-time.Second) {
		return ctx.Err()
	}
	before, err := r.usage()
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := awaitCount(ctx, len(keys), "plans are backed up", plans.succeeded); err != nil {
		return fmt.Errorf("%w; stand-in: %w", err, r.velero.failure())
	}
	report.Seconds = time.Since(begin).Seconds()
	begun, handed := make([]time.Time, len(keys)), make([]time.Time, len(keys))
	for i, key := range keys {
		run := types.NamespacedName{Namespace: key.Namespace, Name: contract.PlanRunName(key.Name, due)}
		begun[i], _ = r.seen.times(run)
		handed[i], _ = r.velero.times(run)
		if begun[i].IsZero() || handed[i].IsZero() {
			return fmt.Errorf("plan %s has a good backup, but not %s", key, run)
		}
	}
	report.noteLateness(planned, begun, handed)
	if !sleep(ctx, 2*time.Second) { // Events are recorded in the background
		return ctx.Err()
	}
	cost, err := r.costSince(begin, before, len(keys))
	if err != nil {
		return err
	}
	report.CPUPerRun, report.Processes = cost.CPUMillisecondsPerEach, cost.Processes
	report.RequestsPerRun, report.WritesPerRun = cost.RequestsPerBackup, cost.WritesPerBackup
	report.RequestsByVerb = cost.RequestsByVerb
	return nil
}
