package tool

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"holdfast.dev/holdfast/test/fdbsim/state"
)

// connectTarget opens the cluster to restore into. No default file is used.
func (r *run) connectTarget(ctx context.Context) error {
	path := r.options.text("--dest-cluster-file")
	if path == "" {
		return exit(1, "Restore destination cluster file must be specified explicitly.")
	}
	if _, err := os.Stat(path); err != nil {
		return exit(1, fmt.Sprintf("Restore destination cluster file '%s' does not exist.", path))
	}
	name, err := r.openCluster(path, true)
	if err != nil {
		return err
	}
	if err := r.reach(ctx, name); err != nil {
		return err
	}
	r.cluster = name
	return nil
}

const zeroUID = "00000000000000000000000000000000"

// statusLine is what wait and start -w print.
func statusLine(s *state.Restore, now time.Time) string {
	problem := "None"
	if s.Error != nil {
		problem = fmt.Sprintf("''%s' on '%s'' %ds ago.\n", s.Error.Message, s.Error.Task, int64(now.Sub(s.Error.At).Seconds()))
	}
	return fmt.Sprintf("Tag: %s  UID: %s  State: %s  Blocks: %d/%d  BlocksInProgress: %d  Files: %d  BytesWritten: %d  "+
		"CurrentVersion: %d FirstConsistentVersion: %d  ApplyVersionLag: %d  LastError: %s",
		s.Tag, s.UID, s.State, s.BlocksDone, s.Blocks, s.InProgress, s.Files, s.BytesWritten, s.CurrentVersion, s.FirstConsistent,
		s.ApplyVersionLag, problem)
}

// fullStatus is what status prints.
func fullStatus(s *state.Restore, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  URL: %s", statusLine(s, now), s.URL)
	for _, wanted := range s.Ranges {
		fmt.Fprintf(&b, "  Range: '%s'-'%s'", Printable(wanted.Begin), Printable(wanted.End))
	}
	fmt.Fprintf(&b, "  AddPrefix: '%s'  RemovePrefix: '%s'  Version: %d\n",
		Printable(s.AddPrefix), Printable(s.RemovePrefix), s.Version)
	return b.String()
}

func (r *run) restoreStatus(ctx context.Context) error {
	if err := r.connectTarget(ctx); err != nil {
		return err
	}
	c, err := r.Store.Read(r.cluster)
	if err != nil {
		return err
	}
	text := ""
	if r.options.has("-t") {
		s := c.Restore(r.tag())
		if s == nil {
			s = &state.Restore{UID: zeroUID, State: "unitialized", CurrentVersion: -1, Ranges: make([]state.Range, 1)}
		}
		text = fullStatus(s, r.now()) + "\n"
	} else {
		for _, s := range c.Restores {
			text += fullStatus(s, r.now()) + "\n"
		}
	}
	r.printf("%s\n", strings.TrimSuffix(text, "\n")+blank(text))
	return nil
}

func blank(text string) string {
	if text == "" {
		return ""
	}
	return "\n"
}

func (r *run) restoreAbort(ctx context.Context) error {
	if err := r.connectTarget(ctx); err != nil {
		return err
	}
	last := "unitialized"
	err := r.Store.Update(r.cluster, func(tx *state.Tx) error {
		s := tx.Restore(r.tag())
		if s == nil {
			return nil
		}
		if s.Runnable() {
			s.State, s.CurrentVersion, s.ApplyVersionLag, s.InProgress, s.Error = state.RestoreAborted, -1, 0, 0, nil
			if tx.LockUID == s.UID {
				tx.LockUID = ""
			}
		}
		last = s.State
		return nil
	})
	if err != nil {
		return err
	}
	r.printf("RESTORE_ABORT Tag: %s  State: %s\n", r.tag(), last)
	return nil
}

func (r *run) restoreWait(ctx context.Context) error {
	if err := r.connectTarget(ctx); err != nil {
		return err
	}
	c, err := r.Store.Read(r.cluster)
	if err != nil {
		return err
	}
	if c.Restore(r.tag()) == nil {
		r.printf("waitRestore: Tag: %s  State: unitialized\n", r.tag())
		return nil
	}
	_, err = r.follow(ctx, r.tag())
	return err
}

// follow prints a restore's state once a second, and whenever it changes, until the restore has ended.
func (r *run) follow(ctx context.Context, tag string) (*state.Restore, error) {
	var printed time.Time
	last := ""
	for {
		c, err := r.Store.Read(r.cluster)
		if err != nil {
			return nil, err
		}
		s := c.Restore(tag)
		if s == nil {
			return nil, exit(1)
		}
		if s.State != last || time.Since(printed) >= time.Second {
			r.printf("%s\n", statusLine(s, r.now()))
			last, printed = s.State, time.Now()
		}
		if !s.Runnable() {
			return s, nil
		}
		if err := sleep(ctx, pollPeriod/2); err != nil {
			return nil, err
		}
	}
}
