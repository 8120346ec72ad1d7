package tool

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"time"

	"holdfast.dev/holdfast/test/fdbsim/container"
	"holdfast.dev/holdfast/test/fdbsim/state"
)

// Rhythm of an agent.
const (
	workPeriod = 100 * time.Millisecond
	idlePeriod = 400 * time.Millisecond // tests have dozens of agents at a time that have nothing to do
	beatPeriod = time.Second
	// storeLimit is how long an agent waits for a store before it tells of it and goes on with something else.
	storeLimit = 5 * time.Second
	// workers is how many tasks at once a real agent works on; status json tells it.
	workers = 10
)

var agentSyntax = with(`-C=,--cluster-file --locality=`, blobWords)

// agent works for a cluster until it is told to end. Agents of one cluster take turns, so that nothing is done twice.
func (r *run) agent(ctx context.Context) error {
	locality, args := map[string]string{}, []string{}
	for _, arg := range r.Args {
		name, value, joined := strings.Cut(strings.ReplaceAll(arg, "_", "-"), "=")
		if place, found := strings.CutPrefix(name, "--locality-"); found && joined {
			locality[place] = value
			continue
		}
		args = append(args, arg)
	}
	if err := r.parse(args, agentSyntax); err != nil {
		return err
	}
	switch {
	case r.options.has("-h"):
		return r.help(Agent)
	case r.options.has("-v"):
		return r.printVersion()
	}
	r.findCluster()
	if err := r.begin(ctx); err != nil {
		return err
	}
	if err := r.connect(ctx); err != nil {
		return r.ended(ctx, err)
	}
	w := &worker{run: r, me: state.Agent{ID: container.NewUID(), PID: r.PID, Version: r.Version, Locality: locality}}
	return r.ended(ctx, w.work(ctx))
}

// ended: being told to end is how an agent's life ends well.
func (r *run) ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return exit(0)
}

// worker is an agent at work.
type worker struct {
	*run
	me     state.Agent
	layers time.Time // when it last wrote for status json, by the state's clock
}

func (w *worker) work(ctx context.Context) error {
	defer func() {
		w.me.PID = 0 // it answers no more
		_ = w.Store.SaveAgent(w.cluster, w.me)
	}()
	for {
		control, err := w.Store.Control(w.cluster)
		if err != nil {
			return err
		}
		period := idlePeriod
		if !control.Unreachable {
			if err := w.beat(control); err != nil && !errors.Is(err, state.ErrUnknown) {
				return err
			}
			worked, err := w.turn(ctx, control)
			if err != nil && !errors.Is(err, state.ErrUnknown) {
				return err
			}
			if worked {
				period = workPeriod
			}
		}
		if err := sleep(ctx, period); err != nil {
			return err
		}
	}
}

// beat writes down that the agent lives, and now and then what it has for status json.
func (w *worker) beat(control state.Control) error {
	now := w.now()
	due := now.Sub(w.layers) >= control.LayerPeriod
	if time.Since(w.me.Beat) < beatPeriod && !due {
		return nil
	}
	w.me.Beat = time.Now()
	if due {
		c, err := w.Store.Read(w.cluster)
		if err != nil {
			return err
		}
		w.layers = now
		// A backup with an empty tag has no place in the document: the agent can write no status any more.
		if c.Backup("") == nil {
			if w.me.Tags, err = json.Marshal(layerTags(c, now)); err != nil {
				return err
			}
			w.me.Updated, w.me.Paused = now, c.Paused
		}
	}
	return w.Store.SaveAgent(w.cluster, w.me)
}

// layerTags is the part of status json on backups. A dot in a tag makes a level.
func layerTags(c *state.Cluster, now time.Time) map[string]any {
	tags := map[string]any{}
	for _, b := range c.Backups {
		levels := strings.Split(b.Tag, ".")
		at := tags
		for _, level := range levels[:len(levels)-1] {
			deeper, isMap := at[level].(map[string]any)
			if !isMap {
				deeper = map[string]any{}
				at[level] = deeper
			}
			at = deeper
		}
		latest, restorable := b.Restorable()
		running := b.State == state.Running || b.State == state.RunningDifferentially
		entry := map[string]any{
			"current_container":            b.URL,
			"current_status":               descriptions[b.State],
			"mutation_log_bytes_written":   b.LogBytes,
			"mutation_stream_id":           b.UID,
			"range_bytes_written":          b.RangeBytes,
			"running_backup":               running,
			"running_backup_is_restorable": running && restorable,
		}
		if restorable {
			entry["last_restorable_version"] = latest
			entry["last_restorable_seconds_behind"] = now.Sub(c.Time(latest)).Seconds()
		}
		last := levels[len(levels)-1]
		if deeper, isMap := at[last].(map[string]any); isMap {
			maps.Copy(deeper, entry)
		} else {
			at[last] = entry
		}
	}
	return tags
}

// turn does what is to be done, unless another agent is at it, and reports whether there was something.
func (w *worker) turn(ctx context.Context, control state.Control) (worked bool, err error) {
	c, err := w.Store.Read(w.cluster)
	if err != nil || c.Paused {
		return false, err
	}
	unlock, got, err := state.Lock(w.Store.Folder(w.cluster)+"/work.lock", false)
	if err != nil || !got {
		return false, err
	}
	defer unlock()
	for _, b := range c.Backups {
		if !b.Runnable() {
			continue
		}
		job := &backupJob{worker: w, control: control, tag: b.Tag, uid: b.UID}
		if job.nothingDue(c, b) {
			continue
		}
		if err := job.step(ctx); err != nil {
			return worked, err
		}
		worked = true
	}
	for _, restore := range c.Restores {
		if !restore.Runnable() {
			continue
		}
		job := &restoreJob{worker: w, control: control, tag: restore.Tag, uid: restore.UID}
		if err := job.step(ctx); err != nil {
			return worked, err
		}
		worked = true
	}
	return worked, nil
}
