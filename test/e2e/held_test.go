package e2e_test

import (
	"context"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

// A worker whose patches are held up on their way to the API server. Not parallel: it is the only worker, and Velero is stopped.
func TestAPatchOnItsWay(t *testing.T) {
	actForVelero(t)
	require.NoError(t, stack.Component(env.Worker).Stop())
	t.Cleanup(func() { require.NoError(t, stack.Component(env.Worker).Restart(context.Background())) })
	way := newDetour(t, env.HoldfastWorker)
	worker := started(t, stack.StartWorker, "worker-on-detour", "--kubeconfig="+way.kubeconfig)
	x := newTenant(t, "carol")
	inProgress := `"phase":"` + string(velerov1.BackupPhaseInProgress) + `"`

	t.Run("arrives after a newer status", func(t *testing.T) {
		nab := x.created("late")
		late := way.holdStatus(nab, inProgress)
		veleroSays(t, nab, velerov1.BackupPhaseInProgress)
		late.await(t)
		veleroSays(t, nab, velerov1.BackupPhaseCompleted)
		x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted) // by a later attempt
		awaitEnd(t, nab)
		newest := readAgain(t, nab)

		close(late.letGo)
		assert.Equal(t, http.StatusConflict, late.answered(t))
		assert.Equal(t, newest, readAgain(t, nab))
	})
	t.Run("reaches an API server that stands still", func(t *testing.T) {
		nab := x.created("in-flight")
		api := stack.Component(env.KubeAPIServer)
		old := way.holdStatus(nab, inProgress)
		veleroSays(t, nab, velerov1.BackupPhaseInProgress)
		old.await(t)
		veleroSays(t, nab, velerov1.BackupPhaseCompleted)
		require.NoError(t, api.Pause())
		t.Cleanup(func() { _ = api.Resume() })
		close(old.letGo)
		way.awaitRequest(t, nab) // the attempt has timed out, and another joins the patch in the server's queue
		require.NoError(t, api.Resume())
		old.answered(t) // in time or not
		x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted)
		awaitEnd(t, nab)
		assert.Equal(t, velerov1.BackupPhaseCompleted, veleroPhase(readAgain(t, nab)))
	})
	t.Run("is the last of a workflow that 100 signals reach meanwhile", func(t *testing.T) {
		nab := x.created("stormy")
		last := way.holdStatus(nab, `"phase":"`+string(velerov1.BackupPhaseCompleted)+`"`)
		veleroSays(t, nab, velerov1.BackupPhaseCompleted)
		last.await(t)
		storm(t, nab, 100) // Temporal has taken them all before the activity ends
		close(last.letGo)
		x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted)
		awaitEnd(t, nab)
		checkEverySignalSeen(t, nab, 100)
		log, err := os.ReadFile(worker.LogPath())
		require.NoError(t, err)
		assert.NotContains(t, string(log), "Workflow has unhandled signals", "by the SDK at the end of a run")
	})
}

func readAgain(t *testing.T, nab *oadpv1alpha1.NonAdminBackup) *oadpv1alpha1.NonAdminBackup {
	t.Helper()
	now := &oadpv1alpha1.NonAdminBackup{}
	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(nab), now))
	return now
}

const stormy = "storm"

// storm sends signals until the object's workflow has been sent that many.
func storm(t *testing.T, nab *oadpv1alpha1.NonAdminBackup, count int) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(20)
	for range count {
		group.Go(func() error {
			return temporal.SignalWorkflow(ctx, workflowID(nab), "", contract.SignalChanged, contract.Changed{Reason: stormy})
		})
	}
	require.NoError(t, group.Wait())
}

// checkEverySignalSeen: the history has them all, each before the last completed workflow task began: its run had it at hand.
func checkEverySignalSeen(t *testing.T, nab *oadpv1alpha1.NonAdminBackup, count int) {
	t.Helper()
	seen := 0
	for _, run := range runsOf(t, workflowID(nab)) {
		lastRead := int64(0)
		var signals []int64
		for _, event := range historyOf(t, workflowID(nab), run) {
			switch event.EventType {
			case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
				signals = append(signals, event.EventId)
				var changed contract.Changed
				input := event.GetWorkflowExecutionSignaledEventAttributes().Input
				require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(input, &changed))
				if changed.Reason == stormy {
					seen++
				}
			case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
				lastRead = event.GetWorkflowTaskCompletedEventAttributes().StartedEventId
			}
		}
		for _, id := range signals {
			assert.Less(t, id, lastRead, "run %s ended without signal %d", run, id)
		}
	}
	assert.Equal(t, count, seen)
}

func historyOf(t *testing.T, id, run string) []*historypb.HistoryEvent {
	t.Helper()
	var history []*historypb.HistoryEvent
	events := temporal.GetWorkflowHistory(t.Context(), id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		history = append(history, event)
	}
	return history
}
