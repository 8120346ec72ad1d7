package env_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
)

// testWriter is the progress of the stack as lines of the test's log.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimRight(string(b), "\n"))
	return len(b), nil
}

func startStack(ctx context.Context, t *testing.T, options env.Options) *env.Env {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real components")
	}
	options.Progress = testWriter{t}
	stack, err := env.Start(ctx, options)
	require.NoError(t, err)
	t.Cleanup(stack.Stop)
	stack.ReportFailure(t)
	return stack
}

func TestStackWithoutHoldfast(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute) // the first build is in it
	defer cancel()
	stack := startStack(ctx, t, env.Options{SuggestContinueAsNew: 50})
	require.NoError(t, stack.CreateTenant(ctx, "team-a", "alice"))
	require.NoError(t, stack.Seed(ctx, "team-a", 5))

	t.Run("Velero takes a backup into the bucket", func(t *testing.T) { takesBackup(ctx, t, stack) })
	t.Run("Velero uses an account's bucket, and no other with its keys", func(t *testing.T) { usesAccounts(ctx, t, stack) })
	t.Run("a tenant sees only its own namespace", func(t *testing.T) { isolatesTenants(ctx, t, stack) })
	t.Run("a deleted namespace disappears", func(t *testing.T) { deletesNamespace(ctx, t, stack) })
	t.Run("the API server can be paused", func(t *testing.T) { pausesAPIServer(ctx, t, stack) })
	t.Run("Temporal keeps its data over a restart", func(t *testing.T) { restartsTemporal(ctx, t, stack) })
	t.Run("Velero comes back after a kill", func(t *testing.T) { killsVelero(ctx, t, stack) })
	t.Run("Stop leaves nothing behind", func(t *testing.T) { stopsClean(t, stack) })
}

func TestControlPlaneAlone(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	stack := startStack(ctx, t, env.Options{Without: []string{env.Velero, env.S3, env.Temporal}})
	require.Nil(t, stack.Component(env.Temporal))
	for _, kind := range []schema.GroupKind{
		{Group: "velero.io", Kind: "Backup"},
		{Group: "velero.io", Kind: "DataUpload"},
		{Group: "oadp.openshift.io", Kind: "NonAdminBackup"},
	} {
		_, err := stack.Client().RESTMapper().RESTMapping(kind)
		require.NoError(t, err)
	}
}

func TestStackThatCannotStartSaysWhyAndLeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real components")
	}
	dir := t.TempDir()
	_, err := env.Start(t.Context(), env.Options{
		Dir: dir, Without: []string{env.Velero}, Bin: map[string]string{tools.Etcd: "/bin/false"},
	})
	require.ErrorContains(t, err, "etcd ended before it was ready: exit status 1\nend of "+dir)
	require.Empty(t, processesOf(t, dir))
}

func takesBackup(ctx context.Context, t *testing.T, stack *env.Env) {
	backup := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "velero.io/v1", "kind": "Backup",
		"metadata": map[string]any{"namespace": env.OADPNamespace, "name": "plain"},
		"spec":     map[string]any{"includedNamespaces": []any{"team-a"}, "snapshotVolumes": false},
	}}
	require.NoError(t, stack.Client().Create(ctx, backup))
	eventually.Succeeds(t, 3*time.Minute, func() error {
		err := stack.Client().Get(ctx, client.ObjectKeyFromObject(backup), backup)
		if phase, _, _ := unstructured.NestedString(backup.Object, "status", "phase"); err == nil && phase != "Completed" {
			err = fmt.Errorf("not Completed: status %v", backup.Object["status"])
		}
		return err
	})

	objects, err := stack.Objects(stack.Storage().Prefix + "/backups/plain")
	require.NoError(t, err)
	keys := map[string]int64{}
	for _, object := range objects {
		keys[object.Key] = object.Size
	}
	require.Positive(t, keys["velero/backups/plain/plain.tar.gz"])
	require.Positive(t, keys["velero/backups/plain/velero-backup.json"])
}

func isolatesTenants(ctx context.Context, t *testing.T, stack *env.Env) {
	tenant := userClient(t, stack, "alice")
	var own, foreign corev1.ConfigMapList
	require.NoError(t, tenant.List(ctx, &own, client.InNamespace("team-a")))
	require.Len(t, own.Items, 5)
	require.ErrorContains(t, tenant.List(ctx, &foreign, client.InNamespace(env.OADPNamespace)), "forbidden")
}

func deletesNamespace(ctx context.Context, t *testing.T, stack *env.Env) {
	require.NoError(t, stack.CreateTenant(ctx, "short-lived", "bob"))
	require.NoError(t, stack.Seed(ctx, "short-lived", 3))
	namespace := &corev1.Namespace{}
	namespace.Name = "short-lived"
	require.NoError(t, stack.Client().Delete(ctx, namespace))
	eventually.Succeeds(t, 3*time.Minute, func() error {
		err := stack.Client().Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
		if err == nil {
			err = errors.New("the namespace is still there")
		}
		return client.IgnoreNotFound(err)
	})
}

func pausesAPIServer(ctx context.Context, t *testing.T, stack *env.Env) {
	server := stack.Component(env.KubeAPIServer)
	require.NoError(t, server.Pause())
	defer func() { require.NoError(t, server.Resume()) }() // what comes next needs it
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	require.Error(t, server.WaitReady(short))
	require.True(t, server.Running())
	require.NoError(t, server.Resume())
	require.NoError(t, server.WaitReady(ctx))
	require.NoError(t, stack.Client().List(ctx, &corev1.NamespaceList{}))
}

func restartsTemporal(ctx context.Context, t *testing.T, stack *env.Env) {
	name := "kept-over-restart"
	register := func() error {
		c, err := temporalclient.DialContext(ctx, temporalclient.Options{HostPort: stack.TemporalAddress()})
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.ExecuteWorkflow(ctx, temporalclient.StartWorkflowOptions{
			ID: name, TaskQueue: "nobody", WorkflowExecutionErrorWhenAlreadyStarted: true,
		}, "Nothing")
		return err
	}
	require.NoError(t, register())
	address := stack.TemporalAddress()
	require.NoError(t, stack.Component(env.Temporal).Restart(ctx))
	require.Equal(t, address, stack.TemporalAddress())
	require.ErrorContains(t, register(), "already")

	c, err := temporalclient.DialContext(ctx, temporalclient.Options{HostPort: address})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: "default"})
	require.NoError(t, err)
}

func killsVelero(ctx context.Context, t *testing.T, stack *env.Env) {
	velero := stack.Component(env.Velero)
	require.NoError(t, velero.Kill())
	require.False(t, velero.Running())
	require.NoError(t, velero.Restart(ctx))
	require.True(t, velero.Running())
}

func stopsClean(t *testing.T, stack *env.Env) {
	require.NoError(t, stack.Component(env.Etcd).Pause(), "a paused process must end too")
	require.NotEmpty(t, processesOf(t, stack.Dir()))
	stack.Stop()
	require.Empty(t, processesOf(t, stack.Dir()))
	require.NoDirExists(t, stack.Dir())
}

func userClient(t *testing.T, stack *env.Env, user string) client.Client {
	t.Helper()
	config, err := stack.RESTConfig(user)
	require.NoError(t, err)
	c, err := client.New(config, client.Options{})
	require.NoError(t, err)
	return c
}

// processesOf finds the processes, also grandchildren, whose environment or arguments name the folder.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("needs /proc")
	}
	folders, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	var found []string
	for _, folder := range folders {
		if folder == fmt.Sprintf("/proc/%d", os.Getpid()) {
			continue
		}
		arguments, _ := os.ReadFile(filepath.Join(folder, "cmdline"))
		environment, _ := os.ReadFile(filepath.Join(folder, "environ"))
		if strings.Contains(string(arguments)+string(environment), dir) {
			found = append(found, strings.ReplaceAll(string(arguments), "\x00", " "))
		}
	}
	return found
}
