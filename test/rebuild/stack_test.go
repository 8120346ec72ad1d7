// Package rebuild_test shows what happens to backups when a cluster is rebuilt over the same buckets, and what the garbage
// collection takes and leaves, on a stack of its own.
package rebuild_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	temporalclient "go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	patience = 3 * time.Minute
	// answerTime is how long a question may take that is asked again and again.
	answerTime = 10 * time.Second
)

// rig is a running stack and those who use it.
type rig struct {
	*env.Env
	t        *testing.T
	admin    client.Client
	temporal temporalclient.Client
}

func newRig(t *testing.T) *rig {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real components")
	}
	ctrllog.SetLogger(logr.Discard())
	stack, err := env.Start(t.Context(), env.Options{
		Progress: os.Stdout, Holdfast: true,
		WorkerArgs: []string{"--garbage-collection-grace=0s"},
		VeleroArgs: []string{"--concurrent-backups=4"},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			var logs bytes.Buffer
			stack.DumpLogs(&logs, 15)
			t.Log(logs.String())
		}
		stack.Stop()
	})
	r := &rig{Env: stack, t: t}
	r.admin = r.clientFor(env.Admin)
	r.temporal, err = temporalclient.Dial(temporalclient.Options{HostPort: stack.TemporalAddress()})
	require.NoError(t, err)
	t.Cleanup(r.temporal.Close)
	return r
}

func (r *rig) clientFor(user string) client.Client {
	r.t.Helper()
	config, err := r.RESTConfig(user)
	require.NoError(r.t, err)
	made, err := client.New(config, client.Options{Scheme: k8s.Scheme()})
	require.NoError(r.t, err)
	return made
}

// policy writes the administrator's policy.
func (r *rig) policy(content string) {
	r.t.Helper()
	require.NoError(r.t, r.admin.Create(r.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: "holdfast-policy"},
		Data:       map[string]string{"nonAdmin": content},
	}))
}

// start starts a workflow of periodic work now, beside what the Schedules start.
func (r *rig) start(workflow string, input any) temporalclient.WorkflowRun {
	r.t.Helper()
	started, err := r.temporal.ExecuteWorkflow(r.t.Context(), temporalclient.StartWorkflowOptions{
		ID: fmt.Sprintf("by-hand-%08x", rand.Uint32()), TaskQueue: contract.TaskQueue(r.ClusterID()),
	}, workflow, input)
	require.NoError(r.t, err)
	return started
}

// run is start, and returns what the workflow does.
func run[Out any](r *rig, workflow string, input any) Out {
	r.t.Helper()
	started := r.start(workflow, input)
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*patience)
	defer cancel()
	var out Out
	require.NoError(r.t, started.Get(ctx, &out))
	return out
}

// awaitSuccess is eventually.Succeeds for what is asked over the network, with patience.
func (r *rig) awaitSuccess(try func(context.Context) error) {
	r.t.Helper()
	eventually.Succeeds(r.t, patience, func() error {
		ctx, cancel := context.WithTimeout(r.t.Context(), answerTime)
		defer cancel()
		return try(ctx)
	})
}

// backUp creates a NonAdminBackup as alice and waits until Velero has completed it. If Velero has taken it up twice (see
// env.TakenUpTwice), it makes another in its place, and nothing of the first stays in the bucket.
func (r *rig) backUp(as client.Client, namespace, name, location string) *oadpv1alpha1.NonAdminBackup {
	r.t.Helper()
	for range 3 {
		nab := &oadpv1alpha1.NonAdminBackup{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: oadpv1alpha1.NonAdminBackupSpec{BackupSpec: &velerov1.BackupSpec{
				SnapshotVolumes: ptr.To(false), DefaultVolumesToFsBackup: ptr.To(false), StorageLocation: location,
			}},
		}
		require.NoError(r.t, as.Create(r.t.Context(), nab))
		seen, twice := r.awaitEnd(namespace, name)
		if !twice {
			return seen
		}
		r.t.Logf("Velero has taken up %s twice: another backup instead", seen.Status.VeleroBackup.Name)
		deletion := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"deleteBackup":true}}`))
		require.NoError(r.t, as.Patch(r.t.Context(), nab, deletion))
		r.awaitSuccess(func(ctx context.Context) error {
			err := r.admin.Get(ctx, client.ObjectKeyFromObject(nab), nab)
			if err == nil {
				err = fmt.Errorf("%s/%s is still there: %+v", namespace, name, nab.Status)
			}
			return client.IgnoreNotFound(err)
		})
	}
	require.Fail(r.t, "taken up twice by Velero, three times", "%s/%s", namespace, name)
	return nil
}

// awaitCompleted waits for a backup that Velero made before.
func (r *rig) awaitCompleted(namespace, name string) *oadpv1alpha1.NonAdminBackup {
	r.t.Helper()
	seen, twice := r.awaitEnd(namespace, name)
	require.False(r.t, twice, "%s/%s: %+v", namespace, name, seen.Status)
	return seen
}

// awaitEnd waits until a backup is Completed, or until Velero has failed it since it has taken it up twice.
func (r *rig) awaitEnd(namespace, name string) (seen *oadpv1alpha1.NonAdminBackup, twice bool) {
	r.t.Helper()
	seen = &oadpv1alpha1.NonAdminBackup{}
	r.awaitSuccess(func(ctx context.Context) error {
		if err := r.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, seen); err != nil {
			return err
		}
		made := seen.Status.VeleroBackup
		if twice = env.TakenUpTwice(made); twice {
			return nil
		}
		if made == nil || made.Status == nil || made.Status.Phase != velerov1.BackupPhaseCompleted {
			return fmt.Errorf("%s/%s is not Completed: %+v", namespace, name, seen.Status)
		}
		backup := &velerov1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: made.Name}}
		if err := r.admin.Get(ctx, client.ObjectKeyFromObject(backup), backup); err != nil {
			return err
		}
		if env.BackupTakenUpTwice(backup) {
			return fmt.Errorf("Velero has taken up %s again", made.Name) // and fails it
		}
		return nil
	})
	return seen, twice
}

// configMaps returns the data of a namespace's ConfigMaps, but for the one that Kubernetes puts there.
func (r *rig) configMaps(namespace string) map[string]map[string]string {
	r.t.Helper()
	var list corev1.ConfigMapList
	require.NoError(r.t, r.admin.List(r.t.Context(), &list, client.InNamespace(namespace)))
	found := map[string]map[string]string{}
	for _, item := range list.Items {
		if item.Name != "kube-root-ca.crt" {
			found[item.Name] = item.Data
		}
	}
	return found
}
