package fdb_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
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

// A backup is aborted before its object goes, also in the middle of its first snapshot.
func TestDeletion(t *testing.T) {
	t.Parallel()
	needsStandIn(t)
	x := newTenant(t)
	database := x.cluster("short")
	require.NoError(t, sim.Control(database, func(c *simControl) { c.FirstSnapshot = time.Hour }))
	backup := x.backUp("short")
	x.await(backup, "in its first snapshot", state(fdbv1alpha1.ReasonInitialSnapshot))
	require.NoError(t, x.client.Delete(t.Context(), backup))
	x.awaitGone(backup)
	x.awaitEvent(backup, "Stopped")
	requireStopped(t, database, "default")
}

// A backup whose database is gone, or does not answer for long, does not hold its object; it says what it has left behind.
func TestDeletionWithoutADatabase(t *testing.T) {
	t.Parallel()
	needsStandIn(t)
	x := newTenant(t)
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

	database := x.cluster("deaf")
	deaf := x.backUp("deaf")
	x.await(deaf, "reconciled", reconciled)
	require.NoError(t, sim.Unreachable(database, true))
	require.NoError(t, x.client.Delete(t.Context(), deaf))
	x.awaitGone(deaf)
	assert.Contains(t, x.awaitEvent(deaf, "Abandoned"), "was not stopped")
}

// A namespace that is deleted does not hang on a backup, whether its database answers or not.
func TestDeletionOfTheNamespace(t *testing.T) {
	t.Parallel()
	needsStandIn(t)
	x := newTenant(t)
	x.cluster("tenant")
	x.await(x.backUp("tenant"), "reconciled", reconciled)
	deaf := x.cluster("deaf")
	x.await(x.backUp("deaf"), "reconciled", reconciled)
	require.NoError(t, sim.Unreachable(deaf, true))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: x.namespace}}
	require.NoError(t, admin.Delete(t.Context(), namespace))
	require.Eventually(t, func() bool {
		return apierrors.IsNotFound(admin.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace))
	}, patience, readEvery)
}
