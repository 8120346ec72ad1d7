// Package production_test runs Holdfast with Temporal as it is run in production: its server's four services, history twice, on
// PostgreSQL. Without PostgreSQL the tests say so, and are skipped.
package production_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/env/temporalserver"
)

const (
	patience = 8 * time.Minute
	// answerTime is how long a question may take that is asked again and again.
	answerTime = 10 * time.Second
	tenant     = "alice"
)

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

// rig is a stack, those who use it, and a namespace of one test.
type rig struct {
	*env.Env
	t         *testing.T
	admin     client.Client
	tenant    client.Client
	namespace string
}

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

// onSharedStack returns the shared stack, with a namespace of the test's own.
func onSharedStack(t *testing.T, namespace string) *rig {
	t.Helper()
	needsPostgres(t)
	shared.once.Do(func() {
		shared.env, shared.err = env.Start(t.Context(), env.Options{
			Progress: os.Stdout, Holdfast: true, TemporalServer: true, VeleroArgs: []string{"--concurrent-backups=4"},
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
	r := &rig{Env: stack, t: t, namespace: namespace}
	require.NoError(t, r.CreateTenant(t.Context(), namespace, tenant))
	require.NoError(t, r.Seed(t.Context(), namespace, 3))
	r.admin, r.tenant = r.clientOf(env.Admin), r.clientOf(tenant)
	return r
}

func (r *rig) clientOf(user string) client.Client {
	r.t.Helper()
	made, err := r.UserClient(user)
	require.NoError(r.t, err)
	return made
}

// await is eventually.Succeeds for what is asked over the network, with patience.
func (r *rig) await(try func(context.Context) error) {
	r.t.Helper()
	eventually.Succeeds(r.t, patience, func() error {
		ctx, cancel := context.WithTimeout(r.t.Context(), answerTime)
		defer cancel()
		return try(ctx)
	})
}

func numbered(prefix string, n int) string { return fmt.Sprintf("%s-%d", prefix, n) }

// create creates a NonAdminBackup as the tenant.
func (r *rig) create(name string) {
	r.t.Helper()
	require.NoError(r.t, r.tenant.Create(r.t.Context(), &oadpv1alpha1.NonAdminBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name},
		Spec: oadpv1alpha1.NonAdminBackupSpec{BackupSpec: &velerov1.BackupSpec{
			SnapshotVolumes: ptr.To(false), DefaultVolumesToFsBackup: ptr.To(false),
		}},
	}))
}

// awaitEnd waits until the status of a backup says that Velero has completed it, or has failed it since it has taken it up twice,
// which is Velero's own fault.
func (r *rig) awaitEnd(name string) {
	r.t.Helper()
	r.await(func(ctx context.Context) error {
		nab := &oadpv1alpha1.NonAdminBackup{}
		if err := r.admin.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, nab); err != nil {
			return err
		}
		made := nab.Status.VeleroBackup
		if env.TakenUpTwice(made) || (made != nil && made.Status != nil && made.Status.Phase == velerov1.BackupPhaseCompleted) {
			return nil
		}
		return fmt.Errorf("%s/%s has not ended: %+v", r.namespace, name, nab.Status)
	})
}

// requestDeletion has a backup deleted with its data.
func (r *rig) requestDeletion(name string) {
	r.t.Helper()
	nab := &oadpv1alpha1.NonAdminBackup{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name}}
	r.await(func(ctx context.Context) error {
		return r.tenant.Patch(ctx, nab, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"deleteBackup":true}}`)))
	})
}

// remove is requestDeletion, and waits until the backup is gone.
func (r *rig) remove(name string) {
	r.t.Helper()
	r.requestDeletion(name)
	r.awaitGone(name)
}

func (r *rig) awaitGone(name string) {
	r.t.Helper()
	r.await(func(ctx context.Context) error {
		nab := &oadpv1alpha1.NonAdminBackup{}
		err := r.admin.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, nab)
		if err == nil {
			err = fmt.Errorf("%s/%s is still there: %+v", r.namespace, name, nab.Status)
		}
		return client.IgnoreNotFound(err)
	})
}

// made returns the Velero Backups made for the namespace's backups, by the backups' names.
func (r *rig) made() map[string][]velerov1.Backup {
	r.t.Helper()
	var list velerov1.BackupList
	require.NoError(r.t, r.admin.List(r.t.Context(), &list, client.InNamespace(env.OADPNamespace)))
	made := map[string][]velerov1.Backup{}
	for _, each := range list.Items {
		if each.Annotations[oadpv1alpha1.NabOriginNamespaceAnnotation] == r.namespace {
			of := each.Annotations[oadpv1alpha1.NabOriginNameAnnotation]
			made[of] = append(made[of], each)
		}
	}
	return made
}

// awaitNoOpenWorkflow waits until no workflow of the namespace is open: an object whose workflow is stuck would have one.
func (r *rig) awaitNoOpenWorkflow() {
	r.t.Helper()
	options, err := r.TemporalOptions()
	require.NoError(r.t, err)
	temporal, err := temporalclient.Dial(options)
	require.NoError(r.t, err)
	defer temporal.Close()
	r.await(func(ctx context.Context) error {
		open, err := temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: options.Namespace, Query: fmt.Sprintf("HoldfastNamespace = '%s' AND ExecutionStatus = 'Running'", r.namespace),
		})
		if err == nil && open.GetCount() > 0 {
			err = fmt.Errorf("%d workflows of namespace %s are open", open.GetCount(), r.namespace)
		}
		return err
	})
}
