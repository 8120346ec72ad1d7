package contract

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestTheNameOfARunIsOneOfAnObjectAndOfALabel(t *testing.T) {
	due := time.Date(2026, 11, 24, 2, 0, 0, 0, time.UTC)
	assert.Equal(t, "nightly-20261124020000", PlanRunName("nightly", due))
	planOf := map[string]string{}
	for length := 1; length <= 63; length++ {
		for _, plan := range []string{
			strings.Repeat("a", length), strings.Repeat("a.", length/2) + "a", strings.Repeat("a-", length/2) + "a",
		} {
			name := PlanRunName(plan, due)
			assert.Empty(t, validation.IsDNS1123Subdomain(name), plan)
			assert.Empty(t, validation.IsValidLabelValue(name), plan)
			assert.True(t, strings.HasSuffix(name, "-20261124020000"))
			if other, known := planOf[name]; known {
				assert.Equal(t, other, plan, "two plans share %s", name)
			}
			planOf[name] = plan
		}
	}
}
