package fdbsim

import (
	"bytes"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/test/fdbsim/state"
)

// Sim is what a test has in its hand: the state behind the tools. Clusters are named by `description:id`, as in the first part
// of their connection string; a connection string does too.
type Sim struct {
	Store  state.Store
	BinDir string
}

// Types of package state that tests need.
type (
	// Control is a cluster's speeds and faults.
	Control = state.Control
	// Fault is what happens to a command.
	Fault = state.Fault
	// Call is one run of a tool.
	Call = state.Call
	// Interval is when a first snapshot ran.
	Interval = state.Interval
	// Problem is a recent error of a backup.
	Problem = state.Problem
)

// name is the name of a cluster that may be given by its connection string.
func name(cluster string) string {
	name, _, _ := strings.Cut(cluster, "@")
	return name
}

// NewCluster makes an empty cluster and returns its connection string, which is what a cluster file holds.
func (s *Sim) NewCluster(description, id string) (string, error) {
	connection := fmt.Sprintf("%s:%s@%s", description, id, net.JoinHostPort("127.0.0.1", "4500"))
	cluster, valid := state.ParseConnection(connection)
	if !valid {
		return "", fmt.Errorf("a cluster named %s:%s: a description holds letters, digits and _, an id letters and digits",
			description, id)
	}
	return connection, s.Store.Create(cluster, &state.Cluster{Connection: connection, Created: s.Store.Now().Add(-time.Minute)})
}

// Tool is the path of a tool of a version (major.minor).
func (s *Sim) Tool(version, tool string) string { return filepath.Join(s.BinDir, version, tool) }

// Set sets keys, in one transaction each.
func (s *Sim) Set(cluster string, keys map[string]string) error {
	return s.Store.Update(name(cluster), func(tx *state.Tx) error {
		data, err := tx.Data()
		if err != nil {
			return err
		}
		for key, value := range keys {
			data.Change(tx.Version(s.Store.Now()), state.Mutation{Key: []byte(key), Value: []byte(value)})
		}
		return nil
	})
}

// Clear clears the keys from begin up to, not including, end.
func (s *Sim) Clear(cluster, begin, end string) error {
	return s.Store.Update(name(cluster), func(tx *state.Tx) error {
		data, err := tx.Data()
		if err != nil {
			return err
		}
		data.Change(tx.Version(s.Store.Now()), state.Mutation{Key: []byte(begin), End: []byte(end)})
		return nil
	})
}

// SetKeys makes these the only keys of a cluster.
func (s *Sim) SetKeys(cluster string, keys map[string]string) error {
	if err := s.Clear(cluster, "", "\xff"); err != nil {
		return err
	}
	return s.Set(cluster, keys)
}

// Keys returns all keys of a cluster.
func (s *Sim) Keys(cluster string) (map[string]string, error) {
	keys := map[string]string{}
	err := s.Store.Update(name(cluster), func(tx *state.Tx) error {
		data, err := tx.Data()
		if err != nil {
			return err
		}
		for _, kv := range data.Keys {
			keys[string(kv.Key)] = string(kv.Value)
		}
		return nil
	})
	return keys, err
}

// Version is the version that the cluster has reached: a change made before is below it, one made later is not.
func (s *Sim) Version(cluster string) (int64, error) {
	var version int64
	err := s.Store.Update(name(cluster), func(tx *state.Tx) error {
		data, err := tx.Data()
		if err != nil {
			return err
		}
		data.Last = max(data.Last, tx.Version(s.Store.Now()))
		version = data.Last
		return nil
	})
	return version, err
}

// Time is when the cluster reached a version.
func (s *Sim) Time(cluster string, version int64) (time.Time, error) {
	c, err := s.Store.Read(name(cluster))
	if err != nil {
		return time.Time{}, err
	}
	return c.Time(version), nil
}

// Control changes a cluster's speeds and faults; those of commands that are told no cluster (describe, delete, ...) for "".
func (s *Sim) Control(cluster string, change func(*Control)) error {
	return s.Store.SetControl(name(cluster), change)
}

// SetFault makes a command fail: see Control.Faults for its name.
func (s *Sim) SetFault(cluster, command string, fault Fault) error {
	return s.Control(cluster, func(c *Control) {
		if c.Faults == nil {
			c.Faults = map[string]Fault{}
		}
		c.Faults[command] = fault
	})
}

// ClearFaults ends all faults of commands.
func (s *Sim) ClearFaults(cluster string) error {
	return s.Control(cluster, func(c *Control) { c.Faults = nil })
}

// Unreachable cuts a cluster off, or connects it again.
func (s *Sim) Unreachable(cluster string, unreachable bool) error {
	return s.Control(cluster, func(c *Control) { c.Unreachable = unreachable })
}

// Calls returns the runs of tools for a cluster, oldest first; those that were told no cluster for "".
func (s *Sim) Calls(cluster string) ([]Call, error) { return s.Store.Calls(name(cluster)) }

// CallsOf returns the runs whose arguments begin with these, such as "fdbbackup", "start".
func (s *Sim) CallsOf(cluster, tool string, args ...string) ([]Call, error) {
	calls, err := s.Calls(cluster)
	return slices.DeleteFunc(calls, func(c Call) bool {
		return c.Tool != tool || len(c.Args) < len(args) || !slices.Equal(c.Args[:len(args)], args)
	}), err
}

// FirstSnapshots returns when the first snapshots of a cluster ran, in the order of their beginning.
func (s *Sim) FirstSnapshots(cluster string) ([]Interval, error) {
	c, err := s.Store.Read(name(cluster))
	if err != nil {
		return nil, err
	}
	return c.FirstSnapshots, nil
}

// MostFirstSnapshots is how many first snapshots, of all clusters, ever ran at the same time.
func (s *Sim) MostFirstSnapshots() (int, error) {
	clusters, err := s.Store.Clusters()
	if err != nil {
		return 0, err
	}
	var all []Interval
	for _, cluster := range clusters {
		some, err := s.FirstSnapshots(cluster)
		if err != nil {
			return 0, err
		}
		all = append(all, some...)
	}
	most := 0
	for _, one := range all {
		count := 0
		for _, other := range all {
			if !other.Begin.After(one.Begin) && (other.End.IsZero() || other.End.After(one.Begin)) {
				count++
			}
		}
		most = max(most, count)
	}
	return most, nil
}

// SetErrors makes the recent errors of a tag's backup; agents add their own.
func (s *Sim) SetErrors(cluster, tag string, errors ...Problem) error {
	return s.Store.Update(name(cluster), func(tx *state.Tx) error {
		b := tx.Backup(tag)
		if b == nil {
			return fmt.Errorf("no backup on tag %q", tag)
		}
		b.Errors = errors
		return nil
	})
}

// Lock locks a database, or with "" unlocks it.
func (s *Sim) Lock(cluster, uid string) error {
	return s.Store.Update(name(cluster), func(tx *state.Tx) error {
		tx.LockUID = uid
		return nil
	})
}

// State reads a cluster's state.
func (s *Sim) State(cluster string) (*state.Cluster, error) { return s.Store.Read(name(cluster)) }

// Change changes a cluster's state.
func (s *Sim) Change(cluster string, change func(*state.Cluster) error) error {
	return s.Store.Update(name(cluster), func(tx *state.Tx) error { return change(tx.Cluster) })
}

// Agents returns the agents of a cluster that live.
func (s *Sim) Agents(cluster string) ([]state.Agent, error) {
	agents, err := s.Store.Agents(name(cluster))
	return slices.DeleteFunc(agents, func(a state.Agent) bool { return !a.Answers() }), err
}

// Advance lets time pass for all clusters at once: versions go on, so that data become old.
func (s *Sim) Advance(d time.Duration) error {
	return s.Store.SetClock(state.Clock{Offset: time.Until(s.Store.Now()) + d})
}

// Freeze stops the time of all clusters at a moment; the zero time lets it go on.
func (s *Sim) Freeze(at time.Time) error { return s.Store.SetClock(state.Clock{Frozen: at}) }

// SameKeys says whether two clusters hold the same keys.
func (s *Sim) SameKeys(a, b string) (bool, error) {
	one, err := s.Keys(a)
	if err != nil {
		return false, err
	}
	other, err := s.Keys(b)
	if err != nil || len(one) != len(other) {
		return false, err
	}
	for key, value := range one {
		if found, there := other[key]; !there || !bytes.Equal([]byte(found), []byte(value)) {
			return false, nil
		}
	}
	return true, nil
}
