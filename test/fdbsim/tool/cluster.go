package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"holdfast.dev/holdfast/test/fdbsim/state"
)

// clusterFile is the cluster file that the command is to use.
func (r *run) clusterFile() (path string, given bool) {
	if r.options.has("-C") {
		return r.options.text("-C"), true
	}
	if path = r.env("FDB_CLUSTER_FILE"); path != "" {
		return path, true
	}
	return "", false
}

// findCluster reads the cluster file, to know whose journal and control the command belongs to. Errors are left to those
// commands that need the cluster.
func (r *run) findCluster() {
	path, given := r.clusterFile()
	if file := r.options.text("--dest-cluster-file"); file != "" {
		path, given = file, true
	}
	if !given {
		return
	}
	if content, err := os.ReadFile(path); err == nil {
		if name, valid := state.ParseConnection(string(content)); valid {
			if _, err := r.Store.Read(name); err == nil {
				r.cluster = name
			}
		}
	}
}

// openCluster reads a cluster file and returns the cluster's name, with the errors of the tools.
func (r *run) openCluster(path string, given bool) (string, error) {
	const none = "1515 No cluster file found in current directory or default location"
	if !given {
		return "", exit(1,
			"Unable to read cluster file `./fdb.cluster' or `/etc/foundationdb/fdb.cluster' and FDB_CLUSTER_FILE unset: "+none)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", exit(1, fmt.Sprintf("Unable to read cluster file `%s': %s", path, none))
	}
	name, valid := state.ParseConnection(string(content))
	if !valid {
		return "", exit(1, fmt.Sprintf("Invalid cluster file `%s': 2104 Connection string invalid", path))
	}
	return name, nil
}

// reach waits until a cluster answers: for ever, if there is none at the address.
func (r *run) reach(ctx context.Context, name string) error {
	for {
		_, err := r.Store.Read(name)
		if err != nil && !errors.Is(err, state.ErrUnknown) {
			return err
		}
		control, controlErr := r.Store.Control(name)
		if controlErr != nil {
			return controlErr
		}
		if err == nil && !control.Unreachable {
			return nil
		}
		if err := sleep(ctx, pollPeriod); err != nil {
			return err
		}
	}
}

// pollPeriod is how often a waiting command looks.
const pollPeriod = 50 * time.Millisecond

// connect opens the command's cluster and waits until it answers.
func (r *run) connect(ctx context.Context) error {
	name, err := r.openCluster(r.clusterFile())
	if err != nil {
		return err
	}
	if err := r.reach(ctx, name); err != nil {
		return err
	}
	r.cluster = name
	return nil
}
