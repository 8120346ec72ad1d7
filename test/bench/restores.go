package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"sync"
	"text/tabwriter"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// restoreLoad is a burst of restores of one backup in each namespace.
type restoreLoad struct{ restores, namespaces, watchers int }

func (l *restoreLoad) flags() {
	flag.IntVar(&l.restores, "restores", 1000, "profile restores: how many there are at once")
	flag.IntVar(&l.watchers, "restores-watchers", 2, "profile restores: watchers")
}

func (l restoreLoad) check() error {
	if l.restores < 1 || l.watchers < 1 || l.namespaces < 1 {
		return errors.New("-restores, -restores-watchers and -namespaces: must be at least 1")
	}
	return nil
}

// restoresReport is what the burst cost. Numbers per restore are means.
type restoresReport struct {
	Restores   int `json:"restores"`
	Namespaces int `json:"namespaces"`
	Watchers   int `json:"watchers"`
	// Seconds are until all are finalized.
	Seconds float64 `json:"seconds"`
	// ToVelero: from the request to create the NonAdminRestore to the Velero Restore's appearance. ToFinal: from Velero's completion
	// to the end of the finalization.
	ToVeleroP50      millis             `json:"toVeleroP50Ms"`
	ToVeleroP95      millis             `json:"toVeleroP95Ms"`
	ToFinalP50       millis             `json:"toFinalP50Ms"`
	ToFinalP95       millis             `json:"toFinalP95Ms"`
	Requests         float64            `json:"requestsPerRestore"`
	Writes           float64            `json:"writesPerRestore"`
	FrontendRequests float64            `json:"frontendRequestsPerRestore"`
	Ended            endedRuns          `json:"ended"`
	CPUMilliseconds  map[string]float64 `json:"cpuMsPerRestore"`
	Processes        map[string]usage   `json:"processes"`
}

// restoreTimes are when each restore was created, seen by Velero's stand-in, completed by it, and finalized.
type restoreTimes struct {
	mutex                           sync.Mutex
	begun, made, completed, settled map[types.NamespacedName]time.Time
}

func newRestoreTimes() *restoreTimes {
	return &restoreTimes{
		begun: map[types.NamespacedName]time.Time{}, made: map[types.NamespacedName]time.Time{},
		completed: map[types.NamespacedName]time.Time{}, settled: map[types.NamespacedName]time.Time{},
	}
}

// note notes in one of the maps that it happened, the first time.
func (t *restoreTimes) note(in map[types.NamespacedName]time.Time, key types.NamespacedName) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if _, known := in[key]; !known {
		in[key] = time.Now()
	}
}

func (t *restoreTimes) finalized() int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return len(t.settled)
}

// measureRestores makes a backup in each namespace, and then restores them all at once.
func measureRestores(ctx context.Context, of restoreLoad) (*restoresReport, error) {
	if err := of.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := startRig(ctx, of.watchers, of.namespaces, env.Options{Audit: true})
	if err != nil {
		return nil, err
	}
	defer r.stop()
	return r.restores(ctx, of)
}

func (r *rig) restores(ctx context.Context, of restoreLoad) (*restoresReport, error) {
	backups, err := r.burst(ctx, load{backups: of.namespaces, namespaces: of.namespaces, name: "restored"})
	if err != nil {
		return nil, err
	}
	if err := r.awaitQuiet(ctx, backups); err != nil {
		return nil, err
	}
	times := newRestoreTimes()
	following, unfollow := context.WithCancelCause(ctx)
	defer unfollow(nil)
	if err := r.followRestores(following, times, unfollow); err != nil {
		return nil, err
	}
	report, err := r.restoreAll(following, of, backups, times)
	if err != nil {
		return nil, fmt.Errorf("%w: %w; stand-in: %w", err, context.Cause(following), r.velero.failure())
	}
	return report, nil
}

// followRestores completes each Velero Restore as soon as it is seen, and notes what becomes of the restores. It calls refused
// with the reason when one is refused.
func (r *rig) followRestores(ctx context.Context, times *restoreTimes, refused func(error)) error {
	made, err := watchAll(ctx, r.client, &velerov1.RestoreList{}, client.InNamespace(env.OADPNamespace))
	if err != nil {
		return fmt.Errorf("watch Velero Restores: %w", err)
	}
	shown, err := watchAll(ctx, r.client, &oadpv1alpha1.NonAdminRestoreList{})
	if err != nil {
		return fmt.Errorf("watch NonAdminRestores: %w", err)
	}
	serve(made,
		func(restore *velerov1.Restore) { times.note(times.made, restoreOrigin(restore)) },
		func(restore *velerov1.Restore) { r.completeRestore(ctx, restore, times) })
	go func() {
		for event := range shown.ResultChan() {
			now, is := event.Object.(*oadpv1alpha1.NonAdminRestore)
			switch {
			case !is:
			case now.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff:
				refused(fmt.Errorf("restore %s/%s is refused: %v", now.Namespace, now.Name, now.Status.Conditions))
			case now.Status.Finalization != nil && now.Status.Finalization.Phase.Final():
				times.note(times.settled, client.ObjectKeyFromObject(now))
			}
		}
	}()
	return nil
}

func (r *rig) completeRestore(ctx context.Context, restore *velerov1.Restore, times *restoreTimes) {
	now := metav1.Now()
	patch, err := json.Marshal(map[string]any{"status": velerov1.RestoreStatus{
		Phase: velerov1.RestorePhaseCompleted, StartTimestamp: &now, CompletionTimestamp: &now,
		Progress: &velerov1.RestoreProgress{TotalItems: 10, ItemsRestored: 10},
	}})
	if err == nil {
		times.note(times.completed, restoreOrigin(restore))
		err = r.client.Patch(ctx, restore, client.RawPatch(types.MergePatchType, patch))
	}
	if err != nil {
		r.velero.fail(ctx, fmt.Errorf("complete Velero Restore %s: %w", restore.Name, err))
	}
}

// restoreOrigin names the NonAdminRestore that a Velero Restore was made for.
func restoreOrigin(restore *velerov1.Restore) types.NamespacedName {
	return types.NamespacedName{
		Namespace: restore.Annotations[oadpv1alpha1.NarOriginNamespaceAnnotation],
		Name:      restore.Annotations[oadpv1alpha1.NarOriginNameAnnotation],
	}
}

func (r *rig) restoreAll(
	ctx context.Context, of restoreLoad, backups []types.NamespacedName, times *restoreTimes,
) (*restoresReport, error) {
	before, err := r.usage()
	if err != nil {
		return nil, err
	}
	frontend, err := r.frontendRequests(ctx)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	group, creating := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for i := range of.restores {
		backup := backups[i%len(backups)]
		restore := &oadpv1alpha1.NonAdminRestore{
			ObjectMeta: metav1.ObjectMeta{Namespace: backup.Namespace, Name: fmt.Sprintf("restore-%05d", i)},
			Spec:       oadpv1alpha1.NonAdminRestoreSpec{RestoreSpec: &velerov1.RestoreSpec{BackupName: backup.Name}},
		}
		group.Go(func() error {
			times.note(times.begun, client.ObjectKeyFromObject(restore))
			return r.client.Create(creating, restore)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := awaitCount(ctx, of.restores, "restores are finalized", times.finalized); err != nil {
		return nil, err
	}
	report := &restoresReport{
		Restores: of.restores, Namespaces: of.namespaces, Watchers: len(r.watchers), Seconds: time.Since(begin).Seconds(),
	}
	report.count(times)
	if !sleep(ctx, 2*time.Second) { // Events are recorded in the background
		return nil, ctx.Err()
	}
	return report, r.countRestores(ctx, report, begin, before, frontend)
}

func (r *rig) countRestores(
	ctx context.Context, report *restoresReport, begin time.Time, before map[string]usage, frontend map[string]float64,
) error {
	cost, err := r.costSince(begin, before, report.Restores)
	if err != nil {
		return err
	}
	report.Requests, report.Writes = cost.RequestsPerBackup, cost.WritesPerBackup
	report.CPUMilliseconds, report.Processes = cost.CPUMillisecondsPerEach, cost.Processes
	after, err := r.frontendRequests(ctx)
	if err != nil {
		return err
	}
	_, all := added(frontend, after)
	report.FrontendRequests = all / float64(report.Restores)
	report.Ended, err = r.endedBetween(ctx, begin, time.Now())
	return err
}

func (report *restoresReport) count(times *restoreTimes) {
	times.mutex.Lock()
	defer times.mutex.Unlock()
	var toVelero, toFinal []time.Duration
	for key, settled := range times.settled {
		toVelero = append(toVelero, times.made[key].Sub(times.begun[key]))
		toFinal = append(toFinal, settled.Sub(times.completed[key]))
	}
	report.ToVeleroP50, report.ToVeleroP95 = inMillis(percentile(toVelero, 50)), inMillis(percentile(toVelero, 95))
	report.ToFinalP50, report.ToFinalP95 = inMillis(percentile(toFinal, 50)), inMillis(percentile(toFinal, 95))
}

func (report *restoresReport) print(out io.Writer) {
	if report == nil {
		return
	}
	each := func(count float64) float64 { return count / float64(report.Restores) }
	fmt.Fprintf(out, "\n%d restores over %d namespaces, %d watchers\n\n", report.Restores, report.Namespaces, report.Watchers)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(title, pattern string, value any) { fmt.Fprintf(table, "%s\t"+pattern+"\t\n", title, value) }
	row("restores per second, until all are finalized", "%.1f", float64(report.Restores)/report.Seconds)
	row("creation to Velero Restore, p50 ms", "%.0f", report.ToVeleroP50)
	row("p95 ms", "%.0f", report.ToVeleroP95)
	row("Velero's completion to the end of the finalization, p50 ms", "%.0f", report.ToFinalP50)
	row("p95 ms", "%.0f", report.ToFinalP95)
	row("requests per restore", "%.2f", report.Requests)
	row("writes per restore", "%.2f", report.Writes)
	row("requests at Temporal's frontend per restore", "%.1f", report.FrontendRequests)
	row("workflow runs ended per restore", "%.2f", each(float64(report.Ended.Runs)))
	row("events of their histories per restore", "%.1f", each(float64(report.Ended.Events)))
	row("bytes of their histories per restore", "%.0f", each(float64(report.Ended.Bytes)))
	for _, name := range namesIn(report.CPUMilliseconds) {
		row("CPU ms per restore, "+name, "%.1f", report.CPUMilliseconds[name])
	}
	for _, name := range measured {
		row("peak memory MiB, "+name, "%.0f", report.Processes[name].PeakMiB)
	}
	_ = table.Flush() // the terminal
	fmt.Fprintln(out)
}
