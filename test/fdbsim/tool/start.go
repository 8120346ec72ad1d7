package tool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast.dev/holdfast/test/fdbsim/container"
	"holdfast.dev/holdfast/test/fdbsim/state"
)

// Periods of snapshots, in seconds.
const defaultInterval = 864000

const stampFormat = "2006-01-02-15-04-05.000000"

func (r *run) tag() string {
	if r.options.has("-t") {
		return r.options.text("-t")
	}
	return "default"
}

// credentialFiles are those of the command line, then those of the environment.
func (r *run) credentialFiles() []string {
	return append(r.options["--blob-credentials"][:len(r.options["--blob-credentials"]):len(r.options["--blob-credentials"])],
		container.SplitFiles(r.env("FDB_BLOB_CREDENTIALS"))...)
}

// open opens the container of a URL. Errors of the URL are said as the tools say them; what then ends the command differs.
func (r *run) open(text string) (*container.Container, error) {
	u, err := container.Parse(text, r.Dir, false)
	if err != nil {
		return nil, err
	}
	return &container.Container{Store: container.Open(u, r.credentialFiles()), URL: text, StaleDescribe: r.stale()}, nil
}

// destination opens the container of -d, or of -r for a restore.
func (r *run) destination(option string) (*container.Container, error) {
	if !r.options.has(option) {
		return nil, fatal("Backup error", "ERROR: No backup destination was specified.", r.teaser(), "ERROR: Backup error")
	}
	c, err := r.open(r.options.text(option))
	var invalid *container.URLError
	if errors.As(err, &invalid) {
		const text = "Backup Container URL invalid"
		return nil, fatal(text, "ERROR: "+invalid.Error(), r.teaser(), "ERROR: "+text)
	}
	return c, err
}

// interval reads an option of seconds.
func (r *run) interval(name string, otherwise int64) (int64, error) {
	if !r.options.has(name) {
		return otherwise, nil
	}
	value, valid := number(r.options.text(name))
	if !valid {
		return 0, exit(1, fmt.Sprintf("ERROR: Could not parse snapshot interval `%s'", r.options.text(name)), r.teaser())
	}
	return value, nil
}

func (r *run) start(ctx context.Context) error {
	ranges, err := r.ranges()
	if err != nil {
		return err
	}
	interval, err := r.interval("-s", defaultInterval)
	if err != nil {
		return err
	}
	initial, err := r.interval("--initial-snapshot-interval", 0)
	if err != nil {
		return err
	}
	name, err := r.openCluster(r.clusterFile())
	if err != nil {
		return err
	}
	text := r.options.text("-d")
	if !r.options.has("-d") {
		return exit(10, "ERROR: No backup destination was specified.", r.teaser())
	}
	if strings.HasPrefix(text, "file:///") {
		text = strings.TrimRight(text, "/") + "/backup-" + r.now().Format(stampFormat)
	}
	target, err := r.open(text)
	var invalid *container.URLError
	if errors.As(err, &invalid) {
		invalid.URL = r.options.text("-d")
		return exit(10, "ERROR: "+invalid.Error(), r.teaser())
	}
	if err != nil {
		return err
	}
	if err := r.reach(ctx, name); err != nil {
		return err
	}
	r.cluster = name
	b := &state.Backup{
		Tag: r.tag(), UID: container.NewUID(), State: state.Submitted, URL: text, Ranges: ranges, Default: len(ranges) == 0,
		IntervalSeconds: interval, InitialSeconds: initial, StopWhenDone: !r.options.has("-z"),
	}
	if b.Default {
		b.Ranges = defaultRanges()
	}
	return r.submit(ctx, b, target)
}

// create makes a container, within the time that the tools give it. If it cannot, it says why, and then more lines.
func (r *run) create(ctx context.Context, target *container.Container, why string, more ...string) error {
	control, err := r.Store.Control(r.cluster)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, control.StoreWait)
	defer cancel()
	err = target.Create(limited)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if limited.Err() != nil {
		err = container.ErrTimeout
	}
	return fatal("Backup error", append([]string{fmt.Sprintf("ERROR: %s: %v", why, err)}, more...)...)
}

func (r *run) submit(ctx context.Context, b *state.Backup, target *container.Container) error {
	dry := r.options.has("-n")
	running := fatal("Backup error", fmt.Sprintf("ERROR: A backup is already running on tag `%s'", b.Tag))
	c, err := r.Store.Read(r.cluster)
	if err != nil {
		return err
	}
	if old := c.Backup(b.Tag); old != nil && old.Runnable() {
		return running
	}
	if !dry {
		err := r.create(ctx, target, "Could not create backup container", "ERROR: An error was encountered during submission")
		if err != nil {
			return err
		}
		err = r.Store.Update(r.cluster, func(tx *state.Tx) error {
			if old := tx.Backup(b.Tag); old != nil && old.Runnable() {
				return running
			}
			now := r.now().UTC().Format(stampFormat)
			if tx.LastStart >= now {
				return fatal("Backup error", fmt.Sprintf("ERROR: The last backup `%s' happened in the future.", tx.LastStart),
					"ERROR: An error was encountered during submission")
			}
			tx.LastStart = now
			tx.SetBackup(b)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if r.options.has("-w") && !dry {
		r.printf("Submitted and now waiting for the backup on tag `%s' to complete.\n", b.Tag)
		_, err := r.await(ctx, b.Tag, false)
		return err
	}
	answered, err := r.agentsAnswer(ctx)
	if err != nil {
		return err
	}
	suffix := "."
	if !answered {
		suffix = " but no backup agents are responding."
	}
	if dry {
		suffix = ". (DRY RUN)"
	}
	r.printf("The backup on tag `%s' was successfully submitted%s\n", b.Tag, suffix)
	return nil
}

// agentsAnswer waits a while for an agent that works.
func (r *run) agentsAnswer(ctx context.Context) (bool, error) {
	control, err := r.Store.Control(r.cluster)
	if err != nil {
		return false, err
	}
	for limit := time.Now().Add(control.AgentWait); ; {
		c, err := r.Store.Read(r.cluster)
		if err != nil {
			return false, err
		}
		agents, err := r.Store.Agents(r.cluster)
		if err != nil {
			return false, err
		}
		for _, a := range agents {
			if a.Answers() && !c.Paused {
				return true, nil
			}
		}
		if time.Now().After(limit) {
			return false, nil
		}
		if err := sleep(ctx, pollPeriod); err != nil {
			return false, err
		}
	}
}

// await waits until a tag's backup does not run any more, or, if differential is enough, until it is restorable. It returns
// the last state, nil when there never was a backup.
func (r *run) await(ctx context.Context, tag string, differential bool) (*state.Backup, error) {
	for {
		if err := r.reach(ctx, r.cluster); err != nil {
			return nil, err
		}
		c, err := r.Store.Read(r.cluster)
		if err != nil {
			return nil, err
		}
		b := c.Backup(tag)
		if b == nil || !b.Runnable() || (differential && b.State == state.RunningDifferentially) {
			return b, nil
		}
		if err := sleep(ctx, pollPeriod); err != nil {
			return nil, err
		}
	}
}
