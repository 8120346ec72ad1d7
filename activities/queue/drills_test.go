package queue_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/queue"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/workflows/contract"
)

// drill is one that waits for its turn.
func drill(name string, second int64) *holdfastv1alpha1.RestoreDrill {
	made := fake.Drill(name, "nightly")
	made.CreationTimestamp = metav1.Unix(second, 0)
	made.Status.Conditions = []metav1.Condition{{
		Type: holdfastv1alpha1.ConditionQueued, Status: metav1.ConditionFalse, Reason: holdfastv1alpha1.ReasonWaitingForTurn,
	}}
	return made
}

func restoreOf(of *holdfastv1alpha1.RestoreDrill, phase velerov1.RestorePhase) *velerov1.Restore {
	made := &velerov1.Restore{ObjectMeta: owner.DrillMeta(fake.Cluster, of, fake.OADPNamespace)}
	made.Status.Phase = phase
	return made
}

func TestDrillsWaitInTheLowestLaneOfRestores(t *testing.T) {
	started, works, done, gone := drill("started", 1), drill("works", 2), drill("done", 3), drill("gone", 4)
	now := metav1.Now()
	started.Status.Started = &now
	finds := &queue.Activities{
		Client: fake.New(t,
			drill("second", 20), drill("first", 10), fake.Drill("prepares", "nightly"), started,
			works, restoreOf(works, velerov1.RestorePhaseInProgress), // killed before its status said so
			restoreOf(done, velerov1.RestorePhaseCompleted), restoreOf(gone, velerov1.RestorePhaseNew),
		).Client,
		Policy: limited(policy.Queue{MaxActiveRestores: 2}), OADPNamespace: fake.OADPNamespace, ClusterID: fake.Cluster,
	}
	found, err := finds.Find(t.Context(), contract.TurnsWanted{Unknown: map[contract.Pool]bool{contract.PoolRestores: true}})
	require.NoError(t, err)
	pool := found.Pools[contract.PoolRestores]
	assert.Equal(t, "team/first@3 team/second@3", shown(pool.Waiting))
	assert.Equal(t, "team/works@3 team/gone@3", shown(pool.Active), "in the order in which Velero objects are listed")
	for _, member := range append(pool.Waiting, pool.Active...) {
		assert.Equal(t, contract.KindDrill, member.TurnKey.Kind())
	}
}
