package outage_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"holdfast.dev/holdfast/test/env"
)

// What every run of the tests has is a fair part of the matrix: each scenario is disturbed, and each process killed before and
// after each form of a step.
func TestTheSampleHasEveryKindOfKill(t *testing.T) {
	var want []string
	for _, process := range []string{env.Worker, env.Watcher, env.Temporal} {
		for _, when := range []string{"before", "after"} {
			want = append(want, process+" "+when+" local", process+" "+when+" regular")
			if process != env.Temporal {
				want = append(want, process+" "+when+" signal")
			}
		}
	}
	kinds := map[string]bool{}
	for _, s := range scenarios {
		assert.Equal(t, s.inLong, len(s.sample) == 0, "%s: a scenario that runs is disturbed", s.name)
		for _, disturbance := range s.sample {
			kinds[strings.Join(strings.Fields(disturbance)[:3], " ")] = true
		}
	}
	for _, kind := range want {
		assert.Contains(t, kinds, kind)
	}
}
