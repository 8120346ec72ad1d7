package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Control is what a test makes of a cluster: its speeds and its faults. The zero value is a quick cluster without faults.
type Control struct {
	// Unreachable: no command gets an answer, the agents stand still.
	Unreachable bool `json:"unreachable,omitempty"`
	// StopSnapshots and StopLogs stop what the agents write.
	StopSnapshots bool `json:"stopSnapshots,omitempty"`
	StopLogs      bool `json:"stopLogs,omitempty"`
	// HoldSubmitted leaves what is submitted where it is: agents are there and do not begin.
	HoldSubmitted bool `json:"holdSubmitted,omitempty"`

	FirstSnapshot time.Duration `json:"firstSnapshot,omitempty"` // how long it takes (1s)
	LogFile       time.Duration `json:"logFile,omitempty"`       // what one log file holds (1s; the real one: 20s)
	Restore       time.Duration `json:"restore,omitempty"`       // how long it takes (500ms)
	AgentWait     time.Duration `json:"agentWait,omitempty"`     // how long start waits for an agent (1s; the real one: 5s)
	StoreWait     time.Duration `json:"storeWait,omitempty"`     // how long start waits for an unreachable store (30s)
	LayerPeriod   time.Duration `json:"layerPeriod,omitempty"`   // how often agents write status json's layers (1s; the real ones: 40s)
	LayerExpiry   time.Duration `json:"layerExpiry,omitempty"`   // how long that is kept (3 periods)

	// Faults of commands, by "<tool> <subcommand>" ("fdbbackup start", "fdbrestore status", "fdbcli status json"), by
	// tool, or by "*". The first that matches, in this order, is used.
	Faults map[string]Fault `json:"faults,omitempty"`
}

// Fault is what happens to a command instead of, before or after its work.
type Fault struct {
	Delay    time.Duration `json:"delay,omitempty"`    // before anything else
	Hang     bool          `json:"hang,omitempty"`     // for ever, or for HangFor
	HangFor  time.Duration `json:"hangFor,omitempty"`  // then the command goes on
	After    bool          `json:"after,omitempty"`    // hang or fail after the work was done, with its output kept back
	Fail     bool          `json:"fail,omitempty"`     // print and exit as follows
	Stdout   string        `json:"stdout,omitempty"`   // of the failure
	Stderr   string        `json:"stderr,omitempty"`   // of the failure
	ExitCode int           `json:"exitCode,omitempty"` // of the failure
	Tag      string        `json:"tag,omitempty"`      // only for commands with this tag
	Times    int           `json:"times,omitempty"`    // for so many commands only; 0: for all
}

// Resolved is the control with its defaults.
func (c Control) Resolved() Control {
	for _, d := range []struct {
		value  *time.Duration
		usable time.Duration
	}{
		{&c.FirstSnapshot, time.Second},
		{&c.LogFile, time.Second},
		{&c.Restore, 500 * time.Millisecond},
		{&c.AgentWait, time.Second},
		{&c.StoreWait, 30 * time.Second},
		{&c.LayerPeriod, time.Second},
	} {
		if *d.value <= 0 {
			*d.value = d.usable
		}
	}
	if c.LayerExpiry <= 0 {
		c.LayerExpiry = 3 * c.LayerPeriod
	}
	return c
}

// Control reads a cluster's control.
func (s Store) Control(cluster string) (Control, error) {
	var c Control
	err := readJSON(filepath.Join(s.Folder(cluster), "control.json"), &c)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	return c.Resolved(), nil
}

// SetControl changes a cluster's control.
func (s Store) SetControl(cluster string, change func(*Control)) error {
	folder, err := s.makeFolder(cluster)
	if err != nil {
		return err
	}
	unlock, _, err := Lock(filepath.Join(folder, "control.lock"), true)
	if err != nil {
		return err
	}
	defer unlock()
	path := filepath.Join(folder, "control.json")
	var c Control
	if err := readJSON(path, &c); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	change(&c)
	return writeJSON(path, c)
}

// TakeFault returns the fault that a command meets, and counts it.
func (s Store) TakeFault(cluster, tool, sub, tag string) (*Fault, error) {
	now, err := s.Control(cluster)
	if err != nil || len(now.Faults) == 0 {
		return nil, err
	}
	var taken *Fault
	err = s.SetControl(cluster, func(c *Control) {
		for _, name := range []string{strings.TrimSpace(tool + " " + sub), tool, "*"} {
			fault, found := c.Faults[name]
			if !found || (fault.Tag != "" && fault.Tag != tag) {
				continue
			}
			taken = &fault
			if fault.Times == 1 {
				delete(c.Faults, name)
			} else if fault.Times > 1 {
				less := fault
				less.Times--
				c.Faults[name] = less
			}
			return
		}
	})
	return taken, err
}

// Clock is what the tools and agents take for the time.
type Clock struct {
	Frozen time.Time     `json:"frozen,omitzero"`
	Offset time.Duration `json:"offset,omitempty"`
}

// Now returns the time of this state.
func (s Store) Now() time.Time {
	var c Clock
	if err := readJSON(filepath.Join(s.Dir, "clock.json"), &c); err != nil {
		return time.Now().UTC()
	}
	if !c.Frozen.IsZero() {
		return c.Frozen.UTC()
	}
	return time.Now().Add(c.Offset).UTC()
}

// SetClock changes the time of this state.
func (s Store) SetClock(c Clock) error {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return err
	}
	return writeJSON(filepath.Join(s.Dir, "clock.json"), c)
}
