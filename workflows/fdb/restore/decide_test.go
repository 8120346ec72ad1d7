package restore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"holdfast.dev/holdfast/workflows/contract"
	fdbrestore "holdfast.dev/holdfast/workflows/fdb/restore"
)

func TestDecide(t *testing.T) {
	command := func(operation contract.FDBOperation) fdbrestore.Decision {
		return fdbrestore.Decision{Step: fdbrestore.StepCommand, Command: contract.FDBCommand{
			Operation: operation, Generation: 1, Tag: "lab-u", URL: place,
		}}
	}
	step := func(step fdbrestore.Step) fdbrestore.Decision { return fdbrestore.Decision{Step: step} }
	start, abort, nothing := command(contract.FDBRestoreStart), command(contract.FDBRestoreAbort), fdbrestore.Decision{}
	anHour := func(s *fdbrestore.Situation) { s.Now = s.Now.Add(time.Hour) }
	tests := map[string]struct {
		s     fdbrestore.Situation
		want  fdbrestore.Decision
		state string
	}{
		"what would be restored is found out":            {with(unresolved), step(fdbrestore.StepResolve), "pending"},
		"the guard gets the request before the plan":     {with(unread), step(fdbrestore.StepRead), "pending"},
		"then it is written down":                        {with(), step(fdbrestore.StepPlan), "pending"},
		"then it is started":                             {with(planned), start, "pending"},
		"not before the destination was inspected again": {with(planned, unresolved), step(fdbrestore.StepResolve), "pending"},
		"nor while the guard had no request lately":      {with(planned, anHour), step(fdbrestore.StepRead), "pending"},
		"what is no object store has no guard": {
			with(unread, planned, func(s *fdbrestore.Situation) { s.View.Plan.Container = "" }), start, "pending",
		},
		"a destination that does not answer":           {with(planned, silent), nothing, "pending"},
		"another database":                             {with(planned, elsewhere), nothing, "pending"},
		"no database":                                  {with(planned, gone), nothing, "pending"},
		"a problem":                                    {with(planned, func(s *fdbrestore.Situation) { s.View.Problem = &contract.FDBCondition{} }), nothing, "pending"},
		"one that runs":                                {with(in("running")), nothing, "running"},
		"its guard gets a request each hour":           {with(in("running"), anHour), step(fdbrestore.StepRead), "running"},
		"also while there is no answer":                {with(in("running"), shown("running"), silent, anHour), step(fdbrestore.StepRead), "running"},
		"or the database's address is not known":       {with(in("running"), shown("running"), gone, anHour), step(fdbrestore.StepRead), "running"},
		"but not for another database":                 {with(in("running"), shown("running"), elsewhere, anHour), nothing, "running"},
		"nor for one of which nothing is known":        {with(planned, shown("running"), anHour), nothing, "running"},
		"nor for one that was never started":           {with(planned, silent, anHour), nothing, "pending"},
		"one that was started is not started again":    {with(planned, shown("running")), nothing, "running"},
		"though somebody wiped the database":           {with(planned, shown("queued"), unread), nothing, "queued"},
		"what is known stays while there is no answer": {with(in("running"), shown("running"), silent), nothing, "running"},
		"the end is checked":                           {with(in("completed"), shown("running")), step(fdbrestore.StepFinalize), "finalizing"},
		"and goes on being, whatever is seen":          {with(planned, shown("finalizing"), silent), step(fdbrestore.StepFinalize), "finalizing"},
		"until all tasks have ended":                   {with(in("completed"), ended("Completed", "InProgress")), step(fdbrestore.StepFinalize), "finalizing"},
		"well":                                         {with(in("completed"), ended("Completed", "Completed")), nothing, "completed"},
		"or not":                                       {with(in("completed"), ended("Failed", "Completed")), nothing, "failed"},
		"aborted by somebody":                          {with(in("aborted"), shown("running")), nothing, "aborted"},
		"the end is the end":                           {with(planned, shown("aborted")), nothing, "aborted"},
		"a completed one that is stopped":              {with(in("completed"), stopped), step(fdbrestore.StepFinalize), "finalizing"},
		"stopped before it was planned":                {with(stopped), nothing, "aborted"},
		"stopped before it was started":                {with(planned, stopped), nothing, "aborted"},
		"stopped, and it is not known whether it runs": {with(planned, stopped, silent), nothing, "pending"},
		"stopped while it runs":                        {with(in("running"), stopped), abort, "running"},
		"stopped while it is queued":                   {with(in("queued"), stopped), abort, "queued"},
		"stopped, and the database is another one":     {with(in("running"), shown("running"), stopped, elsewhere), nothing, "running"},
		"stopped, and the database knows of nothing":   {with(planned, shown("running"), stopped), nothing, "aborted"},
		"deleted while it runs":                        {with(in("starting"), deleted), abort, "starting"},
		"deleted before":                               {with(planned, deleted), nothing, "pending"},
		"deleted while its end is checked":             {with(planned, shown("finalizing"), deleted), nothing, "finalizing"},
		"a status that was forged":                     {with(stopped, shown("running")), nothing, "running"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			if !fdbrestore.InspectDue(test.s.View) {
				test.s.Seen, test.s.Resolved = contract.FDBRestoreInspection{}, false
			}
			got := fdbrestore.Decide(test.s)
			if got.Step != fdbrestore.StepCommand {
				got.Command = contract.FDBCommand{}
			}
			assert.Equal(t, test.want, got)
			assert.Equal(t, test.state, fdbrestore.State(test.s))
		})
	}
}

func TestSettled(t *testing.T) {
	unobserved := func(s *fdbrestore.Situation) { s.View.Observed = false }
	tests := map[string]struct {
		s    fdbrestore.Situation
		want bool
	}{
		"gone":                   {fdbrestore.Situation{}, true},
		"new":                    {with(shown("")), false},
		"running":                {with(shown("running")), false},
		"finalizing":             {with(shown("finalizing")), false},
		"completed":              {with(shown("completed")), true},
		"failed":                 {with(shown("failed")), true},
		"aborted":                {with(shown("aborted")), true},
		"aborted, and edited":    {with(shown("aborted"), unobserved), false},
		"completed, and deleted": {with(shown("completed"), deleted), false},
		"deleted, and let go":    {with(deleted, func(s *fdbrestore.Situation) { s.View.Held = false }), true},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) { assert.Equal(t, test.want, fdbrestore.Settled(test.s.View)) })
	}
}

func TestAPlanIsOfWhatWasResolved(t *testing.T) {
	s := with()
	want := with(planned).View.Plan
	assert.Equal(t, want, fdbrestore.NewPlan(s))
	s.Seen.URL = place
	assert.Equal(t, want, fdbrestore.NewPlan(s))
	s.Seen.URL = "blobstore://lab@s3.local/newer?bucket=b"
	assert.Nil(t, fdbrestore.NewPlan(s), "a newer backup has come meanwhile")
	assert.Nil(t, fdbrestore.NewPlan(with(unresolved)))
	assert.Nil(t, fdbrestore.NewPlan(with(func(s *fdbrestore.Situation) { s.View.URL = "" })))
}

func TestWhenTheOwnerMustKnowOfTheRestore(t *testing.T) {
	tests := map[string]struct {
		s    fdbrestore.Situation
		want bool
	}{
		"not before the start":                 {with(planned), false},
		"unless the agents are paused":         {with(planned, paused), true},
		"which is no matter for one that ends": {with(planned, paused, stopped), false},
		"while it runs the owner":              {with(in("running")), true},
		"not at its end":                       {with(in("completed")), false},
		"nor when it is to be aborted":         {with(in("running"), stopped), false},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) { assert.Equal(t, test.want, fdbrestore.JoinDue(test.s)) })
	}
}
