package fdb_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	"holdfast.dev/holdfast/test/env"
)

// requireStopped: nothing runs on the tag any more.
func requireStopped(t *testing.T, database, tag string) {
	t.Helper()
	cluster, err := sim.State(database)
	require.NoError(t, err)
	for _, backup := range cluster.Backups {
		if backup.Tag == tag {
			assert.Equal(t, "Aborted", backup.State)
		}
	}
}

// data are the objects in the store whose path begins like this.
func (x *tenant) data(path string) []string {
	x.t.Helper()
	storage := stack.Storage()
	prefix := "data/" + x.namespace
	objects, err := stack.BucketObjects(env.Account{Bucket: bucket, Dir: filepath.Join(filepath.Dir(storage.Dir), bucket)}, prefix)
	require.NoError(x.t, err)
	var keys []string
	for _, object := range objects {
		if strings.HasPrefix(object.Key, prefix+"/"+path) {
			keys = append(keys, object.Key)
		}
	}
	return keys
}

// A backup is aborted before its object goes, also in the middle of its first snapshot, and its data go with it.
func TestDeletion(t *testing.T) {
	t.Parallel()
	x := newTenant(t)
	database := x.cluster("short")
	require.NoError(t, sim.Control(database, func(c *simControl) { c.FirstSnapshot = time.Hour }))
	backup := x.backUp("short")
	x.await(backup, "in its first snapshot", state(fdbv1alpha1.ReasonInitialSnapshot))
	require.NoError(t, x.client.Delete(t.Context(), backup))
	x.awaitGone(backup)
	x.awaitEvent(backup, "Stopped")
	requireStopped(t, database, "default")
	assert.Empty(t, x.data("short"))
}

// Every low-level backup of a deleted object goes, unless the user wants the data to stay.
func TestDeletionTakesTheDataAlong(t *testing.T) { onBothIfLong(t, deletionTakesTheDataAlong) }

func deletionTakesTheDataAlong(t *testing.T, x *tenant) {
	x.cluster("all")
	x.cluster("stays")
	backup := x.backUp("all")
	stays := x.backUp("stays", func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.Expiry.DeletionFinalizer = ptr.To(false) })
	x.await(backup, "reconciled", reconciled)
	x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.Tag = "second" })
	x.await(backup, "two backups", func(o *fdbv1alpha1.FoundationDBBackup) bool { return reconciled(o) && len(o.Status.Backups) == 2 })
	x.await(stays, "reconciled", reconciled)
	require.NotEmpty(t, x.data("all"))
	for _, object := range []*fdbv1alpha1.FoundationDBBackup{backup, stays} {
		require.NoError(t, x.client.Delete(t.Context(), object.DeepCopy()))
	}
	x.awaitGone(backup)
	x.awaitGone(stays)
	x.awaitEvent(backup, fdbv1alpha1.ExpiryDeleted)
	assert.Empty(t, x.data("all"))
	assert.NotEmpty(t, x.data("stays"))
}

// Data that another resource uses too stay until the last of them is deleted.
func TestDataThatOthersUseStay(t *testing.T) { onBothIfLong(t, dataThatOthersUseStay) }

func dataThatOthersUseStay(t *testing.T, x *tenant) {
	y := newTenant(t)
	x.cluster("both")
	require.NoError(t, stack.CreateFDBCluster(t.Context(), y.namespace, "both", x.version(), x.connection("both")))
	path := func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.Destination.Path = x.namespace + "/common" }
	one := x.backUp("both", path)
	x.await(one, "reconciled", reconciled)
	other := y.backUp("both", path)
	y.await(other, "reconciled", reconciled)
	require.NoError(t, x.client.Delete(t.Context(), one.DeepCopy()))
	x.awaitGone(one)
	note := x.awaitEvent(one, fdbv1alpha1.ExpiryKept)
	assert.NotContains(t, note, y.namespace, "what is in another namespace is not told")
	assert.NotEmpty(t, x.data("common"))
	require.NoError(t, y.client.Delete(t.Context(), other.DeepCopy()))
	y.awaitGone(other)
	assert.Empty(t, x.data("common"))
}

// A backup whose database is gone, or does not answer for long, does not hold its object; it says what it has left behind, and
// deletes the data.
func TestDeletionWithoutADatabase(t *testing.T) { onBothIfLong(t, deletionWithoutADatabase) }

func deletionWithoutADatabase(t *testing.T, x *tenant) {
	t.Run("gone", func(t *testing.T) {
		t.Parallel()
		x := x.in(t)
		x.cluster("gone")
		backup := x.backUp("gone")
		x.await(backup, "reconciled", reconciled)
		require.NoError(t, admin.Delete(t.Context(), &foundationdbv1beta2.FoundationDBCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "gone"},
		}))
		x.await(backup, "cluster missing", misconfigured(fdbv1alpha1.ReasonClusterMissing))
		require.NoError(t, x.client.Delete(t.Context(), backup))
		x.awaitGone(backup)
		assert.Contains(t, x.awaitEvent(backup, "Abandoned"), "is gone")
		x.awaitEvent(backup, fdbv1alpha1.ExpiryDeleted)
	})
	t.Run("deaf", func(t *testing.T) {
		t.Parallel()
		x := x.in(t)
		x.cluster("deaf")
		deaf := x.backUp("deaf")
		x.await(deaf, "reconciled", reconciled)
		x.awaitInspected(deaf)
		x.unreachable("deaf", true)
		require.NoError(t, x.client.Delete(t.Context(), deaf))
		x.awaitGone(deaf)
		assert.Contains(t, x.awaitEvent(deaf, "Abandoned"), "was not stopped")
	})
}

// A namespace that is deleted does not hang on a backup, whether its database answers or not. Its data stay, and are named.
func TestDeletionOfTheNamespace(t *testing.T) { onBothIfLong(t, deletionOfTheNamespace) }

func deletionOfTheNamespace(t *testing.T, x *tenant) {
	x.cluster("tenant")
	x.cluster("deaf")
	answering, silent := x.backUp("tenant"), x.backUp("deaf")
	backup := x.await(answering, "reconciled", reconciled)
	x.await(silent, "reconciled", reconciled)
	x.awaitInspected(silent)
	x.unreachable("deaf", true)
	x.kubectlAsAdmin("delete", "namespace", x.namespace, "--wait=false")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: x.namespace}}
	x.awaitNone(admin, namespace, &corev1.Namespace{})
	assert.NotEmpty(t, x.data("tenant"))
	url := backup.Status.Backups[0].URL
	assert.True(t, metric(t, `holdfast_foundationdbbackup_data_left_total{url="`+url+`"} `), "the metric names %s", url)
}
