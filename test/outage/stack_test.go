package outage_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	temporalclient "go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// rig is the stack that all cases share; the processes under test are each case's own.
type rig struct {
	stack    *env.Env
	admin    client.Client
	temporal temporalclient.Client
	binaries map[string]string // of the build for outage tests
}

// cases is how many cases run at a time: as many as meet in one outage. They wait more than they work, but each has processes of
// its own.
func cases() int {
	if sample.Whole() {
		return 6
	}
	return 5
}

// shared is started by the first test that needs it.
var shared = sync.OnceValues(startRig)

var started *rig

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", strconv.Itoa(cases()))
	ctrllog.SetLogger(logr.Discard())
	code := m.Run()
	if started != nil {
		if err := env.RecordHistories(context.Background(), started.temporal); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		started.temporal.Close()
		started.stack.Stop()
	}
	os.Exit(code)
}

func startRig() (*rig, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	binaries, err := tools.BuildHoldfast(ctx, os.Stdout, "outage")
	if err != nil {
		return nil, err
	}
	stack, err := env.Start(ctx, env.Options{
		Progress: os.Stdout, Audit: true, Drills: true,
		// Velero 1.18 may leave a queued backup alone for a minute although nothing runs; more slots make that rare.
		VeleroArgs: []string{"--concurrent-backups=8"},
	})
	if err != nil {
		return nil, err
	}
	r := &rig{stack: stack, binaries: binaries}
	config, err := stack.RESTConfig(env.Admin)
	if err == nil {
		config.Timeout = callPatience // it may be away
		r.admin, err = client.New(config, client.Options{Scheme: k8s.Scheme()})
	}
	if err == nil {
		err = r.stopSync(ctx)
	}
	if err == nil { // before any process reads it; backups do not mind
		err = r.admin.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: policy.ConfigMapName},
			Data:       map[string]string{policy.ConfigMapKey: "requireApprovalForBSL: true"},
		})
	}
	if err == nil {
		r.temporal, err = temporalclient.Dial(temporalclient.Options{HostPort: stack.TemporalAddress(), Logger: env.QuietLogger()})
	}
	if err != nil {
		stack.Stop()
		return nil, err
	}
	started = r
	return r, nil
}

// stopSync keeps Velero from bringing back, a minute after its start and every minute then, Backup objects whose data a
// scenario keeps.
func (r *rig) stopSync(ctx context.Context) error {
	location := &velerov1.BackupStorageLocation{ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: env.DefaultStorageLocation}}
	return r.admin.Patch(ctx, location, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"backupSyncPeriod":"0s"}}`)))
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

// say shows progress: a case takes many seconds.
func say(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Logf(format, args...)
}
