// Package fleet_test runs three Kubernetes clusters on one Temporal, each with its own worker, watcher and Velero.
package fleet_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"holdfast.dev/holdfast/starter/fleet"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/env/temporalserver"
	"holdfast.dev/holdfast/test/tenants"
	"holdfast.dev/holdfast/test/tools"
)

// The clusters. The first has Temporal and the S3 server.
const (
	west  = "west"
	east  = "east"
	north = "north"
)

var names = []string{west, east, north}

const tenant = "alice"

// clusters are the fleet, which all tests share.
type clusters map[string]*env.Env

var shared struct {
	once sync.Once
	clusters
	err error
}

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	code := m.Run()
	shared.clusters.stop()
	os.Exit(code)
}

func (c clusters) stop() {
	for i := len(names) - 1; i >= 0; i-- {
		if stack := c[names[i]]; stack != nil {
			stack.Stop()
		}
	}
}

// theFleet returns the clusters.
func theFleet(t *testing.T) clusters {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real components")
	}
	shared.once.Do(func() { shared.clusters, shared.err = start(t) })
	require.NoError(t, shared.err)
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for name, stack := range shared.clusters {
			var logs bytes.Buffer
			stack.DumpLogs(&logs, 15)
			t.Log(name + "\n" + logs.String())
		}
	})
	return shared.clusters
}

// start starts the first cluster, and then the others at the same time. Temporal is its own server where PostgreSQL is.
func start(t *testing.T) (clusters, error) {
	_, noPostgres := temporalserver.PostgresDir()
	options := env.Options{
		Progress: os.Stdout, Holdfast: true, ClusterID: west, TemporalServer: noPostgres == nil,
		VeleroArgs: []string{"--concurrent-backups=4"},
	}
	first, err := env.Start(t.Context(), options)
	if err != nil {
		return nil, err
	}
	all := clusters{west: first}
	options.Beside = first
	var mutex sync.Mutex
	group, ctx := errgroup.WithContext(t.Context())
	for _, name := range names[1:] {
		group.Go(func() error {
			options := options
			options.ClusterID = name
			started, err := env.Start(ctx, options)
			mutex.Lock()
			defer mutex.Unlock()
			if err == nil {
				all[name] = started
			}
			return err
		})
	}
	return all, group.Wait()
}

// holdfast runs the command with a kubeconfig that has a context for each cluster.
func (c clusters) holdfast(t *testing.T, args ...string) (printed string, err error) {
	t.Helper()
	merged := clientcmdapi.NewConfig()
	for name, stack := range c {
		of, err := clientcmd.LoadFromFile(stack.Kubeconfig(env.Admin))
		require.NoError(t, err)
		context := of.Contexts[of.CurrentContext]
		merged.Clusters[name], merged.AuthInfos[name] = of.Clusters[context.Cluster], of.AuthInfos[context.AuthInfo]
		merged.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	path := t.TempDir() + "/kubeconfig"
	require.NoError(t, clientcmd.WriteToFile(*merged, path))
	command := exec.CommandContext(t.Context(), c[west].Binary(tools.Holdfast), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+path, "TEMPORAL_ADDRESS="+c[west].TemporalAddress())
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		err = fmt.Errorf("holdfast %v: %w: %s", args, err, &said)
	}
	return string(out), err
}

// shown is what `holdfast fleet` says of each cluster.
func (c clusters) shown(t *testing.T) (map[string]fleet.Cluster, error) {
	t.Helper()
	out, err := c.holdfast(t, "fleet", "-o", "json")
	if err != nil {
		return nil, err
	}
	var read fleet.Clusters
	if err := json.Unmarshal([]byte(out), &read); err != nil {
		return nil, err
	}
	of := map[string]fleet.Cluster{}
	for _, each := range read.Clusters {
		of[each.ID] = each
	}
	return of, nil
}

func (c clusters) awaitHeartbeats(t *testing.T) {
	t.Helper()
	tenants.Await(t, func(context.Context) error {
		of, err := c.shown(t)
		for _, cluster := range names {
			if of[cluster].Heartbeat == nil {
				err = errors.Join(err, errors.New(cluster+" has sent no heartbeat"))
			}
		}
		return err
	})
}

// print logs `holdfast fleet`, as a person sees it.
func (c clusters) print(t *testing.T) {
	t.Helper()
	table, err := c.holdfast(t, "fleet")
	require.NoError(t, err)
	t.Log("\n" + table)
}

// in makes a namespace of a tenant's in a cluster.
func (c clusters) in(t *testing.T, cluster, namespace string, configMaps int) *tenants.Namespace {
	t.Helper()
	return tenants.Make(t, c[cluster], namespace, tenant, configMaps)
}

func numbered(prefix string, n int) string { return fmt.Sprintf("%s-%d", prefix, n) }
