package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// ErrUnknown says that no such cluster was made: nobody answers at its address.
var ErrUnknown = errors.New("no such cluster")

// Store is the folder that holds the state of all clusters.
type Store struct{ Dir string }

var connectionString = regexp.MustCompile(`^([A-Za-z0-9_]+):([A-Za-z0-9]+)@([^,\s]+)(,[^,\s]+)*$`)

// ParseConnection returns the `description:id` of a connection string.
func ParseConnection(text string) (name string, valid bool) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		found := connectionString.FindStringSubmatch(line)
		if found == nil {
			return "", false
		}
		return found[1] + ":" + found[2], true
	}
	return "", false
}

// NoCluster is the folder of what concerns no cluster: the calls of commands that were told none.
const NoCluster = "none"

// Folder returns the folder of a cluster, named by its `description:id`; "" is NoCluster.
func (s Store) Folder(cluster string) string {
	if cluster == "" {
		cluster = NoCluster
	}
	return filepath.Join(s.Dir, "clusters", strings.ReplaceAll(cluster, ":", "."))
}

// makeFolder makes the folder of a cluster, in a state that is still there.
func (s Store) makeFolder(cluster string) (string, error) {
	if _, err := os.Stat(s.Dir); err != nil {
		return "", fmt.Errorf("the state is gone: %w", err)
	}
	folder := s.Folder(cluster)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("make the folder of a cluster: %w", err)
	}
	return folder, nil
}

// Clusters lists the names of all clusters.
func (s Store) Clusters() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.Dir, "clusters"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if description, id, found := strings.Cut(entry.Name(), "."); found {
			names = append(names, description+":"+id)
		}
	}
	return names, nil
}

// Create makes a cluster, or replaces its state.
func (s Store) Create(name string, c *Cluster) error {
	folder := s.Folder(name)
	if err := os.MkdirAll(filepath.Join(folder, "agents"), 0o755); err != nil {
		return fmt.Errorf("make the folder of cluster %s: %w", name, err)
	}
	return locked(folder, func() error { return writeJSON(filepath.Join(folder, "state.json"), c) })
}

// Tx is a look at a cluster's state, or a change of it, that no other can interfere with.
type Tx struct {
	*Cluster
	folder string
	data   *Data
}

// Data returns the cluster's keys.
func (t *Tx) Data() (*Data, error) {
	if t.data == nil {
		t.data = &Data{}
		if err := readJSON(filepath.Join(t.folder, "data.json"), t.data); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return t.data, nil
}

// Read reads a cluster's state. It is never half written, so that no lock is needed.
func (s Store) Read(name string) (*Cluster, error) {
	c := &Cluster{}
	err := readJSON(filepath.Join(s.Folder(name), "state.json"), c)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	return c, err
}

// Update changes a cluster's state. An error of change leaves it as it was.
func (s Store) Update(name string, change func(*Tx) error) error {
	folder := s.Folder(name)
	return locked(folder, func() error {
		c, err := s.Read(name)
		if err != nil {
			return err
		}
		tx := &Tx{Cluster: c, folder: folder}
		if err := change(tx); err != nil {
			return err
		}
		if tx.data != nil {
			if err := writeJSON(filepath.Join(folder, "data.json"), tx.data); err != nil {
				return err
			}
		}
		return writeJSON(filepath.Join(folder, "state.json"), tx.Cluster)
	})
}

func locked(folder string, do func() error) error {
	unlock, _, err := Lock(filepath.Join(folder, "lock"), true)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", ErrUnknown, filepath.Base(folder))
	}
	if err != nil {
		return err
	}
	defer unlock()
	return do()
}

// Lock takes a lock that ends with the process. Unless it waits, got says whether the lock was free.
func Lock(path string, wait bool) (unlock func(), got bool, err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, false, fmt.Errorf("open lock: %w", err)
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		err = syscall.Flock(int(file.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, false, nil
		}
		return nil, false, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { file.Close() }, true, nil
}

func readJSON(path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("read state %s: %w", path, err)
	}
	return nil
}

// writeJSON replaces a file in one step; what has not changed is not written.
func writeJSON(path string, value any) error {
	content, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return nil
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
		return fmt.Errorf("write state: %w", err)
	}
	return nil
}
