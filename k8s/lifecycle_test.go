package k8s_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

func TestAPhaseNeverGoesBack(t *testing.T) {
	phases := []oadpv1alpha1.NonAdminPhase{"", "New", "BackingOff", "Created", "Deleting"}
	for from := range phases {
		for to := range phases {
			t.Run(fmt.Sprintf("from %q to %q", phases[from], phases[to]), func(t *testing.T) {
				phase := phases[from]
				k8s.Advance(&phase, phases[to])
				assert.Equal(t, phases[max(from, to)], phase)
			})
		}
	}
}
