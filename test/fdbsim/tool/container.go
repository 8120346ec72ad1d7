package tool

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"holdfast.dev/holdfast/test/fdbsim/container"
	"holdfast.dev/holdfast/test/fdbsim/state"
)

// timeKeeper returns a cluster's mapping of versions to times.
func (r *run) timeKeeper(ctx context.Context) (*state.Cluster, error) {
	if err := r.connect(ctx); err != nil {
		return nil, err
	}
	return r.Store.Read(r.cluster)
}

func (r *run) describe(ctx context.Context) error {
	var clock func(int64) time.Time
	if r.options.has("--version-timestamps") {
		if _, err := r.openCluster(r.clusterFile()); err != nil {
			return err
		}
	}
	c, err := r.destination("-d")
	if err != nil {
		return err
	}
	d, err := c.Describe(ctx, r.options.has("--deep"), nil)
	if err != nil {
		return failed(err)
	}
	if r.options.has("--version-timestamps") {
		keeper, err := r.timeKeeper(ctx)
		if err != nil {
			return err
		}
		clock = keeper.Time
	}
	if !r.options.has("--json") {
		r.printf("%s\n", d.Text(clock))
		return nil
	}
	document, err := d.JSON(clock)
	if err != nil {
		return err
	}
	r.printf("%s\n", document)
	return nil
}

func (r *run) list(ctx context.Context) error {
	if !r.options.has("-b") {
		return fatal("Backup error", "ERROR: No base URL was specified.", r.teaser())
	}
	u, err := container.Parse(r.options.text("-b"), r.Dir, true)
	if err != nil {
		return fatal("Backup Container URL invalid", "ERROR: "+err.Error(), r.teaser(), "ERROR: Backup Container URL invalid")
	}
	urls, err := container.Open(u, r.credentialFiles()).Siblings(ctx)
	if err != nil {
		return failed(err)
	}
	for _, url := range urls {
		r.printf("%s\n", url)
	}
	return nil
}

// moment reads a time in the only format that the tools know.
func moment(text string) (time.Time, error) {
	at, err := time.Parse(container.TimeFormat, text)
	if err != nil {
		return at, fatal("Backup error", "ERROR: Incorrect date/time or format.  Format is YYYY/MM/DD.HH:MI:SS[+/-]HHMM.")
	}
	return at, nil
}

const versionsPerDay = 86400 * state.VersionsPerSecond

// cutoff reads a version from one of the three ways to give it; the order of the arguments decides between them.
func (r *run) cutoff(ctx context.Context, byVersion, byDays, byTime string, otherwise int64) (int64, error) {
	value := otherwise
	for _, arg := range r.Args {
		name, _, _ := strings.Cut(strings.ReplaceAll(arg, "_", "-"), "=")
		switch name {
		case byVersion:
			value, _ = number(r.options.text(byVersion))
		case byDays:
			days, _ := number(r.options.text(byDays))
			value = -days * versionsPerDay
		case byTime:
			keeper, err := r.timeKeeper(ctx)
			if err != nil {
				return 0, err
			}
			at, err := moment(r.options.text(byTime))
			if err != nil {
				return 0, err
			}
			value = keeper.Version(at)
		}
	}
	return value, nil
}

func (r *run) expire(ctx context.Context) error {
	o := r.options
	if !o.has("--expire-before-version") && !o.has("--delete-before-days") && !o.has("--expire-before-timestamp") {
		return fatal("Backup error", "ERROR: No version or date/time is specified.", r.teaser())
	}
	before, err := r.cutoff(ctx, "--expire-before-version", "--delete-before-days", "--expire-before-timestamp", 0)
	if err != nil {
		return err
	}
	after, err := r.cutoff(ctx, "--restorable-after-version", "--min-restorable-days", "--restorable-after-timestamp", math.MaxInt64)
	if err != nil {
		return err
	}
	c, err := r.destination("-d")
	if err != nil {
		return err
	}
	last := ""
	err = c.Expire(ctx, before, after, o.has("-f"), func(step string) { last = step })
	if errors.Is(err, container.ErrUnsafe) {
		return fatal(err.Error(), "ERROR: Requested expiration would be unsafe.  Backup would not meet minimum restorability.  "+
			"Use --force to delete data anyway.")
	}
	if err != nil {
		return failed(err)
	}
	r.printf("\r%s...\n", last)
	if before < 0 {
		r.printf("All data before %d versions (%d days) prior to latest backup log has been deleted.\n",
			-before, -before/versionsPerDay)
	} else {
		r.printf("All data before version %d has been deleted.\n", before)
	}
	return nil
}

func (r *run) remove(ctx context.Context) error {
	c, err := r.destination("-d")
	if err != nil {
		return err
	}
	r.printf("Deleting %s...\n", c.URL)
	count, err := c.DeleteAll(ctx)
	if err != nil {
		return failed(err)
	}
	r.printf("\r%d objects deleted\nThe entire container has been deleted.\n", count)
	return nil
}

// query tells which files restore to a version.
func (r *run) query(ctx context.Context) error {
	c, err := r.destination("-d")
	if err != nil {
		return err
	}
	wanted, err := r.ranges()
	if err != nil {
		return err
	}
	d, err := c.Describe(ctx, false, nil)
	if err != nil {
		return failed(err)
	}
	answer := queryAnswer{KeyRangesFilter: r.options.text("-k"), Destination: c.URL, Ranges: []queryRange{}, Logs: []queryLog{}}
	switch {
	case r.options.has("-qrv"):
		answer.RestoreVersion, _ = number(r.options.text("-qrv"))
	case r.options.has("--query-restore-timestamp"):
		keeper, err := r.timeKeeper(ctx)
		if err != nil {
			return err
		}
		at, err := moment(r.options.text("--query-restore-timestamp"))
		if err != nil {
			return err
		}
		answer.RestoreVersion = keeper.Version(at)
	case d.MaxRestorable != nil:
		answer.RestoreVersion = *d.MaxRestorable
	}
	set, err := c.RestorableSet(ctx, answer.RestoreVersion, wanted)
	if err != nil {
		return failed(err)
	}
	if set == nil {
		return fatal("Backup error", fmt.Sprintf("No restorable files for version %d", answer.RestoreVersion))
	}
	answer.fill(set)
	document, err := container.Marshal(answer)
	if err != nil {
		return err
	}
	r.printf("%s\n", document)
	return nil
}

type queryRange struct {
	FileName string `json:"file_name"`
	FileSize int64  `json:"file_size"`
	Version  int64  `json:"version"`
	KeyRange string `json:"key_range"`
}

type queryLog struct {
	FileName     string `json:"file_name"`
	FileSize     int64  `json:"file_size"`
	BeginVersion int64  `json:"begin_version"`
	EndVersion   int64  `json:"end_version"`
}

type queryAnswer struct {
	KeyRangesFilter string       `json:"key_ranges_filter"`
	Destination     string       `json:"destination_container"`
	RestoreVersion  int64        `json:"restore_version"`
	TotalRange      int64        `json:"total_range_files_size"`
	TotalLog        int64        `json:"total_log_files_size"`
	Ranges          []queryRange `json:"ranges"`
	Logs            []queryLog   `json:"logs"`
}

func (a *queryAnswer) fill(set *container.Set) {
	for _, file := range set.Ranges {
		a.TotalRange += file.Bytes
		a.Ranges = append(a.Ranges, queryRange{
			file.Path, file.Bytes, file.Version,
			fmt.Sprintf("{ begin=%s  end=%s }", Printable(file.Range.Begin), Printable(file.Range.End)),
		})
	}
	for _, log := range set.Logs {
		a.TotalLog += log.Size
		a.Logs = append(a.Logs, queryLog{log.Path, log.Size, log.Begin, log.End})
	}
}

// dump lists all files.
func (r *run) dump(ctx context.Context) error {
	c, err := r.destination("-d")
	if err != nil {
		return err
	}
	d, err := c.Describe(ctx, false, nil)
	if err != nil {
		return failed(err)
	}
	ranges, err := c.RangeFiles(ctx, math.MaxInt64)
	if err != nil {
		return failed(err)
	}
	logs, err := c.Logs(ctx, 0, math.MaxInt64)
	if err != nil {
		return failed(err)
	}
	r.printf("Scanning version range 0 to %d\n", int64(math.MaxInt64))
	for _, file := range ranges {
		r.printf("range %d %s\n", file.Size, file.Path)
	}
	for _, log := range logs {
		r.printf("log %d %s\n", log.Size, log.Path)
	}
	for _, s := range d.Snapshots {
		r.printf("snapshotManifest %d %s\n", s.Bytes, s.Path)
	}
	return nil
}
