package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	enumspb "go.temporal.io/api/enums/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// begins notes in which order Velero is handed Backups, and how many it has unfinished at most.
type begins struct {
	mutex      sync.Mutex
	unfinished map[string]bool
	most       int
	order      []client.ObjectKey // NonAdminBackups
}

// observe follows the Velero Backups of these namespaces until the test ends.
func (b *begins) observe(t *testing.T, namespaces ...string) {
	t.Helper()
	b.unfinished = map[string]bool{}
	note := func(made *velerov1.Backup) {
		if slices.Contains(namespaces, made.Annotations[oadpv1alpha1.NabOriginNamespaceAnnotation]) {
			b.note(made, velero.HoldsTurn(made.Status.Phase))
		}
	}
	follow := func() error { // until the API server ends the watch
		var all velerov1.BackupList
		if err := admin.List(t.Context(), &all, client.InNamespace(env.OADPNamespace)); err != nil {
			return err
		}
		slices.SortFunc(all.Items, func(x, y velerov1.Backup) int { return x.CreationTimestamp.Compare(y.CreationTimestamp.Time) })
		for i := range all.Items {
			note(&all.Items[i])
		}
		changes, err := admin.Watch(t.Context(), &velerov1.BackupList{}, client.InNamespace(env.OADPNamespace),
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: all.ResourceVersion}})
		if err != nil {
			return err
		}
		defer changes.Stop()
		for change := range changes.ResultChan() {
			if made, is := change.Object.(*velerov1.Backup); is {
				note(made)
			}
		}
		return nil
	}
	go func() {
		for t.Context().Err() == nil {
			if follow() != nil {
				time.Sleep(reread)
			}
		}
	}()
}

func (b *begins) note(made *velerov1.Backup, active bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	unfinished, known := b.unfinished[made.Name]
	if !known {
		b.order = append(b.order, client.ObjectKey{
			Namespace: made.Annotations[oadpv1alpha1.NabOriginNamespaceAnnotation],
			Name:      made.Annotations[oadpv1alpha1.NabOriginNameAnnotation],
		})
	}
	b.unfinished[made.Name] = active && (unfinished || !known) // Velero may take up one that it has finished, see repeated
	count := 0
	for _, is := range b.unfinished {
		if is {
			count++
		}
	}
	b.most = max(b.most, count)
}

func (b *begins) so() (order []client.ObjectKey, most int) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return slices.Clone(b.order), b.most
}

// await waits until Velero has been handed so many Backups.
func (b *begins) await(t *testing.T, many int) {
	t.Helper()
	eventually.IsTrue(t, patience, fmt.Sprintf("Velero has been handed %d Backups", many), func() bool {
		order, _ := b.so()
		return len(order) >= many
	})
}

func awaitQueue(t *testing.T, want string, ok func(contract.VeleroQueueState) bool) {
	t.Helper()
	awaitSuccess(t, func(ctx context.Context) error {
		answer, err := temporal.QueryWorkflow(ctx, contract.VeleroQueueID(stack.ClusterID()), "", contract.QueryState)
		if err != nil {
			return err
		}
		var state contract.VeleroQueueState
		if err := answer.Get(&state); err != nil {
			return err
		}
		if !ok(state) {
			return fmt.Errorf("not yet: %s, but %+v", want, state)
		}
		return nil
	})
}

// awaitWaiting waits until the queue has this object among those that wait for their turn.
func awaitWaiting(t *testing.T, of client.Object) {
	t.Helper()
	awaitQueue(t, "the queue has "+of.GetName(), func(state contract.VeleroQueueState) bool {
		return slices.ContainsFunc(state.Pools, func(pool contract.PoolShown) bool {
			return slices.ContainsFunc(pool.Waiting, func(waiting contract.TurnMember) bool { return waiting.UID == string(of.GetUID()) })
		})
	})
}

// Tenant A creates a crowd of backups, then B one by hand, and C a restore. Neither of them waits for A.
func TestACrowdIsNobodyElsesWait(t *testing.T) {
	crowd, limit := 30, 2
	if sample.Whole() {
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
	resume := pauseVelero(t) // whatever the machine: the crowd is there before its first backup has ended
	all := a.crowd("crowd", crowd)
	last := a.await(all[crowd-1], "waits for its turn", func(now *oadpv1alpha1.NonAdminBackup) bool {
		queued := condition(now, oadpv1alpha1.NonAdminConditionQueued)
		return queued != nil && queued.Reason == oadpv1alpha1.ReasonWaitingForTurn && now.Status.QueueInfo != nil &&
			now.Status.QueueInfo.EstimatedQueuePosition > 1
	})
	assert.Equal(t, oadpv1alpha1.NonAdminPhaseNew, last.Status.Phase)
	velero.await(t, limit)
	single := b.backUp("by-hand")
	awaitWaiting(t, single)
	restored := c.restore("while-others-wait", source.Name)
	resume()
	c.awaitRestore(restored, "Velero has restored it", func(now *restoring) bool {
		return now.Status.VeleroRestore != nil && now.Status.VeleroRestore.Status != nil &&
			now.Status.VeleroRestore.Status.Phase == velerov1.RestorePhaseCompleted
	})
	restoredIn := time.Since(begun)
	order, _ := velero.so()
	assert.Less(t, len(order), crowd, "the restore has not waited for the crowd")
	b.awaitAll([]*oadpv1alpha1.NonAdminBackup{single})
	order, _ = velero.so()
	at := slices.Index(order, client.ObjectKeyFromObject(single))
	require.NotEqual(t, -1, at, "Velero has been handed it: %v", order)
	assert.Less(t, at, 2*limit, "among the next %d that begin: %v", limit, order)
	a.awaitAll(all)
	inTurns := time.Since(begun)
	if sample.Whole() {
		lost := a.crowd("lost", 20)
		require.NoError(t, temporal.TerminateWorkflow(t.Context(), contract.VeleroQueueID(stack.ClusterID()), "", "lost"))
		a.awaitAll(lost)
		all = append(all, lost...)
	}
	order, most := velero.so()
	t.Logf("%d backups at most %d at a time in %s; the one of another tenant was number %d; a restore took %s",
		len(order), most, inTurns.Round(time.Second), at+1, restoredIn.Round(time.Second))
	assert.LessOrEqual(t, most, limit)
	assert.Len(t, order, len(all)+1, "each has one Velero Backup")

	b.operate()

	// Without a limit in the policy there is no queue, and nobody waits.
	setPolicy(t, nil)
	awaitSuccess(t, func(ctx context.Context) error {
		described, err := temporal.DescribeWorkflowExecution(ctx, contract.VeleroQueueID(stack.ClusterID()), "")
		if err == nil && described.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
			return errors.New("the queue has not ended")
		}
		return err
	})
	b.awaitVeleroPhase(b.backUp("afterwards"), velerov1.BackupPhaseCompleted)
	if sample.Whole() {
		begun = time.Now()
		a.awaitAll(a.crowd("at-once", crowd))
		t.Logf("%d backups without turns in %s: with turns it took %.2f times as long",
			crowd, time.Since(begun).Round(time.Second), inTurns.Seconds()/time.Since(begun).Seconds())
	}
}

// operate has an operator narrow the queue and let the last of some backups go first.
func (x *tenant) operate() {
	x.t.Helper()
	assert.Contains(x.t, holdfastAtTemporal(x.t, "queue", "set-limit", "1", "--for", "1h"), "1 at a time until")
	var velero begins
	velero.observe(x.t, x.namespace)
	resume := pauseVelero(x.t)
	all := x.crowd("operated", 20)
	last := all[len(all)-1]
	awaitWaiting(x.t, last)
	velero.await(x.t, 2) // the one by hand of before, and the first of these
	answer := holdfastAtTemporal(x.t, "queue", "next", last.Namespace+"/"+last.Name, "--reason", "before an upgrade")
	assert.Contains(x.t, answer, last.Name+" has ")
	resume()
	x.awaitAll(all)
	order, most := velero.so()
	assert.Equal(x.t, 1, most, "at a time")
	assert.Equal(x.t, 2, slices.Index(order, client.ObjectKeyFromObject(last)), "it is the next: %v", order)
}

// crowd creates so many backups.
func (x *tenant) crowd(name string, many int) (all []*oadpv1alpha1.NonAdminBackup) {
	x.t.Helper()
	for n := range many {
		all = append(all, x.backUp(fmt.Sprintf("%s-%03d", name, n)))
	}
	return all
}

// awaitAll waits until Velero has finished all of them.
func (x *tenant) awaitAll(all []*oadpv1alpha1.NonAdminBackup) {
	x.t.Helper()
	for _, nab := range all {
		x.awaitFor(20*time.Minute, nab, "Velero has finished it", func(now *oadpv1alpha1.NonAdminBackup) bool {
			return !velero.HoldsTurn(veleroPhase(now)) && veleroPhase(now) != ""
		})
	}
}
