package container

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/holdfast/test/fdbsim/state"
)

// TimeFormat is how the tools write times.
const TimeFormat = "2006/01/02.15:04:05-0700"

// FormatTime writes a moment as the tools do, in UTC.
func FormatTime(at time.Time) string { return at.UTC().Format(TimeFormat) }

const versionsPerDay = 86400 * state.VersionsPerSecond

// Number is a floating point number with the six digits that the tools print.
type Number float64

// MarshalJSON writes the number as C's %g does.
func (n Number) MarshalJSON() ([]byte, error) { return []byte(n.String()), nil }

func (n Number) String() string { return strconv.FormatFloat(float64(n), 'g', 6, 64) }

// Marshal writes JSON as the tools do: on one line, without the escapes for web pages.
func Marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

type jsonPoint struct {
	Version      int64
	RelativeDays *Number `json:",omitempty"`
	Timestamp    string  `json:",omitempty"`
	EpochSeconds int64   `json:",omitempty"`
}

type jsonSnapshot struct {
	Start             jsonPoint
	End               jsonPoint
	Restorable        bool
	TotalBytes        int64
	PercentageExpired Number
}

// JSON is the description as describe --json prints it. With a clock, points have times instead of distances.
func (d *Description) JSON(clock func(version int64) time.Time) ([]byte, error) {
	point := func(version int64) jsonPoint {
		p := jsonPoint{Version: version}
		switch {
		case clock != nil:
			p.Timestamp, p.EpochSeconds = FormatTime(clock(version)), clock(version).Unix()
		case d.MaxLogEnd != nil:
			days := Number(float64(version-*d.MaxLogEnd) / versionsPerDay)
			p.RelativeDays = &days
		}
		return p
	}
	optional := func(version *int64) *jsonPoint {
		if version == nil {
			return nil
		}
		p := point(*version)
		return &p
	}
	snapshots := make([]jsonSnapshot, 0, len(d.Snapshots))
	for _, s := range d.Snapshots {
		snapshots = append(snapshots, jsonSnapshot{
			Start: point(s.Begin), End: point(s.End), Restorable: s.Restorable, TotalBytes: s.Bytes,
			PercentageExpired: Number(d.PercentageExpired(s)),
		})
	}
	return Marshal(struct {
		SchemaVersion      string
		URL                string
		Restorable         bool
		Partitioned        bool
		Snapshots          []jsonSnapshot
		TotalSnapshotBytes int64
		ExpiredEnd         *jsonPoint `json:",omitempty"`
		UnreliableEnd      *jsonPoint `json:",omitempty"`
		MinLogBegin        *jsonPoint `json:",omitempty"`
		ContiguousLogEnd   *jsonPoint `json:",omitempty"`
		MaxLogEnd          *jsonPoint `json:",omitempty"`
		MinRestorablePoint *jsonPoint `json:",omitempty"`
		MaxRestorablePoint *jsonPoint `json:",omitempty"`
	}{
		"1.0.0", d.URL, d.Restorable(), false, snapshots, d.SnapshotBytes, optional(d.ExpiredEnd), optional(d.UnreliableEnd),
		optional(d.MinLogBegin), optional(d.ContiguousEnd), optional(d.MaxLogEnd), optional(d.MinRestorable),
		optional(d.MaxRestorable),
	})
}

// Text is the description as describe prints it.
func (d *Description) Text(clock func(version int64) time.Time) string {
	where := func(version int64) string {
		switch {
		case clock != nil:
			return " (" + FormatTime(clock(version)) + ")"
		case d.MaxLogEnd == nil:
			return ""
		case version > *d.MaxLogEnd:
			return fmt.Sprintf(" (maxLogEnd +%.2f days)", float64(*d.MaxLogEnd-version)/versionsPerDay)
		default:
			return fmt.Sprintf(" (maxLogEnd -%.2f days)", float64(*d.MaxLogEnd-version)/versionsPerDay)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "URL: %s\nRestorable: %t\nPartitioned logs: false\n", d.URL, d.Restorable())
	for _, s := range d.Snapshots {
		fmt.Fprintf(&b, "Snapshot:  startVersion=%d%s  endVersion=%d%s  totalBytes=%d  restorable=%t  expiredPct=%.2f\n",
			s.Begin, where(s.Begin), s.End, where(s.End), s.Bytes, s.Restorable, d.PercentageExpired(s))
	}
	fmt.Fprintf(&b, "SnapshotBytes: %d\n", d.SnapshotBytes)
	for _, line := range []struct {
		name    string
		version *int64
	}{
		{"ExpiredEndVersion:       ", d.ExpiredEnd},
		{"UnreliableEndVersion:    ", d.UnreliableEnd},
		{"MinLogBeginVersion:      ", d.MinLogBegin},
		{"ContiguousLogEndVersion: ", d.ContiguousEnd},
		{"MaxLogEndVersion:        ", d.MaxLogEnd},
		{"MinRestorableVersion:    ", d.MinRestorable},
		{"MaxRestorableVersion:    ", d.MaxRestorable},
	} {
		if line.version != nil {
			fmt.Fprintf(&b, "%s%d%s\n", line.name, *line.version, where(*line.version))
		}
	}
	return b.String()
}
