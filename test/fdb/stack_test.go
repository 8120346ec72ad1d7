// Package fdb_test drives FoundationDB backups as users and operators do: with kubectl, on a real API server, Temporal and S3
// server, and with the stand-in of FoundationDB's tools. Tests that need no faults of it run with FoundationDB's own programs, too,
// where these are: see labs_test.go.
//
// Tests that disturb the stack are not parallel; they run before the parallel ones begin.
package fdb_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	temporalclient "go.temporal.io/sdk/client"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"holdfast.dev/holdfast/activities/fdbtool/cage"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/env/kubelet"
)

// suggestContinueAsNew makes workflows continue as new early, so that both sides of it are on every path.
const suggestContinueAsNew = 60

// Settings of the worker, small enough for tests to see their effect.
const (
	statusInterval  = 6 * time.Second
	snapshotTimeout = 12 * time.Second
	resourceTimeout = 15 * time.Second
	// minExpiryInterval and expiryTimeout are those of the queue of expirations.
	minExpiryInterval = 6 * time.Second
	expiryTimeout     = time.Minute
)

var (
	stack    *env.Env
	admin    client.Client
	temporal temporalclient.Client
	// toolsDir has the tools, in a folder per version (major.minor).
	toolsDir string
)

func TestMain(m *testing.M) {
	flag.Parse()
	ctrllog.SetLogger(logr.Discard())
	if testing.Short() {
		fmt.Println("skipped: the FoundationDB tests start real components (-short)")
		os.Exit(0)
	}
	_ = flag.Set("test.parallel", "10") // they wait most of the time
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "holdfast-test-fdb-") // workers of other stacks remove what killed ones left: holdfast-fdb-*
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		err = start(ctx, dir)
	}
	if stack != nil {
		defer stack.Stop()
	}
	if temporal != nil {
		defer temporal.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the stack:", err)
		return 1
	}
	code := m.Run()
	if err := env.RecordHistories(ctx, temporal); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if code != 0 {
		var logs bytes.Buffer
		stack.DumpLogs(&logs, 15)
		_, _ = os.Stderr.Write(logs.Bytes())
	}
	// Also after tests that failed: what is found here is never forgiven, and they may be.
	return max(code, checkSecrets(ctx), checkRights(ctx))
}

func start(ctx context.Context, dir string) error {
	toolsDir = filepath.Join(dir, "bin")
	if err := installTools(ctx, toolsDir, filepath.Join(dir, "state")); err != nil {
		return err
	}
	var err error
	stack, err = env.Start(ctx, env.Options{
		Progress:             os.Stdout,
		Holdfast:             true,
		FoundationDB:         true,
		Audit:                true,
		SuggestContinueAsNew: suggestContinueAsNew,
		Without:              []string{env.Velero},
		Kubelet:              &kubelet.Options{Resolve: kubelet.FDBImages(toolsDir)},
		// A workflow that was terminated by hand starts again at the next resync.
		WatchArgs: []string{"--resync-interval=10s"},
		// Many tests run side by side; those of the limit have a worker of their own.
		FDBWorkerArgs: append(workerArgs(), "--fdb-initial-snapshot-limit=8", "--fdb-expiry-concurrency=8",
			"--fdb-expiry-min-interval="+minExpiryInterval.String(), "--fdb-expiry-retry-interval=2s",
			"--fdb-expiry-timeout="+expiryTimeout.String()),
	})
	if err != nil {
		return err
	}
	if admin, err = stack.UserClient(env.Admin); err != nil {
		return err
	}
	if temporal, err = temporalclient.Dial(temporalclient.Options{HostPort: stack.TemporalAddress(), Logger: env.QuietLogger()}); err != nil {
		return err
	}
	if err := stack.CreateBucket(bucket); err != nil { // FoundationDB's tools cannot make one in us-east-1
		return err
	}
	return stack.InstallFDBClusters(ctx)
}

func workerArgs() []string {
	args := []string{
		"--fdb-bin-dir=" + toolsDir, "--fdb-cage-folders=" + sim.Store.Dir, // the stand-in's databases are files
		"--fdb-status-interval=" + statusInterval.String(),
		"--fdb-initial-snapshot-timeout=" + snapshotTimeout.String(), "--resource-timeout=" + resourceTimeout.String(),
	}
	if cage.Lacking() == nil {
		args = append(args, "--fdb-require-cage")
	}
	return args
}

// checkSecrets: the secret of the object store is nowhere but in Secrets. It returns the exit status.
func checkSecrets(ctx context.Context) int {
	found, err := stack.Search(ctx, stack.Storage().SecretKey)
	if err != nil {
		fmt.Fprintln(os.Stderr, env.WholeAgain+"search for secrets:", err)
		return 1
	}
	for _, place := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintln(os.Stderr, env.NeverForgiven+"the secret is shown by:", place)
	}
	return min(len(found), 1)
}

// wholeSuite reports whether every test has run: only then is a right that nobody used superfluous.
func wholeSuite() bool {
	return flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" &&
		flag.Lookup("test.list").Value.String() == ""
}

// unusedHere are rights that are needed, and not in these tests, with when.
var unusedHere = map[string]string{
	env.HoldfastFDB + " patch events.k8s.io/events":                    "an Event that repeats itself for six minutes",
	env.HoldfastWatcher + " get fdb.holdfast.dev/foundationdbbackups":  "a change during an outage of the API server",
	env.HoldfastWatcher + " get fdb.holdfast.dev/foundationdbrestores": "a change during an outage of the API server",
}

// checkRights looks for rights that are missing, or superfluous though they are for FoundationDB. It returns the exit status.
func checkRights(ctx context.Context) int {
	wrong, err := stack.CheckRights(ctx, func(right env.Right) bool {
		return wholeSuite() && right.ForFoundationDB() && unusedHere[right.String()] == ""
	})
	if err != nil {
		wrong = append(wrong, env.WholeAgain+err.Error())
	}
	for _, line := range wrong {
		fmt.Fprintln(os.Stderr, line)
	}
	return min(len(wrong), 1)
}
