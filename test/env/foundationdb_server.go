package env

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// FDBServer is a FoundationDB cluster: one process on loopback that keeps its data in memory.
type FDBServer struct {
	*Process
	// ConnectionString is what ClusterFile holds.
	ConnectionString string
	ClusterFile      string
}

const fdbServer = "fdbserver"

// RunFDBServer starts a cluster without a stack. The caller must call stop.
func RunFDBServer(ctx context.Context, programs *FDBPrograms) (server *FDBServer, stop func(), err error) {
	e, err := prepare(Options{})
	if err != nil {
		return nil, nil, err
	}
	if server, err = e.StartFDBServer(ctx, programs, fdbServer); err != nil {
		e.Stop()
		return nil, nil, err
	}
	return server, e.Stop, nil
}

// StartFDBServer starts a cluster under a name of its own and returns when it has a database. The name is the description in its
// connection string. Its only port is the coordinator's, which the cage opens to tools by the cluster file.
func (e *Env) StartFDBServer(ctx context.Context, programs *FDBPrograms, name string) (*FDBServer, error) {
	port, err := freePorts.next()
	if err != nil {
		return nil, err
	}
	dir := e.path("data", "fdb", name)
	data, logs, file := filepath.Join(dir, "data"), filepath.Join(dir, "logs"), filepath.Join(dir, "fdb.cluster")
	for _, folder := range []string{data, logs} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, fmt.Errorf("make a folder for FoundationDB: %w", err)
		}
	}
	description := strings.NewReplacer("-", "_").Replace(name)
	connection := fmt.Sprintf("%s:%.8s@%s", description, randomToken(), address(port))
	if err := os.WriteFile(file, []byte(connection+"\n"), 0o644); err != nil {
		return nil, fmt.Errorf("write a cluster file: %w", err)
	}
	process, err := e.launch(ctx, command{
		name: name, kind: fdbServer, path: filepath.Join(programs.Dir, fdbServer),
		args:  []string{"-C", file, "-p", address(port), "-d", data, "-L", logs},
		ready: tcpReady(address(port)),
	})
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	//nolint:gosec // the program is the caller's
	said, err := exec.CommandContext(limited, filepath.Join(programs.Dir, "fdbcli"), "-C", file,
		"--exec", "configure new single memory").CombinedOutput()
	if err != nil {
		return nil, errors.Join(process.failure(fmt.Errorf("make a database of %s: %w: %s", name, err, said)), process.Stop())
	}
	return &FDBServer{Process: process, ConnectionString: connection, ClusterFile: file}, nil
}

// tcpReady returns a readiness check: something listens.
func tcpReady(address string) func(context.Context) error {
	return func(ctx context.Context) error {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	}
}
