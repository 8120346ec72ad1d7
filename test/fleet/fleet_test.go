package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tenants"
	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// The same namespace and names in each cluster: nothing of one is another's.
func TestEachClusterSeesOnlyItsOwn(t *testing.T) {
	all := theFleet(t)
	const namespace, name = "shop", "nightly"
	in := map[string]*tenants.Namespace{}
	for i, cluster := range names {
		in[cluster] = all.in(t, cluster, namespace, i+1)
		in[cluster].BackUp(name, "")
	}
	own := map[string]string{}
	for i, cluster := range names {
		nab := in[cluster].AwaitEnd(name)
		made := in[cluster].Made()
		require.Len(t, made, 1, cluster)
		require.Len(t, made[name], 1, cluster)
		assert.Equal(t, nab.Status.VeleroBackup.Name, made[name][0].Name)
		assert.Len(t, in[cluster].ConfigMaps(), i+1)
		own[contract.WorkflowID(cluster, contract.KindBackup, contract.ObjectRef{
			Namespace: namespace, Name: name, UID: string(nab.UID),
		})] = contract.TaskQueue(cluster)
	}
	listed, err := tenants.Temporal(t, all[west]).ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
		Query: "HoldfastNamespace = 'shop' AND HoldfastKind = 'NonAdminBackup'",
	})
	require.NoError(t, err)
	found := map[string]string{}
	for _, execution := range listed.Executions {
		found[execution.Execution.WorkflowId] = execution.TaskQueue
	}
	assert.Equal(t, own, found, "each is served by its own cluster's task queue")
}

func TestTheFleetIsShownWithEachClustersWork(t *testing.T) {
	all := theFleet(t)
	all.awaitHeartbeats(t)
	of, err := all.shown(t)
	require.NoError(t, err)
	assert.Len(t, of, len(names))
	for name, cluster := range of {
		assert.Empty(t, cluster.Problem, name)
		assert.False(t, cluster.Silent, name)
		assert.NotEmpty(t, cluster.Heartbeat.Watcher.Version, name)
		assert.Equal(t, cluster.Heartbeat.Watcher.Version, cluster.Heartbeat.Worker.Version, name)
		assert.True(t, strings.HasPrefix(cluster.Heartbeat.Worker.Kubernetes, "v1."), name)
	}
	all.print(t)
	report, err := all.holdfast(t, "report", "--context=west", "--context=east", "--context=north")
	require.NoError(t, err)
	for _, name := range names {
		assert.Contains(t, report, "# Backups of cluster "+name+"\n")
	}
}

// A second Kubernetes cluster is installed with an ID that is taken: its processes serve nothing, and say why.
func TestAClusterIDServesOneKubernetesCluster(t *testing.T) {
	all := theFleet(t)
	all.awaitHeartbeats(t)
	intruder := all[east]
	const rounds = 5 * time.Second // a process that waits checks every two seconds
	for account, command := range map[string][]string{
		env.HoldfastWorker:  {intruder.Binary(tools.HoldfastWorker), "--serve=velero"},
		env.HoldfastWatcher: {intruder.Binary(tools.Holdfast), "watch", "--serve=velero"},
	} {
		t.Run(account, func(t *testing.T) {
			log, err := os.Create(filepath.Join(t.TempDir(), "log"))
			require.NoError(t, err)
			defer log.Close()
			process := exec.CommandContext(t.Context(), command[0], append(command[1:],
				"--kubeconfig", intruder.Kubeconfig(account), "--cluster-id", west, "--oadp-namespace", env.OADPNamespace,
				"--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0")...)
			process.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+all[west].TemporalAddress())
			process.Stdout, process.Stderr = log, log
			require.NoError(t, process.Start())
			defer func() {
				_ = process.Process.Kill()
				_ = process.Wait()
			}()
			tenants.Await(t, func(context.Context) error {
				said, err := os.ReadFile(log.Name())
				if err == nil && !bytes.Contains(said, []byte("belongs to another Kubernetes cluster")) {
					err = fmt.Errorf("it says: %s", said)
				}
				return err
			})
			assert.Never(t, func() bool {
				now, err := os.ReadFile(log.Name())
				return err != nil || bytes.Contains(now, []byte("worker started")) || bytes.Contains(now, []byte(`"watching"`))
			}, rounds, time.Second, "it waits")
		})
	}
}

// measured is how long a burst of backups took in a cluster, and how many events their workflows had.
type measured struct {
	took   time.Duration
	events int64
}

// burst has a cluster take backups at once.
func burst(in *tenants.Namespace, count int) (m measured) {
	in.T.Helper()
	begin := time.Now()
	begun(in, count)
	for i := range count {
		in.AwaitEnd(numbered("burst", i))
	}
	m.took = time.Since(begin)
	for name, made := range in.Made() {
		assert.Len(in.T, made, 1, name)
	}
	temporal := tenants.Temporal(in.T, in.Env)
	in.Await(func(ctx context.Context) error {
		listed, err := temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf("HoldfastNamespace = '%s' AND ExecutionStatus = 'Completed'", in.Name),
		})
		if err != nil || len(listed.Executions) < count {
			return errors.Join(err, errors.New("not all workflows have ended"))
		}
		m.events = 0
		for _, execution := range listed.Executions {
			m.events += execution.HistoryLength
		}
		return nil
	})
	return m
}

func begun(in *tenants.Namespace, count int) {
	in.T.Helper()
	for i := range count {
		in.BackUp(numbered("burst", i), "")
	}
}

// A cluster is away while its backups are under way. The others go on, and its backups are completed when it is back.
func TestOneAwayDoesNotSlowTheOthers(t *testing.T) {
	all := theFleet(t)
	count := 4
	if sample.Whole() {
		count = 40
	}
	burst(all.in(t, west, "warm", 2), 2)
	with := burst(all.in(t, west, "with", 2), count)

	lost := all.in(t, north, "lost", 2)
	require.NoError(t, lost.Component(env.Velero).Pause())
	begun(lost, count)
	temporal := tenants.Temporal(t, all[west])
	lost.Await(func(ctx context.Context) error {
		open, err := temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Query: "HoldfastCluster = 'north' AND HoldfastNamespace = 'lost' AND ExecutionStatus = 'Running'",
		})
		if err == nil && open.Count != int64(count) {
			err = fmt.Errorf("%d workflows are open, not %d", open.Count, count)
		}
		return err
	})
	api := lost.Component(env.KubeAPIServer)
	require.NoError(t, api.Pause())
	since := time.Now()
	without := burst(all.in(t, west, "without", 2), count)
	t.Logf("%d backups of west took %.2f times as long with north away, and had %.2f times the events", count,
		without.took.Seconds()/with.took.Seconds(), float64(without.events)/float64(with.events))

	tenants.Await(t, func(context.Context) error {
		of, err := all.shown(t)
		switch {
		case err != nil:
			return err
		case of[west].Heartbeat == nil, of[east].Heartbeat == nil, of[north].Heartbeat == nil:
			return errors.New("not all have sent a heartbeat")
		case !of[west].Heartbeat.At.After(since), !of[east].Heartbeat.At.After(since):
			return errors.New("west and east have sent no heartbeat since")
		case sample.Whole() && !of[north].Silent:
			return errors.New("north is not silent")
		case of[north].Open == nil || *of[north].Open < int64(count):
			return errors.New("what is open in north is not known")
		}
		return nil
	})
	all.print(t)
	of, err := all.shown(t)
	require.NoError(t, err)
	assert.False(t, of[north].Heartbeat.At.After(since.Add(time.Minute)), "nobody leads its watchers")

	require.NoError(t, api.Resume())
	require.NoError(t, lost.Component(env.Velero).Resume())
	for i := range count {
		lost.AwaitEnd(numbered("burst", i))
	}
	for name, made := range lost.Made() {
		assert.Len(t, made, 1, name)
	}
	tenants.Await(t, func(context.Context) error {
		of, err := all.shown(t)
		if err == nil && of[north].Heartbeat != nil && (of[north].Problem != "" || !of[north].Heartbeat.At.After(since)) {
			err = errors.New("north is not heard of again: " + of[north].Problem)
		}
		return err
	})
}
