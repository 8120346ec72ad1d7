package outage

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"holdfast.dev/holdfast/k8s/process/failpoint"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestWhatAnUndisturbedRunGivesReasonTo(t *testing.T) {
	for title, test := range map[string]struct {
		moment Moment
		want   []string
	}{
		"an activity's local form, and the regular one that follows where the API server is away": {
			Moment{step, 1},
			[]string{
				"worker before local create", "watcher before local create", "temporal before local create", "worker before regular create",
			},
		},
		"the second time": {
			Moment{step, 2}, []string{"worker before local create (2)", "watcher before local create (2)", "temporal before local create (2)"},
		},
		"any later time": {Moment{step, 3}, nil},
		"a signal, at which Temporal is not killed": {
			Moment{failpoint.Point{Step: failpoint.Signal, After: true}, 1}, []string{"worker after signal", "watcher after signal"},
		},
		"what asks Temporal alone": {
			Moment{failpoint.Point{Step: contract.SignalFDBThrottle.Name, Form: failpoint.Local, Of: "acquire"}, 1},
			[]string{
				"worker before local signal-fdb-throttle acquire", "watcher before local signal-fdb-throttle acquire",
				"temporal before local signal-fdb-throttle acquire",
			},
		},
	} {
		t.Run(title, func(t *testing.T) {
			var names []string
			for _, d := range Disturbances([]Moment{test.moment}) {
				names = append(names, d.String())
			}
			assert.Equal(t, test.want, names)
		})
	}
}

func TestARegularFormByChanceIsNoReason(t *testing.T) {
	local, regular := Moment{step, 1}, Moment{failpoint.Point{Step: step.Step, Form: failpoint.Regular}, 1}
	assert.Equal(t, Disturbances([]Moment{local}), Disturbances([]Moment{local, regular}), "the local form was slow")
	assert.Len(t, Disturbances([]Moment{regular}), 3, "it has no local form")
}

func TestWhereOneWorkerTakesOverFromAnother(t *testing.T) {
	signal := Moment{failpoint.Point{Step: failpoint.Signal}, 2}
	local := func(occurrence int) Moment { return Moment{step, occurrence} }
	regular := Moment{failpoint.Point{Step: "run", Form: failpoint.Regular}, 1}
	other := Moment{failpoint.Point{Step: "other", Form: failpoint.Local}, 1}
	for title, test := range map[string]struct {
		moments    []Moment
		at, during bool
	}{
		"a signal follows":               {[]Moment{local(1), local(2), signal}, true, true},
		"a regular activity follows":     {[]Moment{local(1), local(2), regular}, true, true},
		"it follows an earlier moment":   {[]Moment{local(1), local(2), signal, other, {other.Point, 2}}, true, true},
		"one workflow task serves it":    {[]Moment{signal, local(1), local(2)}, false, false},
		"no time for another worker":     {[]Moment{signal, local(1), regular}, true, false},
		"nothing":                        {nil, false, false},
		"the end of a regular one alone": {[]Moment{local(1), local(2), {failpoint.Point{Form: failpoint.Regular, After: true}, 1}}, false, false},
	} {
		t.Run(title, func(t *testing.T) {
			rollout, is := RolloutOf(During, test.moments)
			assert.Equal(t, test.during, is)
			if is {
				assert.Equal(t, Rollout{Beside: local(1), Alone: local(2)}, rollout)
			}
			rollout, is = RolloutOf("before local create", test.moments)
			assert.Equal(t, test.at, is)
			if is {
				assert.Equal(t, Rollout{Beside: local(1), Alone: local(1)}, rollout)
			}
			_, is = RolloutOf("before local other things", test.moments)
			assert.False(t, is)
			rollout, is = RolloutOf(Before, test.moments)
			assert.True(t, is)
			assert.Zero(t, rollout)
		})
	}
}

func TestTheLastWordsOfAProcess(t *testing.T) {
	want := []string{"create a", "patch b", "patch b"}
	for title, test := range map[string]struct{ got, say []string }{
		"all is there":        {want, want},
		"one is missing":      {[]string{"create a", "patch b"}, want},
		"two are missing":     {[]string{"patch b"}, []string{"patch b"}},
		"one is too many":     {[]string{"create a", "create a", "patch b"}, []string{"create a", "create a", "patch b"}},
		"one is another one":  {[]string{"create a", "delete b", "patch b"}, []string{"create a", "delete b", "patch b"}},
		"one more than there": {append([]string{"create c"}, want...), append([]string{"create c"}, want...)},
	} {
		t.Run(title, func(t *testing.T) { assert.Equal(t, test.say, WithLastWords(want, test.got)) })
	}
}
