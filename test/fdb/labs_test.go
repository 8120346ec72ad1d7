package fdb_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// standInVersion is what the stand-in's clusters run. The folder 7.3 is that of FoundationDB's own programs: both are in one stack.
const standInVersion = "7.4.5"

var (
	sim *fdbsim.Sim
	// own are FoundationDB's own programs; nil where they are not.
	own *env.FDBPrograms
)

func installTools(ctx context.Context, binDir, stateDir string) error {
	var err error
	if sim, err = fdbsim.Install(binDir, stateDir, "7.1", standInVersion); err != nil {
		return err
	}
	if own, err = env.FindFDBPrograms(ctx); own == nil || err != nil {
		return err
	}
	return own.Install(binDir)
}

// onBoth runs a test with databases of the stand-in and, side by side, with FoundationDB's own where its programs are. What is
// tested must not differ.
func onBoth(t *testing.T, test func(t *testing.T, x *tenant)) {
	t.Helper()
	t.Parallel()
	var both sync.WaitGroup // parallel parts would wait until all other tests have begun, and FoundationDB takes the longest
	both.Go(func() { t.Run("stand-in", func(t *testing.T) { test(t, newTenant(t)) }) })
	both.Go(func() {
		t.Run("FoundationDB", func(t *testing.T) {
			if own == nil {
				t.Skip("FoundationDB's own programs are neither in FDB_BIN_DIR nor in a folder shared/fdb beside the checkout")
			}
			x := newTenant(t)
			x.servers = &sync.Map{}
			test(t, x)
		})
	})
	both.Wait()
}

// onOwnIfShort is onBoth for the long tests; in the others it is by FoundationDB's own programs alone, or, where they are not, by
// the stand-in alone.
func onOwnIfShort(t *testing.T, test func(t *testing.T, x *tenant)) {
	t.Helper()
	if sample.Whole() {
		onBoth(t, test)
		return
	}
	t.Parallel()
	x := newTenant(t)
	if own != nil {
		x.servers = &sync.Map{}
	}
	test(t, x)
}

// onBothIfLong is onBoth for the long tests; in the others it is by the stand-in alone: FoundationDB's first snapshot takes 35 s.
func onBothIfLong(t *testing.T, test func(t *testing.T, x *tenant)) {
	t.Helper()
	if sample.Whole() {
		onBoth(t, test)
		return
	}
	t.Parallel()
	test(t, newTenant(t))
}

// version is what the tenant's clusters run.
func (x *tenant) version() string {
	if x.servers != nil {
		return own.Version
	}
	return standInVersion
}

// serve starts a database of FoundationDB's own and returns its connection string.
func (x *tenant) serve(name string) string {
	x.t.Helper()
	server, err := stack.StartFDBServer(x.t.Context(), own, x.namespace+"-"+name)
	require.NoError(x.t, err)
	x.servers.Store(name, server)
	x.t.Cleanup(func() {
		// Without it, tools would be run that wait for a database that is gone.
		_ = admin.Delete(context.Background(), &foundationdbv1beta2.FoundationDBCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name},
		})
		require.NoError(x.t, server.Stop())
	})
	return server.ConnectionString
}

// unreachable cuts a database off, or connects it again.
func (x *tenant) unreachable(name string, cut bool) {
	x.t.Helper()
	if x.servers == nil {
		require.NoError(x.t, sim.Unreachable(ownerOf(x.t, x.namespace, name), cut))
		return
	}
	server, _ := x.servers.Load(name)
	if cut {
		require.NoError(x.t, server.(*env.FDBServer).Pause())
	} else {
		require.NoError(x.t, server.(*env.FDBServer).Resume())
	}
}
