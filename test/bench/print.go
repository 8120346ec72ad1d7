package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// toStatusAim is what the 95th percentile of a burst of 1,000 stays under.
const toStatusAim = 2 * time.Second

func (r *report) print(out io.Writer) {
	if len(r.Bursts) > 0 {
		r.printBursts(out)
	}
	r.Restart.print(out)
	r.Hostile.print(out)
	r.Big.print(out)
	r.Plans.print(out)
	r.Steps.print(out)
	r.Long.print(out)
	r.Restores.print(out)
	r.Turns.print(out)
	r.Baseline.print(out)
	r.Expiries.print(out)
}

func (l *loneReport) print(out io.Writer, title string) {
	if l != nil {
		fmt.Fprintf(out, "\n%s: Velero Backup after %.0f ms (median of %d; slowest %.0f ms)\n",
			title, l.ToVelero, l.Backups, l.ToVeleroMax)
	}
}

func (r *report) printBursts(out io.Writer) {
	r.Lone.print(out, "One backup alone")
	r.LoneInTurn.print(out, "One backup alone, with the queue before Velero")
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(title string, cell func(*burstReport) string) {
		fmt.Fprintf(table, "%s\t", title)
		for _, burst := range r.Bursts {
			fmt.Fprintf(table, "%s\t", cell(burst))
		}
		fmt.Fprintln(table)
	}
	number := func(pattern string, value func(*burstReport) float64) func(*burstReport) string {
		return func(b *burstReport) string { return fmt.Sprintf(pattern, value(b)) }
	}
	row("backups in a burst", func(b *burstReport) string { return fmt.Sprint(b.Backups) })
	row("watchers", func(b *burstReport) string { return fmt.Sprint(b.Watchers) })
	row("busy loops beside", func(b *burstReport) string { return fmt.Sprint(b.BusyLoops) })
	row("active at a time", func(b *burstReport) string { return cmp.Or(strings.TrimPrefix(fmt.Sprint(b.MaxActive), "0"), "any") })
	row("backups per second", number("%.1f", func(b *burstReport) float64 { return b.PerSecond }))
	row("creation to Velero Backup, p50 ms", number("%.0f", func(b *burstReport) float64 { return float64(b.ToVeleroP50) }))
	row("p95 ms", number("%.0f", func(b *burstReport) float64 { return float64(b.ToVeleroP95) }))
	row("Velero's completion to status, p50 ms", number("%.0f", func(b *burstReport) float64 { return float64(b.ToStatusP50) }))
	row("p95 ms", number("%.0f", func(b *burstReport) float64 { return float64(b.ToStatusP95) }))
	row("slowest ms", number("%.0f", func(b *burstReport) float64 { return float64(b.ToStatusMax) }))
	row("signals per backup", number("%.2f", func(b *burstReport) float64 { return b.History.Signals }))
	row("reads per backup", number("%.2f", func(b *burstReport) float64 { return b.ReadsPerBackup }))
	row("writes per backup", number("%.2f", func(b *burstReport) float64 { return b.WritesPerBackup }))
	row("queue position patches per backup", number("%.2f", func(b *burstReport) float64 { return b.QueuePatchesPerBackup }))
	row("requests per backup", number("%.2f", func(b *burstReport) float64 { return b.RequestsPerBackup }))
	row("requests by the clock, a second", number("%.2f", func(b *burstReport) float64 { return b.ByTheClockPerSecond }))
	row("history events, mean", number("%.1f", func(b *burstReport) float64 { return b.History.Events }))
	row("history events, most", number("%.0f", func(b *burstReport) float64 { return float64(b.History.EventsMax) }))
	row("history bytes, mean", number("%.0f", func(b *burstReport) float64 { return b.History.Bytes }))
	row("workflow tasks, mean", number("%.2f", func(b *burstReport) float64 { return b.History.WorkflowTasks }))
	row("workflow tasks, most", number("%.0f", func(b *burstReport) float64 { return float64(b.History.WorkflowTasksMax) }))
	row("search attribute upserts, most", number("%.0f",
		func(b *burstReport) float64 { return float64(b.History.AttributeUpsertMax) }))
	row("workflow runs, most", number("%.0f", func(b *burstReport) float64 { return float64(b.History.RunsMax) }))
	for _, name := range measured {
		row("CPU ms per backup, "+name, number("%.1f", func(b *burstReport) float64 { return b.CPUMillisecondsPerEach[name] }))
	}
	for _, name := range measured {
		row("peak memory MiB, "+name, number("%.0f", func(b *burstReport) float64 { return b.Processes[name].PeakMiB }))
	}
	_ = table.Flush() // the terminal
	fmt.Fprintf(out, "\nAim, with two busy loops beside: Velero's completion to status p95 under %d ms at 1,000 backups.\n",
		toStatusAim.Milliseconds())
	r.printTurns(out)
	r.printBurstRequests(out)
}

// printTurns compares bursts with and without the queue before Velero, if both were measured.
func (r *report) printTurns(out io.Writer) {
	if r.Lone != nil && r.LoneInTurn != nil {
		fmt.Fprintf(out, "\nWith the queue before Velero a lone backup reaches Velero %+.0f ms later; at most 100 are promised.\n",
			r.LoneInTurn.ToVelero-r.Lone.ToVelero)
	}
	sizes := map[int]bool{}
	for _, burst := range r.Bursts {
		sizes[burst.Backups] = true
	}
	for _, size := range slices.Sorted(maps.Keys(sizes)) {
		without := r.perSecond(func(b *burstReport) bool { return b.Backups == size && b.MaxActive == 0 })
		with := r.perSecond(func(b *burstReport) bool { return b.Backups == size && b.MaxActive > 0 })
		if without > 0 && with > 0 {
			fmt.Fprintf(out, "With the queue before Velero a burst of %d has %.2f of the backups per second without; promised: 0.95.\n",
				size, with/without)
		}
	}
}

// perSecond returns how many backups per second the bursts that match have in the mean; 0 if there is none.
func (r *report) perSecond(is func(*burstReport) bool) float64 {
	sum, count := 0.0, 0.0
	for _, burst := range r.Bursts {
		if is(burst) {
			sum, count = sum+burst.PerSecond, count+1
		}
	}
	return sum / max(count, 1)
}

// printBurstRequests shows what the largest burst asked of the API server.
func (r *report) printBurstRequests(out io.Writer) {
	largest := slices.MaxFunc(r.Bursts, func(a, b *burstReport) int { return cmp.Compare(a.Backups, b.Backups) })
	fmt.Fprintf(out, "\nRequests per backup at %d, and those by the clock:\n", largest.Backups)
	printRequests(out, largest.RequestsByVerb)
}

func printRequests(out io.Writer, byVerb map[string]float64) {
	for _, kind := range slices.Sorted(maps.Keys(byVerb)) {
		fmt.Fprintf(out, "  %6.2f  %s\n", byVerb[kind], kind)
	}
}

func (r *restartReport) print(out io.Writer) {
	if r == nil {
		return
	}
	fmt.Fprintf(out, "\nRestart of the watcher over %d settled backups: ready after %.1f s, %d requests, %.1f CPU seconds, "+
		"%.0f MiB\n  workflows started: %v\n  written: %v\n\n",
		r.Settled, r.ReadySeconds, r.Requests, r.Watcher.CPUSeconds, r.Watcher.PeakMiB, r.Workflows, r.Writes)
}
