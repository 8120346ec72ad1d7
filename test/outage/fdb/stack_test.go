// Package fdb_test disturbs FoundationDB backups at exactly known moments (see package outage), on a stack with the kubelet
// stand-in and the stand-in of FoundationDB's tools.
package fdb_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/env/kubelet"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/test/tools"
)

// cases is how many cases run at a time: they wait more than they work.
const cases = 6

// rig is the stack that all cases share; the processes under test are each case's own.
type rig struct {
	dir      string // of the stand-in
	stack    *env.Env
	admin    client.Client
	sim      *fdbsim.Sim
	binaries map[string]string // of the build for outage tests
	// namespaces of Temporal are lent to cases: the owners of FoundationDB clusters have one queue in each, on which another
	// case's worker must not serve.
	namespaces chan temporalNamespace
}

// temporalNamespace is one of Temporal's, with a client for it.
type temporalNamespace struct {
	temporalclient.Client
	name string
}

// shared is started by the first test that needs it.
var shared = sync.OnceValues(startRig)

var started *rig

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", strconv.Itoa(cases))
	ctrllog.SetLogger(logr.Discard())
	code := m.Run()
	if started != nil {
		if code != 0 {
			var logs bytes.Buffer
			started.stack.DumpLogs(&logs, 10)
			_, _ = os.Stderr.Write(logs.Bytes())
		}
		if err := started.stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func theRig(t *testing.T) *rig {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real components (-short)")
	}
	r, err := shared()
	require.NoError(t, err)
	return r
}

func startRig() (*rig, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	r := &rig{namespaces: make(chan temporalNamespace, cases+1)}
	if err := r.start(ctx); err != nil {
		return nil, errors.Join(err, r.stop())
	}
	started = r
	return r, nil
}

func (r *rig) start(ctx context.Context) (err error) {
	if r.binaries, err = tools.BuildHoldfast(ctx, os.Stdout, "outage"); err != nil {
		return err
	}
	if r.dir, err = os.MkdirTemp("", "holdfast-outage-"); err != nil {
		return err
	}
	if r.sim, err = fdbsim.Install(filepath.Join(r.dir, "bin"), filepath.Join(r.dir, "state"), "7.3"); err != nil {
		return err
	}
	r.stack, err = env.Start(ctx, env.Options{
		Progress: os.Stdout, Audit: true, FoundationDB: true, Without: []string{env.Velero},
		Kubelet: &kubelet.Options{Resolve: kubelet.FDBImages(r.sim.BinDir)},
	})
	if err != nil {
		return err
	}
	config, err := r.stack.RESTConfig(env.Admin)
	if err != nil {
		return err
	}
	config.QPS, config.Timeout = -1, callPatience // it may be away
	if r.admin, err = client.New(config, client.Options{Scheme: k8s.Scheme()}); err != nil {
		return err
	}
	for i := range cap(r.namespaces) {
		namespace, err := r.newNamespace(ctx, fmt.Sprintf("case-%d", i))
		if err != nil {
			return err
		}
		r.namespaces <- namespace
	}
	return r.stack.InstallFDBClusters(ctx)
}

func (r *rig) newNamespace(ctx context.Context, name string) (made temporalNamespace, err error) {
	options := temporalclient.Options{HostPort: r.stack.TemporalAddress(), Namespace: name, Logger: env.QuietLogger()}
	registry, err := temporalclient.NewNamespaceClient(options)
	if err != nil {
		return made, err
	}
	defer registry.Close()
	err = registry.Register(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	if err != nil {
		return made, fmt.Errorf("make Temporal namespace %s: %w", name, err)
	}
	connected, err := temporalclient.DialContext(ctx, options)
	return temporalNamespace{connected, name}, err
}

func (r *rig) stop() (err error) {
	close(r.namespaces)
	for namespace := range r.namespaces {
		err = errors.Join(err, env.RecordHistories(context.Background(), namespace.Client))
		namespace.Close()
	}
	if r.stack != nil {
		r.stack.Stop()
	}
	return errors.Join(err, os.RemoveAll(r.dir))
}

// borrow lends a Temporal namespace until it is given back, at the latest at the end of the test; the workflows of those IDs are
// ended then.
func (r *rig) borrow(t *testing.T, leaves func() []string) (namespace temporalNamespace, giveBack func()) {
	t.Helper()
	select {
	case namespace = <-r.namespaces:
	case <-time.After(2 * patience):
		require.FailNow(t, "no test gives its Temporal namespace back")
	}
	giveBack = sync.OnceFunc(func() {
		defer func() { r.namespaces <- namespace }()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for _, id := range leaves() {
			err := namespace.TerminateWorkflow(ctx, id, "", "the case is over")
			var ended *serviceerror.NotFound
			if err != nil && !errors.As(err, &ended) {
				t.Errorf("end workflow %s: %v", id, err)
			}
		}
	})
	t.Cleanup(giveBack)
	return namespace, giveBack
}
