package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

// secrets are all secret keys that tests have put into tenants' Secrets, and the signatures of the URLs that they were given.
var secrets = struct {
	sync.Mutex
	kept map[string]bool
}{kept: map[string]bool{}}

func keepSecret(secret string) {
	secrets.Lock()
	defer secrets.Unlock()
	secrets.kept[secret] = true
}

func keptSecrets() []string {
	secrets.Lock()
	defer secrets.Unlock()
	return slices.Sorted(maps.Keys(secrets.kept))
}

// secretsShown lists the places that show a secret of the tests that have run, and says so for the gate: the one who asks fails.
func secretsShown(ctx context.Context) ([]string, error) {
	kept := keptSecrets()
	if len(kept) == 0 {
		return nil, nil
	}
	found, err := stack.Search(ctx, kept...)
	if err != nil {
		return nil, fmt.Errorf("search for secrets: %w", err)
	}
	shown := slices.Sorted(maps.Keys(found))
	for _, place := range shown {
		fmt.Fprintln(os.Stderr, env.NeverForgiven+"a secret is shown by:", place)
	}
	return shown, nil
}

// checkSecrets: nothing of what tenants' Secrets hold is anywhere but in Secrets. It returns the exit status.
func checkSecrets(ctx context.Context) int {
	shown, err := secretsShown(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, env.WholeAgain+err.Error())
		return 1
	}
	return min(len(shown), 1)
}

// requireNoSecretShown is checkSecrets for one test: a later one may remove what it looks at.
func requireNoSecretShown(t *testing.T) {
	t.Helper()
	require.NotEmpty(t, keptSecrets())
	shown, err := secretsShown(t.Context())
	require.NoError(t, err)
	require.Empty(t, shown)
}

// The search itself: it finds in each place what is there.
func TestTheSearchForSecretsFindsWhatIsThere(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "alice")
	location := x.own(newAccount(t))
	x.awaitAvailable(location)
	x.awaitLocationEvent(location, "LocationAvailable", "")
	x.remove(location)
	found, err := stack.Search(t.Context(), x.namespace, "holdfast_signal_seconds", "holdfast_backups_total", "holdfast-worker")
	require.NoError(t, err)
	for _, place := range []string{
		"history " + contract.WorkflowID(stack.ClusterID(), contract.KindLocation, locationRef(location)),
		"Event", "metrics worker", "metrics watcher", "log worker.log", "log velero.log",
	} {
		assert.Positive(t, found[place], place)
	}
	assert.Positive(t, found["database temporal.db"]+found["database temporal.db-wal"])
	if runtime.GOOS == "linux" {
		assert.Positive(t, found[fmt.Sprintf("arguments of process %d", stack.Component(env.Worker).PID())])
	}
}
