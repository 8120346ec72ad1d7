package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"holdfast.dev/holdfast/test/env"
)

// watcherAimMiB is what a watcher's memory stays under, whatever tenants store.
const watcherAimMiB = 600

// crowdReport is what watchers took over a crowd of settled backups, of which some may be large.
type crowdReport struct {
	Ordinary      int             `json:"ordinary"`
	Large         int             `json:"large"`
	OrdinaryBytes int             `json:"ordinaryBytes"`
	LargeBytes    int             `json:"largeBytes"`
	StoredMiB     float64         `json:"storedMiB"`
	Namespaces    int             `json:"namespaces"`
	AwaySeconds   float64         `json:"awaySeconds,omitempty"`
	RestSeconds   float64         `json:"restSeconds,omitempty"`
	Shipped       shipped         `json:"shipped"`
	Watchers      []watcherReport `json:"watchers"`
	Start         asked           `json:"start"`
	// After is since the API server's return, or while nothing happened.
	After            asked        `json:"after"`
	WorkflowsStarted int64        `json:"workflowsStarted"`
	APIServer        usage        `json:"apiServer"`
	Reads            *readsReport `json:"reads,omitempty"`
}

// watcherReport is one watcher's. What it used counts from its start, also at the end.
type watcherReport struct {
	Name  string      `json:"name"`
	Start phaseReport `json:"start"`
	After phaseReport `json:"after"`
}

// phaseReport: ReadySeconds is since the watcher's start, or since the API server's return.
type phaseReport struct {
	ReadySeconds float64 `json:"readySeconds"`
	PeakMiB      float64 `json:"peakMiB"`
	CPUSeconds   float64 `json:"cpuSeconds"`
}

// asked is what all watchers together asked of the API server. Writes are without Events and Leases.
type asked struct {
	Requests int `json:"requests"`
	Lists    int `json:"lists"`
	Writes   int `json:"writes"`
	// Clocked are those that come by the clock, whatever there is.
	Clocked int `json:"byTheClock"`
}

// clocked: what is periodic, or the policy, which a watcher reads every other second.
func clocked(request env.AuditedRequest) bool {
	return periodic(request) || request.Resource == "configmaps" || request.Resource == "dataprotectionapplications"
}

// countAsked counts what the watchers have asked since.
func (r *rig) countAsked(since time.Time) (asked, error) {
	requests, err := r.stack.Audit()
	return countAsked(requests, since), err
}

func countAsked(requests []env.AuditedRequest, since time.Time) asked {
	var count asked
	for _, request := range requests {
		if request.User != env.HoldfastWatcher || request.At.Before(since) {
			continue
		}
		count.Requests++
		if request.Verb == "list" {
			count.Lists++
		}
		switch {
		case clocked(request):
			count.Clocked++
		case request.Wrote() && request.Resource != "events":
			count.Writes++
		}
	}
	return count
}

func (r *crowdReport) print(out io.Writer) {
	if r == nil {
		return
	}
	limit := "no GOMEMLIMIT"
	if r.Shipped.GoMemLimit != "" {
		limit = "GOMEMLIMIT " + r.Shipped.GoMemLimit
	}
	then := fmt.Sprintf("then the API server away for %.0f s", r.AwaySeconds)
	if r.atRest() {
		then = fmt.Sprintf("then nothing for %.0f s", r.RestSeconds)
	}
	fmt.Fprintf(out, "\n%d settled NonAdminBackups of %d bytes, %d of %d bytes, in %d namespaces, %.0f MiB in all with their "+
		"Velero Backups; %s; %s\n\n", r.Ordinary, r.OrdinaryBytes, r.Large, r.LargeBytes, r.Namespaces, r.StoredMiB, limit, then)
	r.printWatchers(out)
	after := "since the API server's return"
	if r.atRest() {
		hourly := time.Hour.Seconds() / r.RestSeconds
		after = fmt.Sprintf("at rest (in an hour %.0f, and %.0f by the clock)",
			float64(r.After.Requests-r.After.Clocked)*hourly, float64(r.After.Clocked)*hourly)
	} else {
		fmt.Fprintf(out, "\nAim: at most %d MiB; the manifest's limit is %.0f MiB.", watcherAimMiB, r.Shipped.LimitMiB)
	}
	fmt.Fprintln(out)
	for _, phase := range []struct {
		name string
		asked
	}{{"at the start", r.Start}, {after, r.After}} {
		fmt.Fprintf(out, "Requests of all watchers %s: %d, of which %d by the clock, %d lists, and %d writes, Events apart.\n",
			phase.name, phase.Requests, phase.Clocked, phase.Lists, phase.Writes)
	}
	fmt.Fprintf(out, "Workflows started: %d. The API server's own peak: %.0f MiB.\n\n", r.WorkflowsStarted, r.APIServer.PeakMiB)
	r.Reads.print(out)
}

// atRest: nothing happened after the start.
func (r *crowdReport) atRest() bool { return r.RestSeconds > 0 }

func (r *crowdReport) printWatchers(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(title, pattern string, cell func(watcherReport) float64) {
		fmt.Fprintf(table, "%s\t", title)
		for _, watcher := range r.Watchers {
			fmt.Fprintf(table, pattern+"\t", cell(watcher))
		}
		fmt.Fprintln(table)
	}
	fmt.Fprint(table, "\t")
	for _, watcher := range r.Watchers {
		fmt.Fprintf(table, "%s\t", watcher.Name)
	}
	fmt.Fprintln(table)
	row("ready after its start, s", "%.1f", func(w watcherReport) float64 { return w.Start.ReadySeconds })
	row("peak memory then, MiB", "%.0f", func(w watcherReport) float64 { return w.Start.PeakMiB })
	row("CPU seconds then", "%.1f", func(w watcherReport) float64 { return w.Start.CPUSeconds })
	if !r.atRest() {
		row("ready after the API server's return, s", "%.1f", func(w watcherReport) float64 { return w.After.ReadySeconds })
	}
	row("peak memory at the end, MiB", "%.0f", func(w watcherReport) float64 { return w.After.PeakMiB })
	row("CPU seconds in all", "%.1f", func(w watcherReport) float64 { return w.After.CPUSeconds })
	_ = table.Flush() // the terminal
}
