package tool

import (
	"context"
	"fmt"
	"strings"
	"time"

	"holdfast.dev/holdfast/test/fdbsim/container"
	"holdfast.dev/holdfast/test/fdbsim/state"
)

// point is a version with its time, as status --json prints it.
type point struct {
	Version      int64
	EpochSeconds int64
	Timestamp    string
	LagSeconds   *int64 `json:",omitempty"`
	ShardsBehind *int64 `json:",omitempty"`
}

func pointAt(c *state.Cluster, version int64) *point {
	at := c.Time(version)
	return &point{Version: version, EpochSeconds: at.Unix(), Timestamp: container.FormatTime(at)}
}

type statusName struct {
	Name        string
	Description string
	Completed   bool
	Running     bool
}

type currentSnapshot struct {
	Begin            *point
	EndTarget        *point
	IntervalSeconds  int64
	ExpectedProgress container.Number
	LastDispatch     *point `json:",omitempty"`
}

// statusDocument is what status --json prints.
type statusDocument struct {
	SchemaVersion           string
	BackupAgentsPaused      bool
	Tag                     string
	UID                     string           `json:",omitempty"`
	Status                  *statusName      `json:",omitempty"`
	Restorable              *bool            `json:",omitempty"`
	LatestRestorablePoint   *point           `json:",omitempty"`
	DestinationURL          string           `json:",omitempty"`
	StopAfterSnapshot       *bool            `json:",omitempty"`
	SnapshotIntervalSeconds *int64           `json:",omitempty"`
	LogBytesWritten         *int64           `json:",omitempty"`
	RangeBytesWritten       *int64           `json:",omitempty"`
	LatestLogEnd            *point           `json:",omitempty"`
	LatestSnapshotEnd       *point           `json:",omitempty"`
	CurrentSnapshot         *currentSnapshot `json:",omitempty"`
	// Errors is always empty: the real tool never fills it.
	Errors *[]string `json:",omitempty"`
}

func (r *run) status(ctx context.Context) error {
	if err := r.connect(ctx); err != nil {
		return err
	}
	c, err := r.Store.Read(r.cluster)
	if err != nil {
		return err
	}
	if !r.options.has("--json") {
		r.printf("%s\n", statusText(c, r.tag(), r.now(), r.errorLimit()))
		return nil
	}
	document, err := container.Marshal(statusJSON(c, r.tag(), r.now()))
	if err != nil {
		return err
	}
	r.printf("%s\n", document)
	return nil
}

func (r *run) errorLimit() int {
	if !r.options.has("-e") {
		return 10
	}
	limit, _ := number(r.options.text("-e"))
	return int(limit)
}

func statusJSON(c *state.Cluster, tag string, now time.Time) statusDocument {
	d := statusDocument{SchemaVersion: "1.0.0", BackupAgentsPaused: c.Paused, Tag: tag}
	b := c.Backup(tag)
	if b == nil {
		return d
	}
	d.UID = b.UID
	d.Status = &statusName{b.State, descriptions[b.State], b.State == state.Completed, b.Runnable()}
	latest, restorable := b.Restorable()
	d.Restorable = &restorable
	if restorable {
		d.LatestRestorablePoint = pointAt(c, latest)
		if b.State != state.Completed {
			lag := int64(now.Sub(c.Time(latest)).Seconds())
			d.LatestRestorablePoint.LagSeconds = &lag
		}
	}
	d.DestinationURL = b.URL
	if b.Snapshot != nil && (b.State == state.Running || b.State == state.RunningDifferentially) {
		d.StopAfterSnapshot, d.SnapshotIntervalSeconds = &b.StopWhenDone, &b.IntervalSeconds
		d.LogBytesWritten, d.RangeBytesWritten = &b.LogBytes, &b.RangeBytes
		d.LatestLogEnd = pointAt(c, b.LogEnd)
		if b.SnapshotEnd != 0 {
			d.LatestSnapshotEnd = pointAt(c, b.SnapshotEnd)
		}
		s := b.Snapshot
		d.CurrentSnapshot = &currentSnapshot{
			Begin: pointAt(c, s.Begin), EndTarget: pointAt(c, s.EndTarget), IntervalSeconds: s.IntervalSeconds,
			ExpectedProgress: container.Number(expected(c, s, now)), LastDispatch: pointAt(c, s.LastDispatch),
		}
		d.CurrentSnapshot.LastDispatch.ShardsBehind = &s.ShardsBehind
	}
	d.Errors = &[]string{}
	return d
}

// expected is how much of a snapshot should be done by now, in percent.
func expected(c *state.Cluster, s *state.Snapshot, now time.Time) float64 {
	if s.EndTarget <= s.Begin {
		return 100
	}
	return 100 * float64(c.Version(now)-s.Begin) / float64(s.EndTarget-s.Begin)
}

func statusText(c *state.Cluster, tag string, now time.Time, errorLimit int) string {
	var out strings.Builder
	b := c.Backup(tag)
	if b == nil {
		out.WriteString("No previous backups found.\n")
	} else {
		describeState(&out, b)
		fmt.Fprintf(&out, "BackupUID: %s\nBackupURL: %s\n", b.UID, b.URL)
		if b.Snapshot != nil && (b.State == state.Running || b.State == state.RunningDifferentially) {
			details(&out, c, b, now)
		}
		if len(b.Errors) > 0 && errorLimit > 0 {
			out.WriteString("Recent Errors (since initialization)\n")
			for _, problem := range b.Errors[max(0, len(b.Errors)-errorLimit):] {
				fmt.Fprintf(&out, "%d second(s) ago : '%s' on '%s'\n", int64(now.Sub(problem.At).Seconds()), problem.Message, problem.Task)
			}
		}
	}
	if c.Paused {
		out.WriteString("\nAll backup agents have been paused.\n")
	}
	return out.String()
}

func describeState(out *strings.Builder, b *state.Backup) {
	switch b.State {
	case state.Submitted:
		fmt.Fprintf(out, "The backup on tag `%s' is in progress (just started) to %s.\n", b.Tag, b.URL)
	case state.Running:
		fmt.Fprintf(out, "The backup on tag `%s' is in progress to %s.\n", b.Tag, b.URL)
	case state.RunningDifferentially:
		fmt.Fprintf(out, "The backup on tag `%s' is restorable but continuing to %s.\n", b.Tag, b.URL)
	case state.Completed:
		latest, _ := b.Restorable()
		fmt.Fprintf(out, "The previous backup on tag `%s' at %s completed at version %d.\n", b.Tag, b.URL, latest)
	default:
		fmt.Fprintf(out, "The previous backup on tag `%s' at %s %s.\n", b.Tag, b.URL, descriptions[b.State])
	}
}

func details(out *strings.Builder, c *state.Cluster, b *state.Backup, now time.Time) {
	fmt.Fprintf(out, "Snapshot interval is %d seconds.  ", b.IntervalSeconds)
	if b.State == state.RunningDifferentially {
		fmt.Fprintf(out, "Current snapshot progress target is %3.2f%% (>100%% means the snapshot is supposed to be done)\n",
			expected(c, b.Snapshot, now))
	} else {
		out.WriteString("The initial snapshot is still running.\n")
	}
	where := func(version int64) string {
		if version == 0 {
			return "N/A, N/A"
		}
		return fmt.Sprintf("%d, %s", version, container.FormatTime(c.Time(version)))
	}
	stops := "No"
	if b.StopWhenDone {
		stops = "Yes"
	}
	fmt.Fprintf(out, `
Details:
 LogBytes written - %d
 RangeBytes written - %d
 Last complete log version and timestamp        - %s
 Last complete snapshot version and timestamp   - %s
 Current Snapshot start version and timestamp   - %s
 Expected snapshot end version and timestamp    - %s
 Backup supposed to stop at next snapshot completion - %s
`, b.LogBytes, b.RangeBytes, where(b.LogEnd), where(b.SnapshotEnd), where(b.Snapshot.Begin), where(b.Snapshot.EndTarget), stops)
}
