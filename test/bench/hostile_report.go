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

// hostileReport is what watchers took over a crowd of settled backups, of which some are large.
type hostileReport struct {
	Ordinary         int             `json:"ordinary"`
	Large            int             `json:"large"`
	OrdinaryBytes    int             `json:"ordinaryBytes"`
	LargeBytes       int             `json:"largeBytes"`
	StoredMiB        float64         `json:"storedMiB"`
	AwaySeconds      float64         `json:"awaySeconds"`
	Shipped          shipped         `json:"shipped"`
	Watchers         []watcherReport `json:"watchers"`
	Start            asked           `json:"start"`
	Outage           asked           `json:"outage"`
	WorkflowsStarted int64           `json:"workflowsStarted"`
	APIServer        usage           `json:"apiServer"`
}

// watcherReport is one watcher's. What it used counts from its start, also after the outage.
type watcherReport struct {
	Name   string      `json:"name"`
	Start  phaseReport `json:"start"`
	Outage phaseReport `json:"outage"`
}

// phaseReport: ReadySeconds is since the watcher's start, or since the API server's return.
type phaseReport struct {
	ReadySeconds float64 `json:"readySeconds"`
	PeakMiB      float64 `json:"peakMiB"`
	CPUSeconds   float64 `json:"cpuSeconds"`
}

// asked is what all watchers together asked of the API server. Writes are without Events.
type asked struct {
	Requests int `json:"requests"`
	Lists    int `json:"lists"`
	Writes   int `json:"writes"`
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
		if request.Wrote() && request.Resource != "events" {
			count.Writes++
		}
	}
	return count
}

func (r *hostileReport) print(out io.Writer) {
	if r == nil {
		return
	}
	limit := "no GOMEMLIMIT"
	if r.Shipped.GoMemLimit != "" {
		limit = "GOMEMLIMIT " + r.Shipped.GoMemLimit
	}
	fmt.Fprintf(out, "\n%d settled NonAdminBackups of %d bytes, %d of %d bytes, %.0f MiB in all with their Velero Backups; %s; "+
		"the API server away for %.0f s\n\n", r.Ordinary, r.OrdinaryBytes, r.Large, r.LargeBytes, r.StoredMiB, limit, r.AwaySeconds)
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
	row("ready after the API server's return, s", "%.1f", func(w watcherReport) float64 { return w.Outage.ReadySeconds })
	row("peak memory after the outage, MiB", "%.0f", func(w watcherReport) float64 { return w.Outage.PeakMiB })
	row("CPU seconds in all", "%.1f", func(w watcherReport) float64 { return w.Outage.CPUSeconds })
	_ = table.Flush() // the terminal
	fmt.Fprintf(out, "\nAim: at most %d MiB; the manifest's limit is %.0f MiB.\n", watcherAimMiB, r.Shipped.LimitMiB)
	for _, phase := range []struct {
		name string
		asked
	}{{"at the start", r.Start}, {"since the API server's return", r.Outage}} {
		fmt.Fprintf(out, "Requests of all watchers %s: %d, of which %d lists and %d writes, Events apart.\n",
			phase.name, phase.Requests, phase.Lists, phase.Writes)
	}
	fmt.Fprintf(out, "Workflows started: %d. The API server's own peak: %.0f MiB.\n\n", r.WorkflowsStarted, r.APIServer.PeakMiB)
}
