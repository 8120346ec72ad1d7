package operations_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	temporalclient "go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// stopTimeout is what the worker gives to its activities.
const stopTimeout = 20 * time.Second

// SIGTERM in the midst of an activity: the worker takes no more work, finishes what it has, and ends with status 0.
func TestAWorkerFinishesItsActivityAndEnds(t *testing.T) {
	s := newScene(t, "stopped", temporalclient.Options{})
	worker := startWorker(t, s.cluster).ready()
	startWatcher(t, s.cluster).ready()
	nab := s.backUp("nightly")
	velero := s.awaitVelero(nab)
	described := s.describe(nab)
	assert.Equal(t, enumspb.VERSIONING_BEHAVIOR_UNSPECIFIED, described.WorkflowExecutionInfo.GetVersioningInfo().GetBehavior(),
		"workers are unversioned by default")

	// With the API server silent, the step that the signal asks for fails in its local form and hangs in the regular one.
	server := stack.Component(env.KubeAPIServer)
	require.NoError(t, server.Pause())
	t.Cleanup(func() { _ = server.Resume() })
	s.signal(nab)
	eventually.Succeeds(t, patience, func() error {
		described, err := s.description(nab)
		if err != nil {
			return err
		}
		pending := described.PendingActivities
		if len(pending) == 1 && pending[0].State == enumspb.PENDING_ACTIVITY_STATE_STARTED &&
			time.Since(pending[0].LastStartedTime.AsTime()) < time.Second { // so that it hangs for a while yet
			return nil
		}
		return fmt.Errorf("no activity has just begun: %v", pending)
	})
	worker.terminate()
	eventually.IsTrue(t, patience, "the signal arrives before the answer: else nothing is shown",
		func() bool { return strings.Contains(worker.output(), "worker stopping") })
	require.NoError(t, server.Resume())
	requireSooner(t, worker.awaitExit(), "it does not wait for what is not there")

	events := s.history(nab)
	scheduled, completed := lastOf(events, enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED), lastOf(events, enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED)
	require.NotNil(t, completed, "what ran at the signal is done: no other worker was there to do it")
	assert.Equal(t, scheduled.EventId, completed.GetActivityTaskCompletedEventAttributes().ScheduledEventId)

	startWorker(t, s.cluster).ready()
	s.complete(velero)
	s.awaitCompleted(nab)
	assert.Zero(t, count(s.history(nab), enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT))
}

// A worker with nothing to do does not use its grace.
func TestAnIdleWorkerEndsAtOnce(t *testing.T) {
	s := newScene(t, "idle", temporalclient.Options{})
	worker, watcher := startWorker(t, s.cluster).ready(), startWatcher(t, s.cluster).ready()
	for name, process := range map[string]*process{"worker": worker, "watcher": watcher} {
		process.terminate()
		requireSooner(t, process.awaitExit(), name)
	}
}

// requireSooner: a process has ended before its grace is over. On a busy machine that proves nothing.
func requireSooner(t *testing.T, took time.Duration, what string) {
	t.Helper()
	t.Logf("ended after %s, of %s: %s", took, stopTimeout, what)
	if sample.Whole() {
		assert.Less(t, took, stopTimeout, what)
	}
}

func lastOf(events []*historypb.HistoryEvent, kind enumspb.EventType) *historypb.HistoryEvent {
	var last *historypb.HistoryEvent
	for _, event := range events {
		if event.EventType == kind {
			last = event
		}
	}
	return last
}
