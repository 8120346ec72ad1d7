package env

import (
	"testing"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestABackupThatVeleroHasTakenUpTwiceIsKnown(t *testing.T) {
	now := metav1.Now()
	for name, test := range map[string]struct {
		phase velerov1.BackupPhase
		end   *metav1.Time
		why   string
		twice bool
	}{
		"in progress":                 {phase: velerov1.BackupPhaseInProgress},
		"completed":                   {phase: velerov1.BackupPhaseCompleted, end: &now},
		"failed":                      {phase: velerov1.BackupPhaseFailed, end: &now, why: "the disk is full"},
		"in progress after its end":   {phase: velerov1.BackupPhaseInProgress, end: &now, twice: true},
		"failed, for its files exist": {phase: velerov1.BackupPhaseFailed, why: "backup already exists in object storage", twice: true},
	} {
		made := &velerov1.Backup{Status: velerov1.BackupStatus{Phase: test.phase, CompletionTimestamp: test.end, FailureReason: test.why}}
		require.Equal(t, test.twice, BackupTakenUpTwice(made), name)
	}
}
