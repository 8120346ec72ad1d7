package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"holdfast.dev/holdfast/test/env"
)

// longReport is about a load that lasts.
type longReport struct {
	PerSecond   float64 `json:"perSecond"`
	Namespaces  int     `json:"namespaces"`
	Watchers    int     `json:"watchers"`
	Plans       bool    `json:"plans,omitempty"`
	KeptSeconds float64 `json:"keptSeconds"`
	// Open are plans that are not due, from before the rest on.
	Open *openReport `json:"open,omitempty"`
	// Rest is before the load begins.
	Rest    longSample   `json:"rest"`
	Samples []longSample `json:"samples"`
	// Whole is from the beginning of the load until the last deletion has ended, or the last backup if none is deleted.
	Whole longSample `json:"whole"`
	// Alone is Temporal's part of a rest without Holdfast.
	Alone *longSample `json:"alone,omitempty"`
}

// longSample is about one part of the time.
type longSample struct {
	UntilSeconds float64 `json:"untilSeconds"`
	Seconds      float64 `json:"seconds"`
	Created      int     `json:"created"`
	Settled      int     `json:"settled"`
	Deleted      int     `json:"deleted"`
	// Of those that settled: ToVelero is from the time at which it was due to the Velero Backup, ToStatus from Velero's completion
	// to the status that shows it. A plan's backup is due when it is first seen.
	ToVeleroP50 millis `json:"toVeleroP50Ms"`
	ToVeleroP95 millis `json:"toVeleroP95Ms"`
	ToStatusP50 millis `json:"toStatusP50Ms"`
	ToStatusP95 millis `json:"toStatusP95Ms"`
	ToStatusMax millis `json:"toStatusMaxMs"`

	CPUSeconds map[string]float64 `json:"cpuSeconds"`
	// MemoryMiB is at the end; what processes share counts once.
	MemoryMiB map[string]float64 `json:"memoryMiB"`
	// WorkerRequests and WatcherRequests are those at the API server, FrontendRequests those at Temporal's frontend with all polls.
	WorkerRequests      float64            `json:"workerRequests"`
	WorkerByMethod      map[string]float64 `json:"workerRequestsByMethod"`
	WatcherRequests     float64            `json:"watcherRequests"`
	FrontendRequests    float64            `json:"frontendRequests"`
	FrontendByOperation map[string]float64 `json:"frontendRequestsByOperation"`
	Ended               endedRuns          `json:"ended"`
	// Database is what was added in this part.
	Database databaseCount `json:"database,omitzero"`
	// TablesMiB are the largest tables at its end, with their indexes.
	TablesMiB map[string]float64 `json:"tablesMiB,omitempty"`
}

// each is how many backups were created, or deleted if those are more.
func (s longSample) each() float64 { return float64(max(s.Created, s.Deleted)) }

// sampleRow prints one number of all samples.
type sampleRow func(title, pattern string, value func(longSample) float64)

func (r *longReport) print(out io.Writer) {
	if r == nil {
		return
	}
	r.Open.print(out)
	until := fmt.Sprintf("each is deleted after %.0f s (0: never)", r.KeptSeconds)
	if r.Plans {
		until = "plans make them, and delete each when the next one is good"
	}
	fmt.Fprintf(out, "\n%.1f backups a second over %d namespaces, %d watchers; %s\n\n", r.PerSecond, r.Namespaces, r.Watchers, until)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(title, pattern string, value func(longSample) float64) {
		fmt.Fprintf(table, "%s\t", title)
		for _, sample := range slices.Concat([]longSample{r.Rest}, r.Samples, []longSample{r.Whole}) {
			fmt.Fprintf(table, pattern+"\t", value(sample))
		}
		fmt.Fprintln(table)
	}
	each := func(title, pattern string, value func(longSample) float64) {
		row(title, pattern, func(s longSample) float64 { return value(s) / max(s.each(), 1) })
	}
	printLateness(row)
	r.printProcesses(row, each)
	each("requests of the worker at the API server per backup", "%.1f", func(s longSample) float64 { return s.WorkerRequests })
	each("of these writes", "%.1f", func(s longSample) float64 { return written(s.WorkerByMethod) })
	each("requests of the watchers there per backup", "%.1f", func(s longSample) float64 { return s.WatcherRequests })
	each("requests at Temporal's frontend per backup", "%.1f", func(s longSample) float64 { return s.FrontendRequests })
	each("workflow runs ended per backup", "%.2f", func(s longSample) float64 { return float64(s.Ended.Runs) })
	each("events of their histories per backup", "%.1f", func(s longSample) float64 { return float64(s.Ended.Events) })
	each("bytes of their histories per backup", "%.0f", func(s longSample) float64 { return float64(s.Ended.Bytes) })
	if r.Whole.Database.Statements > 0 {
		r.printDatabase(row, each)
	}
	_ = table.Flush() // the terminal
	fmt.Fprintf(out, "\nThe first column is before the load, the last one the whole time of it. Per backup is per one that was "+
		"created, or deleted if those are\nmore; in the first column it is in all. PostgreSQL is a part of %s too.\n\n", env.Temporal)
	r.Alone.printAlone(out)
}

// printAlone prints a rest without Holdfast, a second.
func (s *longSample) printAlone(out io.Writer) {
	if s == nil {
		return
	}
	fmt.Fprintf(out, "At rest without Holdfast, a second: %.3f cores of %s with PostgreSQL, %.3f of that alone; %.1f requests at "+
		"the frontend, %.0f SQL statements, %.1f transactions that write\n\n", s.CPUSeconds[env.Temporal]/s.Seconds, env.Temporal,
		s.CPUSeconds[env.Postgres]/s.Seconds, s.FrontendRequests/s.Seconds, s.Database.Statements/s.Seconds,
		s.Database.Transactions/s.Seconds)
}

func printLateness(row sampleRow) {
	row("until, s", "%.0f", func(s longSample) float64 { return s.UntilSeconds })
	row("created", "%.0f", func(s longSample) float64 { return float64(s.Created) })
	row("settled", "%.0f", func(s longSample) float64 { return float64(s.Settled) })
	row("deleted", "%.0f", func(s longSample) float64 { return float64(s.Deleted) })
	row("due to Velero Backup, p50 ms", "%.0f", func(s longSample) float64 { return float64(s.ToVeleroP50) })
	row("p95 ms", "%.0f", func(s longSample) float64 { return float64(s.ToVeleroP95) })
	row("Velero's completion to status, p50 ms", "%.0f", func(s longSample) float64 { return float64(s.ToStatusP50) })
	row("p95 ms", "%.0f", func(s longSample) float64 { return float64(s.ToStatusP95) })
	row("slowest ms", "%.0f", func(s longSample) float64 { return float64(s.ToStatusMax) })
}

func (r *longReport) printProcesses(row, each sampleRow) {
	names := namesIn(r.Whole.CPUSeconds)
	for _, name := range names {
		row("cores, "+name, "%.3f", func(s longSample) float64 { return s.CPUSeconds[name] / s.Seconds })
	}
	for _, name := range names {
		each("CPU ms per backup, "+name, "%.1f", func(s longSample) float64 { return s.CPUSeconds[name] * 1000 })
	}
	for _, name := range names {
		row("memory MiB, "+name, "%.0f", func(s longSample) float64 { return s.MemoryMiB[name] })
	}
}

func (r *longReport) printDatabase(row, each sampleRow) {
	each("growth of Temporal's database per backup, bytes", "%.0f", func(s longSample) float64 { return s.Database.Bytes })
	each("of its histories, bytes", "%.0f", func(s longSample) float64 { return s.Database.Histories })
	each("write-ahead log per backup, bytes", "%.0f", func(s longSample) float64 { return s.Database.Log })
	each("SQL statements per backup", "%.1f", func(s longSample) float64 { return s.Database.Statements })
	each("transactions that write per backup", "%.1f", func(s longSample) float64 { return s.Database.Transactions })
	sizes := r.Whole.TablesMiB
	for _, name := range slices.SortedFunc(maps.Keys(sizes), func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[b], sizes[a]), cmp.Compare(a, b))
	}) {
		row("table MiB, "+name, "%.1f", func(s longSample) float64 { return s.TablesMiB[name] })
	}
}
