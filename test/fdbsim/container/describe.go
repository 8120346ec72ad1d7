package container

import (
	"context"
	"math"
)

// Description is what describe says of a container.
type Description struct {
	URL           string
	Snapshots     []DescribedSnapshot
	SnapshotBytes int64
	ExpiredEnd    *int64
	UnreliableEnd *int64
	MinLogBegin   *int64
	ContiguousEnd *int64
	MaxLogEnd     *int64
	MinRestorable *int64
	MaxRestorable *int64
}

// DescribedSnapshot is a snapshot with what describe makes of it.
type DescribedSnapshot struct {
	SnapshotFile
	Restorable bool
}

// Restorable says whether the container can be restored to any version.
func (d *Description) Restorable() bool { return d.MaxRestorable != nil }

// PercentageExpired is how much of a snapshot lies before the end of what was expired.
func (d *Description) PercentageExpired(s DescribedSnapshot) float64 {
	if d.ExpiredEnd == nil || *d.ExpiredEnd <= s.Begin {
		return 0
	}
	if *d.ExpiredEnd > s.End {
		return 100
	}
	return 100 * float64(*d.ExpiredEnd-s.Begin) / float64(s.End-s.Begin)
}

func or(value *int64, otherwise int64) int64 {
	if value == nil {
		return otherwise
	}
	return *value
}

// Describe reads a container as `describe` does, and as it does writes down the range of the logs that it found. A deep one
// does not trust what an earlier one wrote down. With override, versions before it count as unreliable and nothing is written.
func (c *Container) Describe(ctx context.Context, deep bool, override *int64) (*Description, error) {
	exists, err := c.Exists(ctx)
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, ErrNoBackup
	}
	if override != nil && *override < 0 {
		first, err := c.Describe(ctx, false, nil)
		if err != nil {
			return nil, err
		}
		resolved, err := Resolve(*override, first.MaxLogEnd)
		if err != nil {
			return nil, err
		}
		override = &resolved
	}
	d := &Description{URL: c.URL}
	known := map[string]*int64{}
	for _, name := range []string{expiredEnd, unreliableEnd, logType, logBegin, logEnd} {
		if deep && (name == logBegin || name == logEnd) {
			continue
		}
		if known[name], err = c.property(ctx, name); err != nil {
			return nil, err
		}
	}
	if override != nil && or(known[unreliableEnd], -1) < *override {
		known[unreliableEnd] = override
	}
	begin, end := known[logBegin], known[logEnd]
	if begin == nil || end == nil || *end <= *begin || *end < or(known[expiredEnd], -1) || *end < or(known[unreliableEnd], -1) {
		begin, end = nil, nil
	}
	d.ExpiredEnd, d.UnreliableEnd = known[expiredEnd], known[unreliableEnd]
	if or(d.UnreliableEnd, -1) < or(d.ExpiredEnd, -1) {
		d.UnreliableEnd = d.ExpiredEnd
	}
	if err := c.describeLogs(ctx, d, begin, end); err != nil {
		return nil, err
	}
	if override == nil {
		c.remember(ctx, d, begin, end, known[logType])
	}
	if err := c.describeSnapshots(ctx, d); err != nil {
		return nil, err
	}
	return d, nil
}

// describeLogs finds out how far the logs reach without a gap.
func (c *Container) describeLogs(ctx context.Context, d *Description, begin, end *int64) error {
	scan := or(d.UnreliableEnd, 0)
	trusted := begin != nil
	if trusted {
		first := max(*begin, scan)
		d.MinLogBegin, d.MaxLogEnd, d.ContiguousEnd = &first, end, end
		scan = *end
	}
	logs, err := c.Logs(ctx, scan, math.MaxInt64)
	if err != nil || len(logs) == 0 {
		return err
	}
	last := logs[0].End
	for _, log := range logs {
		last = max(last, log.End)
	}
	d.MaxLogEnd = &last
	contiguous := logs[0].End
	switch {
	case !trusted:
		d.MinLogBegin = &logs[0].Begin
		logs = logs[1:]
	case c.StaleDescribe:
		return nil // the defect: the first log after the trusted range is passed over, so that none after it connects
	default:
		contiguous = *end
	}
	for _, log := range logs {
		if log.Begin > contiguous {
			break
		}
		contiguous = max(contiguous, log.End)
	}
	d.ContiguousEnd = &contiguous
	return nil
}

// remember writes down what was found. A container that cannot be written to is none the worse.
func (c *Container) remember(ctx context.Context, d *Description, begin, end, kind *int64) {
	for _, p := range []struct {
		name       string
		found, old *int64
	}{{logBegin, d.MinLogBegin, begin}, {logEnd, d.ContiguousEnd, end}} {
		if p.found != nil && (p.old == nil || *p.old != *p.found) {
			if c.setProperty(ctx, p.name, *p.found) != nil {
				return
			}
		}
	}
	if kind == nil {
		_ = c.setProperty(ctx, logType, 0)
	}
}

func (c *Container) describeSnapshots(ctx context.Context, d *Description) error {
	snapshots, err := c.Snapshots(ctx)
	for _, file := range snapshots {
		s := DescribedSnapshot{SnapshotFile: file}
		covered := d.MinLogBegin != nil && d.ContiguousEnd != nil &&
			s.Begin >= *d.MinLogBegin && s.End < *d.ContiguousEnd
		s.Restorable = covered || s.Begin == s.End
		d.SnapshotBytes += s.Bytes
		latest := s.End
		if covered {
			latest = *d.ContiguousEnd - 1
		}
		if s.Restorable {
			if d.MinRestorable == nil || s.End < *d.MinRestorable {
				d.MinRestorable = &s.End
			}
			if d.MaxRestorable == nil || latest > *d.MaxRestorable {
				d.MaxRestorable = &latest
			}
		}
		d.Snapshots = append(d.Snapshots, s)
	}
	return err
}

// Resolve turns a version that is negative, and so relative to the end of the last log, into one that is not.
func Resolve(version int64, maxLogEnd *int64) (int64, error) {
	if version >= 0 {
		return version, nil
	}
	if maxLogEnd == nil {
		return 0, ErrInvalidOption
	}
	return *maxLogEnd + version, nil
}
