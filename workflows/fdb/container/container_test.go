package container_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"holdfast.dev/holdfast/workflows/contract"
)

const (
	use     = contract.FDBContainerUse
	leave   = contract.FDBContainerLeave
	expire  = contract.FDBContainerExpire
	erase   = contract.FDBContainerDelete
	release = contract.FDBContainerRelease
)

func TestWhoGetsAContainer(t *testing.T) {
	const s, m = time.Second, time.Minute
	tests := map[string]struct {
		steps  []guardStep
		held   bool // the answer to the last step
		busy   string
		others []string
	}{
		"no other user":                  {steps: []guardStep{asked(0, "a", expire)}, held: true},
		"others keep data there, too":    {steps: []guardStep{asked(0, "b", use), asked(s, "a", expire)}, held: true},
		"the holder repeats its request": {steps: []guardStep{asked(0, "a", expire), asked(s, "a", expire)}, held: true},
		"another has it": {
			steps: []guardStep{asked(0, "a", expire), asked(s, "b", expire)},
			busy:  "team/a expires the data since 2026-08-01T12:00:00Z",
		},
		"another has released it": {steps: []guardStep{asked(0, "a", expire), asked(s, "a", release), asked(2*s, "b", expire)}, held: true},
		"another released what it does not hold": {
			steps: []guardStep{asked(0, "a", expire), asked(s, "b", release), asked(2*s, "b", expire)}, busy: "team/a expires",
		},
		"it is being restored": {steps: []guardStep{reads(0, "r", m), asked(s, "a", expire)}, busy: "the data are being restored by team/r"},
		"it was restored":      {steps: []guardStep{reads(0, "r", m), asked(m, "a", expire)}, held: true},
		"it is being restored for longer": {
			steps: []guardStep{reads(0, "r", m), reads(30*s, "r", m), asked(m, "a", expire)}, busy: "being restored",
		},
		"the restore has said that it is done": {steps: []guardStep{reads(0, "r", m), asked(s, "r", leave), asked(2*s, "a", expire)}, held: true},
		"a deletion, and the guard is new":     {steps: []guardStep{asked(0, "a", erase)}, busy: "before 2026-08-01T12:15:00Z"},
		"a deletion, and the guard is old":     {steps: []guardStep{asked(0, "a", use), asked(15*m, "a", erase)}, held: true},
		"a deletion, over runs": {
			steps: []guardStep{asked(0, "a", use), guardRolls(m), asked(15*m, "a", erase)}, held: true,
		},
		"a deletion, over runs, too early": {
			steps: []guardStep{asked(0, "a", use), guardRolls(m), asked(14*m, "a", erase)}, busy: "before 2026-08-01T12:15:00Z",
		},
		"a deletion of what was made just now": {steps: []guardStep{freshly(0, "a"), asked(s, "a", erase)}, held: true},
		"a deletion of what others have known before": {
			steps: []guardStep{asked(0, "b", use), asked(s, "b", leave), freshly(2*s, "a"), asked(3*s, "a", erase)}, busy: "before",
		},
		"a deletion, and others keep data there": {
			steps: []guardStep{freshly(0, "a"), asked(s, "b", use), asked(2*s, "a", erase)}, others: []string{"team/b"},
		},
		"a deletion of an object, and the last but one has been refused that": {
			steps: []guardStep{freshly(0, "a"), asked(s, "b", use), wholly(2*s, "a"), wholly(3*s, "b")}, held: true,
		},
		"a deletion of an object, and others stay": {
			steps:  []guardStep{freshly(0, "a"), asked(s, "b", use), asked(2*s, "c", use), wholly(3*s, "a"), wholly(4*s, "b")},
			others: []string{"team/c"},
		},
		"a deletion of an object, and another only lost its older data": {
			steps: []guardStep{freshly(0, "a"), asked(s, "b", use), asked(2*s, "a", erase), wholly(3*s, "b")}, others: []string{"team/a"},
		},
		"a deletion of an object, and another could not expire": {
			steps:  []guardStep{freshly(0, "a"), asked(s, "b", use), reads(2*s, "r", m), asked(3*s, "a", expire), wholly(4*s, "b")},
			others: []string{"team/a"},
		},
		"a deletion, and others have left": {
			steps: []guardStep{freshly(0, "a"), asked(s, "b", use), asked(2*s, "b", leave), asked(3*s, "a", erase)}, held: true,
		},
		"a deletion, and others both keep data and hold it": {
			steps: []guardStep{freshly(0, "a"), asked(s, "b", use), asked(2*s, "b", expire), asked(3*s, "a", erase)}, others: []string{"team/b"},
		},
		"a deletion, and it is being restored": {
			steps: []guardStep{freshly(0, "a"), reads(s, "r", m), asked(2*s, "a", erase)}, busy: "being restored",
		},
		"a deletion by the one that expires, and others came meanwhile": {
			steps: []guardStep{freshly(0, "a"), asked(s, "a", expire), asked(2*s, "b", use), asked(3*s, "a", erase)}, others: []string{"team/b"},
		},
		"another begins to use what is being deleted": {
			steps: []guardStep{freshly(0, "a"), asked(s, "a", erase), asked(2*s, "b", use)}, busy: "team/a deletes the data",
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := newGuardWorld()
			w.plays(t, test.steps...)
			last := len(test.steps) - 1
			require.NoError(t, w.refused[last])
			answer := w.answers[last]
			assert.Equal(t, test.held, answer.Held)
			assert.Equal(t, test.others, answer.Others)
			if test.busy == "" {
				assert.Empty(t, answer.Busy)
			} else {
				assert.Contains(t, answer.Busy, test.busy)
			}
		})
	}
}

// A user's place is what the request says, not what its name resembles.
func TestNamesOfStrangersAreNotShown(t *testing.T) {
	const outside = "somebody outside this namespace"
	for title, tt := range map[string]struct{ cluster, namespace, want string }{
		"of the same namespace":         {"east", "team", "team/a"},
		"of another one":                {"east", "else", outside},
		"of one that begins so":         {"east", "team-b", outside},
		"of another cluster's namesake": {"west", "team", outside},
		"of no cluster":                 {"", "team", outside},
		"of no namespace":               {"east", "", outside},
	} {
		t.Run(title, func(t *testing.T) {
			w := newGuardWorld()
			at := func(step guardStep) guardStep {
				step.request.User.Cluster, step.request.User.Namespace = tt.cluster, tt.namespace
				return step
			}
			const s = time.Second
			w.plays(t, freshly(0, "a"), asked(s, "a", expire), at(asked(2*s, "b", expire)), at(asked(3*s, "b", erase)),
				asked(4*s, "a", release), reads(5*s, "a", time.Minute), at(asked(6*s, "b", expire)))
			assert.Contains(t, w.answers[2].Busy, tt.want+" expires the data since")
			assert.Equal(t, []string{tt.want}, w.answers[3].Others)
			assert.Equal(t, "the data are being restored by "+tt.want, w.answers[6].Busy)
		})
	}
}

func TestARestoreSeesTheHolderOfItsNamespace(t *testing.T) {
	w := newGuardWorld()
	restore := reads(time.Second, "r", time.Minute)
	restore.request.User.Name = "restore team/r (Kubernetes cluster east)"
	holder := asked(0, "a", expire)
	holder.request.User.Name = "team/a (Kubernetes cluster east)"
	w.plays(t, holder, restore)
	assert.Contains(t, w.answers[1].Busy, "team/a (Kubernetes cluster east) expires the data since")
}

func TestAUserThatIsGoneIsNotInTheWayForEver(t *testing.T) {
	const m = time.Minute
	die := func(at time.Duration, who string) guardStep {
		return around(at, func(w *guardWorld) { w.dead[who] = true })
	}
	tests := map[string]struct {
		steps  []guardStep
		held   bool
		checks bool
	}{
		"a holder": {
			steps: []guardStep{asked(0, "a", expire), die(m, "turn-a"), asked(2*m, "b", expire), asked(25*m, "b", expire)}, held: true, checks: true,
		},
		"a holder that may be started again": {
			steps: []guardStep{asked(0, "a", expire), die(m, "turn-a"), asked(2*m, "b", expire), asked(17*m, "b", expire)}, checks: true,
		},
		"a holder that is started again": {
			steps: []guardStep{
				asked(0, "a", expire), die(m, "turn-a"), asked(2*m, "b", expire),
				around(14*m, func(w *guardWorld) { w.dead = map[string]bool{} }), asked(25*m, "b", expire),
			}, checks: true,
		},
		"a holder that is in nobody's way": {
			steps: []guardStep{asked(0, "a", expire), die(m, "turn-a"), asked(25*m, "b", expire)},
		},
		"a restore": {
			steps: []guardStep{reads(0, "r", 60*m), die(m, "r"), asked(2*m, "b", expire), asked(25*m, "b", expire)}, held: true, checks: true,
		},
		"a restore whose workflow may be started again": {
			steps: []guardStep{reads(0, "r", 60*m), die(m, "r"), asked(2*m, "b", expire), asked(17*m, "b", expire)}, checks: true,
		},
		"a restore, in the way of a deletion": {
			steps: []guardStep{
				asked(0, "b", use), reads(0, "r", 60*m), die(m, "r"), asked(20*m, "b", erase), asked(45*m, "b", erase),
			}, held: true, checks: true,
		},
		"but a backup's data are there when it is stopped": {
			steps: []guardStep{asked(0, "a", use), die(m, "a"), asked(20*m, "b", erase), asked(45*m, "b", erase)},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := newGuardWorld()
			last, checks := len(test.steps)-1, 0
			test.steps = append(test.steps[:last:last], around(test.steps[last].at-time.Second, func(w *guardWorld) { checks = w.checks }), test.steps[last])
			w.plays(t, test.steps...)
			assert.Equal(t, test.held, w.answers[last+1].Held)
			assert.Equal(t, test.checks, checks > 0)
		})
	}
}

func TestAGuardEndsWhenItIsNotNeeded(t *testing.T) {
	const m = time.Minute
	tests := map[string]struct {
		steps []guardStep
		ended time.Duration
	}{
		"after the last has left":          {steps: []guardStep{asked(0, "a", use), asked(m, "a", leave)}, ended: 11 * m},
		"after the last has given it back": {steps: []guardStep{asked(0, "a", expire), asked(2*m, "a", release)}, ended: 12 * m},
		"after the last has read":          {steps: []guardStep{reads(0, "r", 30*m)}, ended: 30 * m},
		"over runs":                        {steps: []guardStep{reads(0, "r", 30*m), guardRolls(m), asked(2*m, "a", use), asked(3*m, "a", leave)}, ended: 30 * m},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := newGuardWorld()
			w.plays(t, test.steps...)
			assert.InDelta(t, test.ended, w.endedAt, float64(2*time.Second))
		})
	}
}

func TestRequestsThatCannotBeAnsweredAreRefused(t *testing.T) {
	tests := map[string]func(*contract.FDBContainerRequest){
		"another container": func(request *contract.FDBContainerRequest) { request.Container = "elsewhere" },
		"nobody":            func(request *contract.FDBContainerRequest) { request.User.WorkflowID = "" },
		"no name":           func(request *contract.FDBContainerRequest) { request.User.Name = "" },
		"no action":         func(request *contract.FDBContainerRequest) { request.Action = "" },
		"for nobody":        func(request *contract.FDBContainerRequest) { request.Of = "" },
		"before all times":  func(request *contract.FDBContainerRequest) { request.User.ReadsUntil = -1 },
	}
	for title, change := range tests {
		t.Run(title, func(t *testing.T) {
			step := asked(0, "a", expire)
			change(step.request)
			w := newGuardWorld()
			w.plays(t, step)
			var refusal *temporal.ApplicationError
			require.ErrorAs(t, w.refused[0], &refusal)
			assert.Equal(t, contract.ErrorFDBContainerInvalid, refusal.Type())
			assert.True(t, refusal.NonRetryable())
		})
	}
}

func TestAGuardShowsWhoUsesAndHoldsItsContainer(t *testing.T) {
	var state contract.FDBContainerState
	w := newGuardWorld()
	w.plays(t, freshly(0, "a"), reads(time.Second, "r", time.Hour), asked(2*time.Second, "r", leave), asked(3*time.Second, "a", erase),
		around(4*time.Second, func(w *guardWorld) {
			value, err := w.env.QueryWorkflow(contract.QueryState)
			require.NoError(t, err)
			require.NoError(t, value.Get(&state))
		}),
		asked(5*time.Second, "a", release), asked(6*time.Second, "a", leave))
	assert.Equal(t, contract.FDBContainerState{
		Settled: true, Users: []contract.FDBContainerUser{{WorkflowID: "a", Name: "team/a", Cluster: "east", Namespace: "team"}},
		Holder: &contract.FDBContainerUser{
			WorkflowID: "turn-a", Name: "team/a", Cluster: "east", Namespace: "team", Since: guardStart.Unix() + 3, Deletes: true,
		},
	}, state)
}
