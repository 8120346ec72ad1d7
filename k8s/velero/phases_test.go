package velero_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/k8s/velero"
)

// facts are what a phase means. Of Backups alone, running; of Restores alone, writing.
type facts struct {
	state                            velero.State
	turn, usable, unwritten, written bool
	running, writing                 bool
	position                         int // whatever others there are; -1: it depends on them
}

// The phases after 1.18 are written by hand: no Velero has them yet.
func TestWhatAPhaseMeans(t *testing.T) {
	waits := facts{state: velero.StateWaiting, turn: true, unwritten: true, position: -1}
	next := waits
	next.running = true
	finalizing := facts{state: velero.StateFinalizing, turn: true, written: true, running: true}
	writing := finalizing
	writing.writing = true
	cancelling := writing
	cancelling.unwritten, cancelling.written = true, false
	ended := facts{state: velero.StateFinished, written: true}
	usable := ended
	usable.usable = true
	tests := map[velerov1.BackupPhase]facts{
		"": waits, "New": waits, "Queued": waits, "ReadyToStart": next,
		"InProgress":                 {state: velero.StateInProgress, turn: true, unwritten: true, running: true, writing: true, position: 1},
		"WaitingForPluginOperations": finalizing, "WaitingForPluginOperationsPartiallyFailed": finalizing,
		"Finalizing": writing, "FinalizingPartiallyFailed": writing, "Cancelling": cancelling, "Canceling": cancelling,
		"Deleting":         {state: velero.StateDeleting, written: true},
		"FailedValidation": {state: velero.StateFinished},
		"Completed":        usable, "PartiallyFailed": usable, "Failed": ended, "Cancelled": ended, "Canceled": ended,
		"OfTomorrow": {state: velero.StateUnknown, turn: true, position: -1},
	}
	states := map[velero.State]bool{}
	for phase, want := range tests {
		position, known := velero.Position(phase)
		if !known {
			position = -1
		}
		assert.Equal(t, want, facts{
			velero.StateOf(phase), velero.HoldsTurn(phase), velero.Usable(phase), velero.Unwritten(phase), velero.Written(phase),
			velero.Running(phase), velero.Writing(velerov1.RestorePhase(phase)), position,
		}, "phase %q", phase)
		assert.Equal(t, want.state == velero.StateFinished, velero.Finished(string(phase)), "phase %q", phase)
		states[want.state] = true
	}
	assert.Len(t, states, len(velero.States))
}

func TestWhatVeleroHasNotBegunIsUnstarted(t *testing.T) {
	want := map[velerov1.BackupPhase]bool{"": true, "New": true, "Queued": true, "FailedValidation": true}
	for _, phase := range []velerov1.BackupPhase{
		"", "New", "Queued", "ReadyToStart", "InProgress", "WaitingForPluginOperations", "Finalizing", "FailedValidation",
		"Completed", "PartiallyFailed", "Failed", "Deleting", "Cancelled", "OfANewerVelero",
	} {
		t.Run(string(phase), func(t *testing.T) {
			assert.Equal(t, want[phase], velero.Unstarted(&velerov1.BackupStatus{Phase: phase}))
			assert.False(t, velero.Unstarted(&velerov1.BackupStatus{Phase: phase, StartTimestamp: &metav1.Time{}}), "it has begun")
		})
	}
}
