package e2e_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// What an operator can do to a workflow in the Web UI while Velero works on its backup: the next resync, or the run that the
// reset has made, goes on as if nothing had happened. Not parallel: Velero is stopped.
func TestAWorkflowEndedByHandComesBack(t *testing.T) {
	actForVelero(t)
	started(t, stack.StartWatcher, "watcher-that-resyncs", "--resync-interval=2s")
	deeds := map[string]func(t *testing.T, id, run string) error{
		"terminated": func(t *testing.T, id, run string) error {
			return temporal.TerminateWorkflow(t.Context(), id, run, "by hand")
		},
		"cancelled": func(t *testing.T, id, run string) error { return temporal.CancelWorkflow(t.Context(), id, run) },
		"reset to its first task": func(t *testing.T, id, run string) error {
			tasks := completedTasks(t, id, run)
			return reset(t, id, run, tasks[0])
		},
		"reset to its last task": func(t *testing.T, id, run string) error {
			tasks := completedTasks(t, id, run)
			return reset(t, id, run, tasks[len(tasks)-1])
		},
	}
	for name, deed := range deeds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTenant(t, "dave")
			nab := x.created("disturbed")
			veleroSays(t, nab, velerov1.BackupPhaseInProgress)
			x.awaitVeleroPhase(nab, velerov1.BackupPhaseInProgress)
			run := latestRun(t, nab)
			require.NoError(t, deed(t, workflowID(nab), run))
			awaitSuccess(t, func(ctx context.Context) error {
				c := &doubts{}
				at, errAt := runStatus(ctx, nab, run)
				next, errNext := runStatus(ctx, nab, "")
				assert.NotEqual(c, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, at, "the run that was at work")
				assert.Equal(c, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, next, "its successor")
				return errors.Join(errAt, errNext, c.err())
			})

			veleroSays(t, nab, velerov1.BackupPhaseCompleted)
			done := x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted)
			assert.Equal(t, oadpv1alpha1.NonAdminPhaseCreated, done.Status.Phase)
			assert.Zero(t, done.Status.QueueInfo.EstimatedQueuePosition)
			assert.Len(t, veleroBackupsOf(t, x.namespace), 1, "exactly one Velero Backup")
			awaitEnd(t, nab)
		})
	}
	t.Run("reset after its end", func(t *testing.T) {
		t.Parallel()
		x := newTenant(t, "dave")
		nab := x.created("settled")
		veleroSays(t, nab, velerov1.BackupPhaseCompleted)
		x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted)
		awaitEnd(t, nab)
		settled, run := readAgain(t, nab), latestRun(t, nab)
		require.NoError(t, reset(t, workflowID(nab), run, completedTasks(t, workflowID(nab), run)[0]))
		require.NotEqual(t, run, latestRun(t, nab))
		awaitEnd(t, nab)
		assert.Equal(t, settled, readAgain(t, nab), "nothing was left to do")
	})
}

func runStatus(ctx context.Context, nab *oadpv1alpha1.NonAdminBackup, run string) (enumspb.WorkflowExecutionStatus, error) {
	described, err := temporal.DescribeWorkflowExecution(ctx, workflowID(nab), run)
	if err != nil {
		return enumspb.WORKFLOW_EXECUTION_STATUS_UNSPECIFIED, err
	}
	return described.WorkflowExecutionInfo.Status, nil
}

// completedTasks lists the events at which a run can be reset.
func completedTasks(t *testing.T, id, run string) []int64 {
	t.Helper()
	var tasks []int64
	for _, event := range historyOf(t, id, run) {
		if event.EventType == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			tasks = append(tasks, event.EventId)
		}
	}
	require.NotEmpty(t, tasks)
	return tasks
}

func reset(t *testing.T, id, run string, task int64) error {
	t.Helper()
	_, err := temporal.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace:         "default",
		WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: run},
		Reason:            "by hand", WorkflowTaskFinishEventId: task, RequestId: uuid.NewString(),
	})
	return err
}

// veleroExpires removes a Velero Backup with its data, as Velero does at the end of its TTL: what is only deleted comes back from the
// bucket within a minute.
func veleroExpires(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, admin.Create(t.Context(), &velerov1.DeleteBackupRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: env.OADPNamespace, Name: name + "-expired",
			Labels: map[string]string{velerov1.BackupNameLabel: name, velerov1.BackupUIDLabel: string(veleroBackup(t, name).UID)},
		},
		Spec: velerov1.DeleteBackupRequestSpec{BackupName: name},
	}))
	awaitAllGone(t, &velerov1.Backup{ObjectMeta: inOADP(name)})
}

// Velero's garbage collection deletes an expired Backup by a request of its own. Not parallel: the watcher is off.
func TestABackupThatExpiresUnseenIsReported(t *testing.T) {
	x := newTenant(t, "grace")
	nab := x.completed("expires")
	awaitEnd(t, nab)
	name := nab.Status.VeleroBackup.Name
	watcher := stack.Component(env.Watcher)
	require.NoError(t, watcher.Stop())
	t.Cleanup(func() {
		if !watcher.Running() {
			require.NoError(t, watcher.Restart(context.Background()))
		}
	})
	veleroExpires(t, name)
	assert.Equal(t, oadpv1alpha1.ReasonBackupAccepted,
		condition(readAgain(t, nab), oadpv1alpha1.NonAdminConditionAccepted).Reason, "nobody has seen it yet")

	require.NoError(t, watcher.Restart(t.Context()))
	x.awaitCondition(nab, oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.ReasonVeleroBackupNotFound)
	after := readAgain(t, nab)
	assert.Equal(t, oadpv1alpha1.NonAdminPhaseCreated, after.Status.Phase)
	assert.Zero(t, after.Status.QueueInfo.EstimatedQueuePosition)
	awaitEvent(t, nab, "VeleroBackupNotFound")
	awaitEnd(t, nab)
}
