package size

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"holdfast.dev/holdfast/starter/operator"
)

// Shown is what `holdfast size` prints.
type Shown struct {
	*Estimate

	Day *Day `json:"day,omitempty"`
}

// Print writes it for a person.
func (s Shown) Print(out io.Writer) error {
	for _, part := range []func(io.Writer) error{s.printNeeds, s.printLimits, s.printDay} {
		if err := part(out); err != nil {
			return err
		}
	}
	return nil
}

func (s Shown) printNeeds(out io.Writer) error {
	sheet := operator.NewSheet(out)
	line := func(name, format string, values ...any) { sheet.Line(name, fmt.Sprintf(format, values...)) }
	line("Backups", "%.0f a day, %s a second; %s a second for %s after each due time", s.BackupsPerDay, number(s.BackupsPerSecond),
		number(s.PeakPerSecond), s.Load.Spread.Duration)
	c, t := s.Cluster, s.Temporal
	each := "In each of " + strconv.Itoa(s.Load.Clusters) + " clusters"
	if s.Load.Clusters == 1 {
		each = "In the cluster"
	}
	line(each, "%.0f tenants, %.0f stored backups", math.Ceil(float64(s.Load.Tenants)/float64(s.Load.Clusters)), c.StoredBackups)
	line("  worker", "%s", c.Worker)
	line("  watcher", "%s", c.Watcher)
	line("  API server", "%s cores for Holdfast's work, %s requests a second", number(c.APIServerCores), number(c.APIServerRequests))
	line("  etcd", "%s cores, %s MiB for backups", number(c.EtcdCores), number(c.EtcdMiB))
	line("  Velero", "%s", s.velero())
	line("Temporal", "%s cores for its services, %d frontends, %s requests a second", number(t.Cores), t.Frontends,
		number(t.FrontendPerSecond))
	line("  history shards", "%d; the number can never be changed", t.HistoryShards)
	line("  Schedules", "%s starts a second", number(t.ScheduleStarts))
	line("  database", "%s cores; a second %.0f statements, %.0f transactions that write, %s MiB of write-ahead log",
		number(t.DatabaseCores), t.Statements, t.Transactions, number(t.LogMiBPerSecond))
	line("  database size", "%s GiB, for %.0f days of retention", number(t.DatabaseGiB), s.Load.Retention.Hours()/day.Hours())
	return sheet.Flush()
}

// velero says how long the tenants wait for Velero.
func (s Shown) velero() string {
	c, given := s.Cluster, s.Load.ConcurrentBackups
	said := fmt.Sprintf("--concurrent-backups %d makes the backups of one due time in %s", given, short(c.AllMade.Duration))
	if c.AllMade.Duration > s.Load.interval() {
		said = fmt.Sprintf("--concurrent-backups %d does not keep up", given)
	}
	if given == c.ConcurrentBackups {
		return said
	}
	return said + fmt.Sprintf("; %d keeps up and leaves 30 %% free, in %s", c.ConcurrentBackups, short(c.LeastAllMade.Duration))
}

// String says what a Deployment needs.
func (d Deployment) String() string {
	return fmt.Sprintf("%d replicas, %s cores in all, each with a memory limit of %dMi and GOMEMLIMIT=%dMiB",
		d.Replicas, number(d.Cores), d.MemoryMiB, d.GoMemLimitMiB)
}

func (s Shown) printLimits(out io.Writer) error {
	first := s.Limits[0]
	said := "No limit is exceeded. The nearest is: "
	if first.Use > 1 {
		said = "Exceeded first: "
	}
	fmt.Fprintf(out, "\n%s%s.\n\n", said, first.What)
	return operator.PrintRows(out, []operator.Column[Limit]{
		operator.NewColumn("LIMIT", func(l Limit) string { return l.What }),
		operator.NewColumn("USE", func(l Limit) string { return strconv.Itoa(int(math.Round(100*l.Use))) + "%" }),
		operator.NewColumn("NEEDED", func(l Limit) string { return l.Needed }),
		operator.NewColumn("OF", func(l Limit) string { return l.Bound }),
		operator.NewColumn("CHANGE", func(l Limit) string {
			if l.Use <= busyShare {
				return ""
			}
			return l.Change
		}),
	}, s.Limits)
}

func (s Shown) printDay(out io.Writer) error {
	if s.Day == nil {
		return nil
	}
	done := fmt.Sprintf("all are done %s after the first was due", s.Day.AllDone.Round(time.Second))
	if s.Day.Unfinished > 0 {
		done = fmt.Sprintf("%d are not done a day later", s.Day.Unfinished)
	}
	fmt.Fprintf(out, "\nA simulated day: %d runs; %s.\n\n", s.Day.Runs, done)
	if err := operator.PrintRows(out, []operator.Column[Stage]{
		operator.NewColumn("STAGE", func(p Stage) string { return p.Name }),
		operator.NewColumn("P50", func(p Stage) string { return short(p.P50.Duration) }),
		operator.NewColumn("P95", func(p Stage) string { return short(p.P95.Duration) }),
		operator.NewColumn("MAX", func(p Stage) string { return short(p.Max.Duration) }),
	}, s.Day.Stages); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return operator.PrintRows(out, []operator.Column[Station]{
		operator.NewColumn("STATION", func(b Station) string { return b.Name }),
		operator.NewColumn("SERVERS", func(b Station) string { return strconv.Itoa(b.Servers) }),
		operator.NewColumn("BUSY, OF THE DAY", func(b Station) string { return strconv.Itoa(int(math.Round(100*b.Use))) + "%" }),
		operator.NewColumn("MAX WAITING", func(b Station) string { return strconv.Itoa(b.MaxWaiting) }),
	}, s.Day.Stations)
}

// short shows a duration by what matters of it.
func short(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(100 * time.Microsecond).String()
	}
}
