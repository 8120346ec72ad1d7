package velero

import (
	"testing"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"holdfast.dev/holdfast/k8s/metrics"
)

func TestWhatVeleroDoesWithABackup(t *testing.T) {
	tests := map[metrics.State][]velerov1.BackupPhase{
		metrics.StateWaiting:    {"", "New", "Queued", "ReadyToStart"},
		metrics.StateInProgress: {"InProgress"},
		metrics.StateFinalizing: {
			"WaitingForPluginOperations", "WaitingForPluginOperationsPartiallyFailed", "Finalizing", "FinalizingPartiallyFailed",
		},
		metrics.StateDeleting: {"Deleting"},
		metrics.StateFinished: {"Completed", "PartiallyFailed", "Failed", "FailedValidation"},
		metrics.StateUnknown:  {"Pondering"},
	}
	assert.Len(t, tests, len(metrics.States))
	for state, phases := range tests {
		for _, phase := range phases {
			assert.Equal(t, state, veleroState(phase), "phase %q", phase)
		}
	}
}

func TestWhatVeleroDoesWithARestore(t *testing.T) {
	for state, phases := range map[metrics.State][]velerov1.RestorePhase{
		metrics.StateWaiting:    {"", "New"},
		metrics.StateInProgress: {"InProgress"},
		metrics.StateFinalizing: {
			"WaitingForPluginOperations", "WaitingForPluginOperationsPartiallyFailed", "Finalizing", "FinalizingPartiallyFailed",
		},
		metrics.StateFinished: {"Completed", "PartiallyFailed", "Failed", "FailedValidation"},
		metrics.StateUnknown:  {"Pondering"},
	} {
		for _, phase := range phases {
			assert.Equal(t, state, veleroRestoreState(phase), "phase %q", phase)
		}
	}
}
