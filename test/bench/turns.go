package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

// turnsPatience bounds one crowd: each of ten thousand has a run of its workflow that writes that it waits.
const turnsPatience = time.Hour

// turnsLoad is a crowd that waits in the queue before Velero, and how many turns are measured then.
type turnsLoad struct {
	waiting, turns, active, namespaces, watchers int
}

// turnsFlags are of profile turns. Each number of waiting has a stack of its own.
type turnsFlags struct {
	turnsLoad

	waiting string
}

func (f *turnsFlags) flags() {
	flag.StringVar(&f.waiting, "turns-waiting", "1000,10000", "profile turns: how many wait; several numbers for a column each")
	flag.IntVar(&f.turns, "turns", 500, "profile turns: turns that are measured while so many wait")
	flag.IntVar(&f.active, "turns-active", 20, "profile turns: queue.maxActive of the policy")
	flag.IntVar(&f.watchers, "turns-watchers", 2, "profile turns: watchers")
}

func (l turnsLoad) check() error {
	if l.turns < 1 || l.active < 1 || l.active > contract.MaxTurns || l.namespaces < 1 || l.watchers < 1 {
		return fmt.Errorf("-turns, -turns-watchers and -namespaces: must be at least 1; -turns-active: must be from 1 to %d",
			contract.MaxTurns)
	}
	if l.turns > l.waiting {
		return errors.New("-turns: must be at most the least of -turns-waiting")
	}
	return nil
}

// turnsReport is what a turn costs while that many wait: all that its backup costs is in it. Numbers per turn are means.
type turnsReport struct {
	Waiting   int     `json:"waiting"`
	Active    int     `json:"active"`
	Turns     int     `json:"turns"`
	PerSecond float64 `json:"turnsPerSecond"`
	// QueueRuns, QueueEvents and QueueBytes are of the queue's own history meanwhile, LargestEvent of its largest payloads so far.
	QueueRuns    int                `json:"queueRuns"`
	QueueEvents  float64            `json:"queueEventsPerTurn"`
	QueueBytes   float64            `json:"queueBytesPerTurn"`
	LargestEvent int                `json:"queueLargestEventBytes"`
	Requests     float64            `json:"requestsPerTurn"`
	Writes       float64            `json:"writesPerTurn"`
	CPU          map[string]float64 `json:"cpuMsPerTurn"`
	Processes    map[string]usage   `json:"processes"`
}

// turnsReports are a column each.
type turnsReports []*turnsReport

func measureTurns(ctx context.Context, of turnsFlags) (turnsReports, error) {
	waiting, err := parseNumbers("-turns-waiting", of.waiting)
	if err != nil {
		return nil, err
	}
	var reports turnsReports
	for _, count := range waiting {
		load := of.turnsLoad
		load.waiting = count
		if err := load.check(); err != nil {
			return nil, err
		}
		report, err := measureTurn(ctx, load)
		if err != nil {
			return nil, fmt.Errorf("%d that wait: %w", count, err)
		}
		reports = append(reports, report)
	}
	return reports, nil
}

func measureTurn(ctx context.Context, of turnsLoad) (*turnsReport, error) {
	ctx, cancel := context.WithTimeout(ctx, turnsPatience)
	defer cancel()
	r, err := startRig(ctx, of.watchers, of.namespaces, env.Options{Audit: true})
	if err != nil {
		return nil, err
	}
	defer r.stop()
	return r.turns(ctx, of)
}

// turns has a crowd wait while Velero ends nothing, and measures turns from when it does. Others still wait then.
func (r *rig) turns(ctx context.Context, of turnsLoad) (*turnsReport, error) {
	if err := r.limit(ctx, of.active); err != nil {
		return nil, err
	}
	release := r.velero.hold()
	defer release()
	say("%d backups, of which %d are active and the others wait", of.waiting+of.active, of.active)
	group, creating := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for i := range of.waiting + of.active {
		key := types.NamespacedName{Namespace: namespaceName(i % of.namespaces), Name: numbered("crowd", i)}
		group.Go(func() error { return r.createBackup(creating, key) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := awaitCount(ctx, of.waiting, "backups show that they wait", r.seen.waits); err != nil {
		return nil, err
	}
	if !sleep(ctx, 2*time.Second) { // Events are recorded in the background
		return nil, ctx.Err()
	}
	before, err := r.usage()
	if err != nil {
		return nil, err
	}
	_, settled, _ := r.seen.counts()
	ended := func() int {
		_, now, _ := r.seen.counts()
		return now - settled
	}
	begin := time.Now()
	release()
	if err := awaitCount(ctx, of.turns, "turns have ended", ended); err != nil {
		return nil, fmt.Errorf("%w; stand-in: %w", err, r.velero.failure())
	}
	report := &turnsReport{Waiting: of.waiting, Active: of.active, Turns: ended()}
	report.PerSecond = float64(report.Turns) / time.Since(begin).Seconds()
	return report, r.countTurns(ctx, report, begin, before)
}

func (r *rig) countTurns(ctx context.Context, report *turnsReport, begin time.Time, before map[string]usage) error {
	until := time.Now()
	cost, err := r.costSince(begin, before, report.Turns)
	if err != nil {
		return err
	}
	report.CPU, report.Processes = cost.CPUMillisecondsPerEach, cost.Processes
	report.Requests, report.Writes = cost.RequestsPerBackup, cost.WritesPerBackup
	each := 1 / float64(report.Turns)
	report.QueueRuns, err = r.readHistories(ctx, contract.VeleroQueueID(r.stack.ClusterID()), func(event *historypb.HistoryEvent) {
		report.LargestEvent = max(report.LargestEvent, event.Size())
		if at := event.EventTime.AsTime(); !at.Before(begin) && !at.After(until) {
			report.QueueEvents += each
			report.QueueBytes += float64(event.Size()) * each
		}
	})
	return err
}

func (all turnsReports) print(out io.Writer) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(out, "\nTurns of the queue before Velero, %d at a time; all that a turn's backup costs is in it\n\n", all[0].Active)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(title, pattern string, value func(*turnsReport) any) {
		fmt.Fprintf(table, "%s\t", title)
		for _, report := range all {
			fmt.Fprintf(table, pattern+"\t", value(report))
		}
		fmt.Fprintln(table)
	}
	row("waiting", "%d", func(t *turnsReport) any { return t.Waiting })
	row("turns measured", "%d", func(t *turnsReport) any { return t.Turns })
	row("turns per second", "%.1f", func(t *turnsReport) any { return t.PerSecond })
	row("events of the queue's history per turn", "%.1f", func(t *turnsReport) any { return t.QueueEvents })
	row("bytes of the queue's history per turn", "%.0f", func(t *turnsReport) any { return t.QueueBytes })
	row("bytes of its largest event", "%d", func(t *turnsReport) any { return t.LargestEvent })
	row("its runs so far", "%d", func(t *turnsReport) any { return t.QueueRuns })
	row("requests per turn", "%.2f", func(t *turnsReport) any { return t.Requests })
	row("writes per turn", "%.2f", func(t *turnsReport) any { return t.Writes })
	for _, name := range namesIn(all[0].CPU) {
		row("CPU ms per turn, "+name, "%.1f", func(t *turnsReport) any { return t.CPU[name] })
	}
	for _, name := range measured {
		row("peak memory MiB, "+name, "%.0f", func(t *turnsReport) any { return t.Processes[name].PeakMiB })
	}
	_ = table.Flush() // the terminal
	fmt.Fprintln(out)
}
