// Package production_test runs Holdfast with Temporal as it is run in production: its server's four services, history twice, on
// PostgreSQL. Without PostgreSQL the tests say so, and are skipped.
package production_test

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/env/temporalserver"
	"holdfast.dev/holdfast/test/tenants"
)

const tenant = "alice"

// shared is the stack of all tests but those of certificates.
var shared struct {
	once sync.Once
	env  *env.Env
	err  error
}

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	code := m.Run()
	if shared.env != nil {
		shared.env.Stop()
	}
	os.Exit(code)
}

// rig is a stack, and a namespace of one test in it.
type rig struct{ *tenants.Namespace }

// needsPostgres skips a test where the components are not wanted, or PostgreSQL is not installed.
func needsPostgres(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real components")
	}
	if _, err := temporalserver.PostgresDir(); err != nil {
		t.Skip(err)
	}
}

// onSharedStack returns the shared stack, whose cluster ID is as long as can be, with a namespace of the test's own.
func onSharedStack(t *testing.T, namespace string) *rig {
	t.Helper()
	needsPostgres(t)
	shared.once.Do(func() {
		shared.env, shared.err = env.Start(t.Context(), env.Options{
			Progress: os.Stdout, Holdfast: true, ClusterID: longestCluster, TemporalServer: true,
			VeleroArgs: []string{"--concurrent-backups=4"},
		})
	})
	require.NoError(t, shared.err)
	return newRig(t, shared.env, namespace)
}

func newRig(t *testing.T, stack *env.Env, namespace string) *rig {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			var logs bytes.Buffer
			stack.DumpLogs(&logs, 15)
			t.Log(logs.String())
		}
	})
	return &rig{tenants.Make(t, stack, namespace, tenant, 3)}
}

func numbered(prefix string, n int) string { return fmt.Sprintf("%s-%d", prefix, n) }

// remove has a backup deleted with its data, and waits until it is gone.
func (r *rig) remove(name string) {
	r.T.Helper()
	r.RequestDeletion(name)
	r.AwaitGone(name)
}
