package tenants

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
)

const (
	// Patience is how long a test waits for what never comes.
	Patience = 8 * time.Minute
	// answerTime is how long a question may take that is asked again and again.
	answerTime = 10 * time.Second
)

// Namespace is a tenant's namespace in a stack.
type Namespace struct {
	*env.Env
	T    testing.TB
	Name string
	// Admin and Tenant are clients with the rights of those.
	Admin, Tenant client.Client
}

// Make makes a namespace for a tenant, with some ConfigMaps in it.
func Make(t testing.TB, stack *env.Env, name, tenant string, configMaps int) *Namespace {
	t.Helper()
	require.NoError(t, stack.CreateTenant(t.Context(), name, tenant))
	require.NoError(t, stack.Seed(t.Context(), name, configMaps))
	return Of(t, stack, name, tenant)
}

// Of is a tenant's namespace that exists.
func Of(t testing.TB, stack *env.Env, name, tenant string) *Namespace {
	t.Helper()
	n := &Namespace{Env: stack, T: t, Name: name}
	n.Admin, n.Tenant = n.clientOf(env.Admin), n.clientOf(tenant)
	return n
}

func (n *Namespace) clientOf(user string) client.Client {
	n.T.Helper()
	made, err := n.UserClient(user)
	require.NoError(n.T, err)
	return made
}

// Await is eventually.Succeeds for what is asked over the network.
func (n *Namespace) Await(try func(context.Context) error) {
	n.T.Helper()
	Await(n.T, try)
}

// Await is eventually.Succeeds for what is asked over the network.
func Await(t testing.TB, try func(context.Context) error) {
	t.Helper()
	eventually.Succeeds(t, Patience, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), answerTime)
		defer cancel()
		return try(ctx)
	})
}

// BackUp creates a NonAdminBackup without volumes, into a location of the tenant's unless that is empty.
func (n *Namespace) BackUp(name, location string) {
	n.T.Helper()
	n.BackUpWith(name, velerov1.BackupSpec{StorageLocation: location})
}

// BackUpWith creates a NonAdminBackup of that spec, without volumes.
func (n *Namespace) BackUpWith(name string, spec velerov1.BackupSpec) {
	n.T.Helper()
	spec.SnapshotVolumes, spec.DefaultVolumesToFsBackup = ptr.To(false), ptr.To(false)
	require.NoError(n.T, n.Tenant.Create(n.T.Context(), &oadpv1alpha1.NonAdminBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.Name, Name: name},
		Spec:       oadpv1alpha1.NonAdminBackupSpec{BackupSpec: &spec},
	}))
}

// AwaitEnd waits until the status of a backup says that Velero has completed it, or has failed it since it has taken it up twice,
// which is Velero's own fault.
func (n *Namespace) AwaitEnd(name string) (nab *oadpv1alpha1.NonAdminBackup) {
	n.T.Helper()
	n.Await(func(ctx context.Context) error {
		nab = &oadpv1alpha1.NonAdminBackup{}
		if err := n.Admin.Get(ctx, client.ObjectKey{Namespace: n.Name, Name: name}, nab); err != nil {
			return err
		}
		made := nab.Status.VeleroBackup
		if env.TakenUpTwice(made) || (made != nil && made.Status != nil && made.Status.Phase == velerov1.BackupPhaseCompleted) {
			return nil
		}
		return fmt.Errorf("%s/%s has not ended: %+v", n.Name, name, nab.Status)
	})
	return nab
}

// Made returns the Velero Backups that were made for the namespace's backups, by those backups' names.
func (n *Namespace) Made() map[string][]velerov1.Backup {
	n.T.Helper()
	var list velerov1.BackupList
	require.NoError(n.T, n.Admin.List(n.T.Context(), &list, client.InNamespace(env.OADPNamespace)))
	made := map[string][]velerov1.Backup{}
	for _, each := range list.Items {
		if each.Annotations[oadpv1alpha1.NabOriginNamespaceAnnotation] == n.Name {
			of := each.Annotations[oadpv1alpha1.NabOriginNameAnnotation]
			made[of] = append(made[of], each)
		}
	}
	return made
}

// ConfigMaps returns the data of the namespace's ConfigMaps, but for the one that Kubernetes puts there.
func (n *Namespace) ConfigMaps() map[string]map[string]string {
	n.T.Helper()
	var list corev1.ConfigMapList
	require.NoError(n.T, n.Tenant.List(n.T.Context(), &list, client.InNamespace(n.Name)))
	found := map[string]map[string]string{}
	for _, item := range list.Items {
		if item.Name != "kube-root-ca.crt" {
			found[item.Name] = item.Data
		}
	}
	return found
}

// RequestDeletion has a backup deleted with its data.
func (n *Namespace) RequestDeletion(name string) {
	n.T.Helper()
	nab := &oadpv1alpha1.NonAdminBackup{ObjectMeta: metav1.ObjectMeta{Namespace: n.Name, Name: name}}
	n.Await(func(ctx context.Context) error {
		return n.Tenant.Patch(ctx, nab, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"deleteBackup":true}}`)))
	})
}

// AwaitGone waits until there is no such backup.
func (n *Namespace) AwaitGone(name string) {
	n.T.Helper()
	n.Await(func(ctx context.Context) error {
		nab := &oadpv1alpha1.NonAdminBackup{}
		err := n.Admin.Get(ctx, client.ObjectKey{Namespace: n.Name, Name: name}, nab)
		if err == nil {
			err = fmt.Errorf("%s/%s is still there: %+v", n.Name, name, nab.Status)
		}
		return client.IgnoreNotFound(err)
	})
}

// AwaitNoOpenWorkflow waits until no workflow of the namespace is open: an object whose workflow is stuck would have one.
func (n *Namespace) AwaitNoOpenWorkflow() {
	n.T.Helper()
	temporal := Temporal(n.T, n.Env)
	n.Await(func(ctx context.Context) error {
		open, err := temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Query: fmt.Sprintf("HoldfastNamespace = '%s' AND ExecutionStatus = 'Running'", n.Name),
		})
		if err == nil && open.GetCount() > 0 {
			err = fmt.Errorf("%d workflows of namespace %s are open", open.GetCount(), n.Name)
		}
		return err
	})
}

// Temporal returns a client of a stack's Temporal.
func Temporal(t testing.TB, stack *env.Env) temporalclient.Client {
	t.Helper()
	options, err := stack.TemporalOptions()
	require.NoError(t, err)
	made, err := temporalclient.Dial(options)
	require.NoError(t, err)
	t.Cleanup(made.Close)
	return made
}
