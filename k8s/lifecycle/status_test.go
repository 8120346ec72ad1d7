package lifecycle_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
)

func TestAPhaseNeverGoesBack(t *testing.T) {
	phases := []oadpv1alpha1.NonAdminPhase{"", "New", "BackingOff", "Created", "Deleting"}
	for from := range phases {
		for to := range phases {
			t.Run(fmt.Sprintf("from %q to %q", phases[from], phases[to]), func(t *testing.T) {
				nab := &oadpv1alpha1.NonAdminBackup{Status: oadpv1alpha1.NonAdminBackupStatus{Phase: phases[from]}}
				lifecycle.Advance(nab, phases[to])
				assert.Equal(t, phases[max(from, to)], nab.Status.Phase)
			})
		}
	}
}
