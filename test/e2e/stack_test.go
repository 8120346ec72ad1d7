// Package e2e_test drives Holdfast as its users do, on the real components: tenants with nothing but their own rights,
// an administrator with kubectl's, and a look into Temporal and the bucket.
//
// Tests that disturb the stack (policy, kills, outages) are not parallel; they run before the parallel ones begin.
package e2e_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	temporalclient "go.temporal.io/sdk/client"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"holdfast.dev/holdfast/test/env"
)

// suggestContinueAsNew makes workflows continue as new early, so that both sides of it are on every path.
const suggestContinueAsNew = 50

// readyTimeout is how long restored volumes and workloads are waited for.
const readyTimeout = 5 * time.Second

var (
	stack    *env.Env
	admin    client.WithWatch
	temporal temporalclient.Client
)

func TestMain(m *testing.M) {
	flag.Parse()
	ctrllog.SetLogger(logr.Discard())
	if testing.Short() {
		fmt.Println("skipped: the end-to-end tests start real components (-short)")
		os.Exit(0)
	}
	_ = flag.Set("test.parallel", "6") // they wait for Velero most of the time; another stack runs beside this one
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx := context.Background() // go test's timeout ends what hangs
	var err error
	stack, err = env.Start(ctx, env.Options{
		Progress:             os.Stdout,
		Holdfast:             true,
		Audit:                true,
		SuggestContinueAsNew: suggestContinueAsNew,
		WatchArgs:            []string{"--progress-interval=1s"},
		// There is no kubelet, so no restored workload ever becomes ready.
		WorkerArgs: []string{"--restore-ready-timeout=" + readyTimeout.String()},
		// Velero 1.18 may leave a queued backup alone for a minute although nothing runs; more slots make that rare.
		VeleroArgs: []string{"--concurrent-backups=8"},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the stack:", err)
		return 1
	}
	defer stack.Stop()
	if err := stack.InstallKinds(ctx, foreignKinds...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if admin, err = clientFor(env.Admin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	temporal, err = temporalclient.Dial(temporalclient.Options{HostPort: stack.TemporalAddress(), Logger: env.QuietLogger()})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer temporal.Close()
	code := m.Run()
	if err := env.RecordHistories(ctx, temporal); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if code != 0 {
		var logs bytes.Buffer
		stack.DumpLogs(&logs, 15)
		_, _ = os.Stderr.Write(logs.Bytes())
	}
	// After tests that failed, too: what these find is never forgiven, even if a second run of the tests finds nothing.
	return max(code, checkSecrets(ctx), checkRights(ctx))
}

// foreignKinds are those of CSI snapshots, for which no driver is here, and one on whose objects a controller with great rights would
// act: no role of tenants has it.
var foreignKinds = []env.SchemalessKind{
	{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshot", Plural: "volumesnapshots"},
	{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshotContent", Plural: "volumesnapshotcontents", ClusterScoped: true},
	{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshotClass", Plural: "volumesnapshotclasses", ClusterScoped: true},
	{Group: "attack.example.com", Version: "v1", Kind: "Application", Plural: "applications"},
}

var clients sync.Map

// clientFor returns a client with the rights of one user.
func clientFor(user string) (client.WithWatch, error) {
	if known, ok := clients.Load(user); ok {
		return known.(client.WithWatch), nil
	}
	made, err := stack.UserClient(user)
	if err != nil {
		return nil, err
	}
	clients.Store(user, made)
	return made, nil
}
