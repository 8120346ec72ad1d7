package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// plansReport is about plans that are all due in the same minute.
type plansReport struct {
	Plans      int    `json:"plans"`
	Namespaces int    `json:"namespaces"`
	Watchers   int    `json:"watchers"`
	Jitter     string `json:"jitter"`
	// ReadySeconds: from the first creation until all had their Schedules.
	ReadySeconds float64            `json:"readySeconds"`
	CPUToMake    map[string]float64 `json:"cpuMsToMakeOne"`
	// Window is from the first begin that was planned to the last.
	WindowSeconds    float64 `json:"windowSeconds"`
	PlannedPerSecond int     `json:"plannedInTheBusiestSecond"`
	BegunPerSecond   int     `json:"begunInTheBusiestSecond"`
	PlannedPerMinute int     `json:"plannedInTheBusiestMinute"`
	BegunPerMinute   int     `json:"begunInTheBusiestMinute"`
	// Late: from the planned begin to the NonAdminBackup. VeleroLate: to the Velero Backup.
	LateP50       millis             `json:"lateP50Ms"`
	LateP95       millis             `json:"lateP95Ms"`
	LateP99       millis             `json:"lateP99Ms"`
	LateMax       millis             `json:"lateMaxMs"`
	VeleroLateP95 millis             `json:"veleroBackupLateP95Ms"`
	Seconds       float64            `json:"seconds"`
	CPUPerRun     map[string]float64 `json:"cpuMsPerRun"`
	Processes     map[string]usage   `json:"processes"`
	// Requests and writes of a run are those of the plan and of its backup.
	RequestsPerRun float64            `json:"requestsPerRun"`
	WritesPerRun   float64            `json:"writesPerRun"`
	RequestsByVerb map[string]float64 `json:"requestsPerRunByVerb"`
	Restart        plansRestart       `json:"restart"`
}

func (p *plansReport) noteLateness(planned, begun, handed []time.Time) {
	var late, veleroLate []time.Duration
	for i, at := range planned {
		late = append(late, begun[i].Sub(at))
		veleroLate = append(veleroLate, handed[i].Sub(at))
	}
	for share, of := range map[int]*millis{50: &p.LateP50, 95: &p.LateP95, 99: &p.LateP99, 100: &p.LateMax} {
		*of = inMillis(percentile(late, share))
	}
	p.VeleroLateP95 = inMillis(percentile(veleroLate, 95))
	p.PlannedPerSecond, p.PlannedPerMinute = busiest(planned, time.Second), busiest(planned, time.Minute)
	p.BegunPerSecond, p.BegunPerMinute = busiest(begun, time.Second), busiest(begun, time.Minute)
	p.WindowSeconds = slices.MaxFunc(planned, time.Time.Compare).Sub(slices.MinFunc(planned, time.Time.Compare)).Seconds()
}

// busiest is the most times that lie within one span, spans counted from zero.
func busiest(times []time.Time, span time.Duration) int {
	counts, most := map[time.Time]int{}, 0
	for _, at := range times {
		slot := at.Truncate(span).UTC()
		counts[slot]++
		most = max(most, counts[slot])
	}
	return most
}

func (p *plansReport) print(out io.Writer) {
	if p == nil {
		return
	}
	jitter := p.Jitter
	if jitter == "" {
		jitter = "the default"
	}
	fmt.Fprintf(out, "\n%d plans due in the same minute, jitter %s, %d namespaces, %d watchers: ready after %.0f s\n\n",
		p.Plans, jitter, p.Namespaces, p.Watchers, p.ReadySeconds)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(title, pattern string, value any) { fmt.Fprintf(table, "%s\t"+pattern+"\t\n", title, value) }
	if p.Seconds > 0 {
		p.printRuns(row)
	}
	for _, name := range measured {
		row("CPU ms per plan made, "+name, "%.1f", p.CPUToMake[name])
	}
	for _, name := range measured {
		row("peak memory MiB, "+name, "%.0f", p.Processes[name].PeakMiB)
	}
	_ = table.Flush() // the terminal
	if p.Seconds > 0 {
		fmt.Fprintln(out, "\nRequests per run, and those by the clock:")
		printRequests(out, p.RequestsByVerb)
	}
	restart := p.Restart
	fmt.Fprintf(out, "\nRestart of worker and watchers over them: ready after %.1f s, %d workflows of plans started, %d writes, "+
		"%d requests\n\n", restart.ReadySeconds, restart.WorkflowsStarted, len(restart.Writes), restart.Requests)
}

// printRuns shows how late the runs were, and what they cost.
func (p *plansReport) printRuns(row func(title, pattern string, value any)) {
	row("begins are planned within, s", "%.0f", p.WindowSeconds)
	row("planned in the busiest second", "%d", p.PlannedPerSecond)
	row("begun in the busiest second", "%d", p.BegunPerSecond)
	row("planned in the busiest minute", "%d", p.PlannedPerMinute)
	row("begun in the busiest minute", "%d", p.BegunPerMinute)
	row("NonAdminBackup later than planned, p50 ms", "%.0f", p.LateP50)
	row("p95 ms", "%.0f", p.LateP95)
	row("p99 ms", "%.0f", p.LateP99)
	row("most ms", "%.0f", p.LateMax)
	row("Velero Backup later than planned, p95 ms", "%.0f", p.VeleroLateP95)
	row("all are good after, s", "%.0f", p.Seconds)
	row("requests per run", "%.2f", p.RequestsPerRun)
	row("writes per run", "%.2f", p.WritesPerRun)
	for _, name := range measured {
		row("CPU ms per run, "+name, "%.1f", p.CPUPerRun[name])
	}
}
