package backup

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

func TestAPhaseNeverGoesBack(t *testing.T) {
	phases := []oadpv1alpha1.NonAdminPhase{"", "New", "BackingOff", "Created", "Deleting"}
	for from := range phases {
		for to := range phases {
			t.Run(fmt.Sprintf("from %q to %q", phases[from], phases[to]), func(t *testing.T) {
				nab := &oadpv1alpha1.NonAdminBackup{Status: oadpv1alpha1.NonAdminBackupStatus{Phase: phases[from]}}
				advance(nab, phases[to])
				assert.Equal(t, phases[max(from, to)], nab.Status.Phase)
			})
		}
	}
}

func TestPhasesOfAVeleroBackup(t *testing.T) {
	tests := map[velerov1.BackupPhase]struct{ finished, passed, running bool }{
		"":                           {},
		"New":                        {},
		"Queued":                     {},
		"ReadyToStart":               {running: true},
		"InProgress":                 {running: true},
		"WaitingForPluginOperations": {passed: true, running: true},
		"WaitingForPluginOperationsPartiallyFailed": {passed: true, running: true},
		"Finalizing":                {passed: true, running: true},
		"FinalizingPartiallyFailed": {passed: true, running: true},
		"Deleting":                  {passed: true},
		"FailedValidation":          {finished: true},
		"Completed":                 {finished: true},
		"PartiallyFailed":           {finished: true},
		"Failed":                    {finished: true},
		"Cancelling":                {passed: true, running: true},
		"Cancelled":                 {finished: true},
		"OfANewerVelero":            {},
	}
	for phase, want := range tests {
		t.Run(string(phase), func(t *testing.T) {
			assert.Equal(t, want.finished, Finished(phase), "finished")
			assert.Equal(t, want.passed, movedPast(phase), "moved past")
			assert.Equal(t, want.running, running(phase), "running")
		})
	}
}

func TestWhatVeleroHasNotBegunIsUnstarted(t *testing.T) {
	want := map[velerov1.BackupPhase]bool{"": true, "New": true, "Queued": true, "FailedValidation": true}
	for _, phase := range []velerov1.BackupPhase{
		"", "New", "Queued", "ReadyToStart", "InProgress", "WaitingForPluginOperations", "Finalizing", "FailedValidation",
		"Completed", "PartiallyFailed", "Failed", "Deleting", "Cancelled", "OfANewerVelero",
	} {
		t.Run(string(phase), func(t *testing.T) {
			assert.Equal(t, want[phase], unstarted(&velerov1.BackupStatus{Phase: phase}))
			assert.False(t, unstarted(&velerov1.BackupStatus{Phase: phase, StartTimestamp: &metav1.Time{}}), "it has begun")
		})
	}
}

func TestTheNumberOfARequestIsReadFromItsName(t *testing.T) {
	tests := map[string]struct {
		name string
		want int
	}{
		"the first":                        {"b-1", 1},
		"a later one":                      {"b-12", 12},
		"zero":                             {"b-0", 0},
		"a negative number":                {"b--1", 0},
		"a number and more":                {"b-1-2", 0},
		"a random suffix":                  {"b-x7k2p", 0},
		"no suffix":                        {"b-", 0},
		"the backup's own name":            {"b", 0},
		"another backup's":                 {"c-1", 0},
		"of a backup whose name is longer": {"bb-1", 0},
		"more than a number can hold":      {"b-99999999999999999999", 0},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) { assert.Equal(t, test.want, requestAttempt("b", test.name)) })
	}
}
