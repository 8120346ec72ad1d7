package e2e_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/queue"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

// begins notes in which order Velero is handed Backups, and how many it has unfinished at most.
type begins struct {
	mutex      sync.Mutex
	unfinished map[string]bool
	most       int
	order      []string // namespaces
}

// observe follows the Velero Backups of these namespaces until the test ends.
func (b *begins) observe(t *testing.T, namespaces ...string) {
	t.Helper()
	b.unfinished = map[string]bool{}
	changes, err := admin.Watch(t.Context(), &velerov1.BackupList{}, client.InNamespace(env.OADPNamespace))
	require.NoError(t, err)
	t.Cleanup(changes.Stop)
	go func() {
		for change := range changes.ResultChan() {
			made, is := change.Object.(*velerov1.Backup)
			if !is || !slices.Contains(namespaces, made.Annotations[oadpv1alpha1.NabOriginNamespaceAnnotation]) {
				continue
			}
			b.note(made, queue.ActiveBackup(made.Status.Phase))
		}
	}()
}

func (b *begins) note(made *velerov1.Backup, active bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if _, known := b.unfinished[made.Name]; !known {
		b.order = append(b.order, made.Annotations[oadpv1alpha1.NabOriginNamespaceAnnotation])
	}
	b.unfinished[made.Name] = active
	count := 0
	for _, is := range b.unfinished {
		if is {
			count++
		}
	}
	b.most = max(b.most, count)
}

func (b *begins) so() (order []string, most int) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return slices.Clone(b.order), b.most
}

func awaitQueue(t *testing.T, want string, ok func(contract.VeleroQueueState) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		answer, err := temporal.QueryWorkflow(t.Context(), contract.VeleroQueueID(stack.ClusterID()), "", contract.QueryState)
		var state contract.VeleroQueueState
		return err == nil && answer.Get(&state) == nil && ok(state)
	}, patience, 100*time.Millisecond, want)
}

// Tenant A creates a crowd of backups, then B one by hand, and C a restore. Neither of them waits for A.
func TestACrowdIsNobodyElsesWait(t *testing.T) {
	crowd, limit := 30, 2
	if long() {
		crowd, limit = 200, 4
	}
	a, b, c := newTenant(t, "alice"), newTenant(t, "bob"), newTenant(t, "carol")
	source := c.completed("nightly")
	var velero begins
	velero.observe(t, a.namespace, b.namespace)
	setPolicy(t, map[string]string{"holdfast": fmt.Sprintf("queue: {maxActive: %d, maxActiveRestores: 1}", limit)})
	awaitQueue(t, "the queue has the policy's limit", func(state contract.VeleroQueueState) bool {
		return state.Rules.Limits[contract.PoolBackups] == limit
	})

	begun := time.Now()
	var all []*oadpv1alpha1.NonAdminBackup
	for n := range crowd {
		all = append(all, a.backUp(fmt.Sprintf("crowd-%03d", n)))
	}
	last := a.await(all[crowd-1], "waits for its turn", func(now *oadpv1alpha1.NonAdminBackup) bool {
		queued := condition(now, oadpv1alpha1.NonAdminConditionQueued)
		return queued != nil && queued.Reason == oadpv1alpha1.ReasonWaitingForTurn && now.Status.QueueInfo != nil &&
			now.Status.QueueInfo.EstimatedQueuePosition > 1
	})
	assert.Equal(t, oadpv1alpha1.NonAdminPhaseNew, last.Status.Phase)
	before, _ := velero.so()
	require.Less(t, len(before), crowd, "Velero is too fast for this test")
	single := b.backUp("by-hand")
	restored := c.restore("while-others-wait", source.Name)
	c.awaitRestore(restored, "Velero has restored it", func(now *restoring) bool {
		return now.Status.VeleroRestore != nil && now.Status.VeleroRestore.Status != nil &&
			now.Status.VeleroRestore.Status.Phase == velerov1.RestorePhaseCompleted
	})
	restoredIn := time.Since(begun)
	b.awaitVeleroPhase(single, velerov1.BackupPhaseCompleted)
	order, _ := velero.so()
	at := slices.Index(order, b.namespace)
	assert.LessOrEqual(t, at, len(before)+limit, "among the next %d that begin: %v", limit+1, order)
	if long() {
		require.NoError(t, temporal.TerminateWorkflow(t.Context(), contract.VeleroQueueID(stack.ClusterID()), "", "lost"))
	}
	for _, nab := range all {
		a.awaitFor(20*time.Minute, nab, "Velero has finished it", func(now *oadpv1alpha1.NonAdminBackup) bool {
			return !queue.ActiveBackup(veleroPhase(now)) && veleroPhase(now) != ""
		})
	}
	order, most := velero.so()
	t.Logf("%d backups at most %d at a time in %s; the one of another tenant was number %d after %d; a restore took %s",
		len(order), most, time.Since(begun).Round(time.Second), at+1, len(before), restoredIn.Round(time.Second))
	assert.LessOrEqual(t, most, limit)
	assert.Len(t, order, crowd+1, "each has one Velero Backup")

	// Without a limit in the policy there is no queue, and nobody waits.
	setPolicy(t, nil)
	require.Eventually(t, func() bool {
		described, err := temporal.DescribeWorkflowExecution(t.Context(), contract.VeleroQueueID(stack.ClusterID()), "")
		return err == nil && described.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	}, patience, 100*time.Millisecond, "the queue ends")
	b.awaitVeleroPhase(b.backUp("afterwards"), velerov1.BackupPhaseCompleted)
}
