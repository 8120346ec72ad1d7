package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// patience is how long the slowest ordinary step may take on a loaded machine: Velero backs up one after the other.
const patience = 180 * time.Second

// tenant acts in one namespace with nothing but its own rights.
type tenant struct {
	t         *testing.T
	namespace string
	client    client.Client
	// repeatable says that another tenant can take its place: see repeated.
	repeatable bool
}

func newTenant(t *testing.T, user string) *tenant {
	t.Helper()
	return newTenantIn(t, user, fmt.Sprintf("%s-%06x", user, rand.IntN(1<<24)))
}

func newTenantIn(t *testing.T, user, namespace string) *tenant {
	t.Helper()
	require.NoError(t, stack.CreateTenant(t.Context(), namespace, user))
	require.NoError(t, stack.Seed(t.Context(), namespace, 3))
	rights, err := clientFor(user)
	require.NoError(t, err)
	return &tenant{t: t, namespace: namespace, client: rights}
}

// change alters a NonAdminBackup before it is created.
type change func(*oadpv1alpha1.NonAdminBackup)

func withSpec(alter func(*velerov1.BackupSpec)) change {
	return func(nab *oadpv1alpha1.NonAdminBackup) { alter(nab.Spec.BackupSpec) }
}

// backUp creates a NonAdminBackup as the tenant.
func (x *tenant) backUp(name string, changes ...change) *oadpv1alpha1.NonAdminBackup {
	x.t.Helper()
	nab := &oadpv1alpha1.NonAdminBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name},
		Spec: oadpv1alpha1.NonAdminBackupSpec{BackupSpec: &velerov1.BackupSpec{
			SnapshotVolumes: ptr.To(false), DefaultVolumesToFsBackup: ptr.To(false),
		}},
	}
	for _, alter := range changes {
		alter(nab)
	}
	require.NoError(x.t, x.client.Create(x.t.Context(), nab))
	return nab
}

// await waits until the object is as wished and returns it.
func (x *tenant) await(
	nab *oadpv1alpha1.NonAdminBackup, action string, ok func(*oadpv1alpha1.NonAdminBackup) bool,
) *oadpv1alpha1.NonAdminBackup {
	x.t.Helper()
	return x.awaitFor(patience, nab, action, ok)
}

func (x *tenant) awaitFor(limit time.Duration, nab *oadpv1alpha1.NonAdminBackup, action string,
	ok func(*oadpv1alpha1.NonAdminBackup) bool,
) *oadpv1alpha1.NonAdminBackup {
	x.t.Helper()
	return awaitObject(x.t, admin, nab, limit, action, func(now *oadpv1alpha1.NonAdminBackup, there bool) bool { return there && ok(now) })
}

func (x *tenant) awaitCondition(
	nab *oadpv1alpha1.NonAdminBackup, kind oadpv1alpha1.NonAdminCondition, reason string,
) *metav1.Condition {
	x.t.Helper()
	seen := x.await(nab, string(kind)+" "+reason, func(now *oadpv1alpha1.NonAdminBackup) bool {
		found := condition(now, kind)
		return found != nil && found.Reason == reason
	})
	return condition(seen, kind)
}

func (x *tenant) awaitGone(nab *oadpv1alpha1.NonAdminBackup) {
	x.t.Helper()
	awaitObject(x.t, admin, nab, patience, "gone", func(_ *oadpv1alpha1.NonAdminBackup, there bool) bool { return !there })
}

// patch sends a JSON merge patch as the tenant.
func (x *tenant) patch(nab *oadpv1alpha1.NonAdminBackup, merge string) {
	x.t.Helper()
	require.NoError(x.t, x.client.Patch(x.t.Context(), nab.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(merge))))
}

func (x *tenant) delete(nab *oadpv1alpha1.NonAdminBackup) {
	x.t.Helper()
	require.NoError(x.t, x.client.Delete(x.t.Context(), nab.DeepCopy()))
}

func veleroPhase(nab *oadpv1alpha1.NonAdminBackup) velerov1.BackupPhase {
	if nab.Status.VeleroBackup == nil || nab.Status.VeleroBackup.Status == nil {
		return ""
	}
	return nab.Status.VeleroBackup.Status.Phase
}

func condition(nab *oadpv1alpha1.NonAdminBackup, kind oadpv1alpha1.NonAdminCondition) *metav1.Condition {
	return meta.FindStatusCondition(nab.Status.Conditions, string(kind))
}

// veleroBackup reads a Velero Backup as the administrator; nil if there is none.
func veleroBackup(t *testing.T, name string) *velerov1.Backup {
	t.Helper()
	found := &velerov1.Backup{}
	err := admin.Get(t.Context(), types.NamespacedName{Namespace: env.OADPNamespace, Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return found
}

// veleroBackupsOf lists the Velero Backups whose origin is an object of the namespace.
func veleroBackupsOf(t *testing.T, namespace string) []velerov1.Backup {
	t.Helper()
	var list velerov1.BackupList
	require.NoError(t, admin.List(t.Context(), &list, client.InNamespace(env.OADPNamespace)))
	var found []velerov1.Backup
	for _, item := range list.Items {
		if item.Annotations[oadpv1alpha1.NabOriginNamespaceAnnotation] == namespace {
			found = append(found, item)
		}
	}
	return found
}

// files counts the objects of a Velero Backup in the bucket.
func files(t *testing.T, name string) int {
	t.Helper()
	objects, err := stack.Objects("velero/backups/" + name + "/")
	require.NoError(t, err)
	return len(objects)
}
