package plan_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/plan"
	"holdfast.dev/holdfast/workflows/contract"
)

// schedules are Temporal's of plans, in memory.
type schedules struct {
	// Wanted are those kept, by the plan's name.
	Wanted map[string]plan.Wanted
	// Kept is how often one was read.
	Kept int
	// Operator: an operator has paused them.
	Operator bool
	Signals  []contract.PlanSignal
	Err      error
}

var _ plan.Schedules = (*schedules)(nil)

// Keep implements plan.Schedules.
func (s *schedules) Keep(_ context.Context, _ string, ref contract.ObjectRef, wanted plan.Wanted) (plan.Kept, error) {
	if s.Err != nil {
		return plan.Kept{}, s.Err
	}
	if s.Wanted == nil {
		s.Wanted = map[string]plan.Wanted{}
	}
	s.Wanted[ref.Name] = wanted
	s.Kept++
	kept := plan.Kept{PausedByOperator: s.Operator}
	if len(wanted.Next) > 0 {
		kept.Last = wanted.Next[len(wanted.Next)-1]
	}
	return kept, nil
}

// List implements plan.Schedules.
func (s *schedules) List(_ context.Context, _ string, ref contract.ObjectRef) (plan.Listed, bool, error) {
	_, found := s.Wanted[ref.Name]
	return plan.Listed{Paused: s.Operator, Note: "an operator"}, found, s.Err
}

// Drop implements plan.Schedules.
func (s *schedules) Drop(_ context.Context, _ string, ref contract.ObjectRef) error {
	delete(s.Wanted, ref.Name)
	return s.Err
}

// Signal implements plan.Schedules.
func (s *schedules) Signal(_ context.Context, in contract.PlanSignal) error {
	s.Signals = append(s.Signals, in)
	return s.Err
}

func TestAPlanThatIsGoneHasNoSchedule(t *testing.T) {
	s := newScene(t, nil)
	s.refresh()
	require.NotEmpty(t, s.schedules.Wanted)
	require.NoError(t, s.Client.Delete(t.Context(), s.ReadPlan(minutely)))
	assert.False(t, s.refresh().Found)
	assert.Empty(t, s.schedules.Wanted)
}

// Reading a Schedule costs Temporal a workflow task: it is read only if it may not be as the workflow knows it.
func TestAScheduleThatIsKnownIsNotReadAgain(t *testing.T) {
	s := newScene(t, nil)
	known := s.refresh().Schedule
	require.NotNil(t, known)
	require.Equal(t, 1, s.schedules.Kept)
	step := contract.PlanStep{Schedule: known}
	assert.Equal(t, known, s.act(contract.RefreshPlan.Name, step).Schedule)
	s.now = fake.PlanTime.Add(20 * time.Minute)
	assert.Equal(t, known, s.act(contract.RefreshPlan.Name, step).Schedule, "enough of its times are left")
	require.Equal(t, 1, s.schedules.Kept)

	s.now = fake.PlanTime.Add(25 * time.Minute)
	assert.Greater(t, s.act(contract.RefreshPlan.Name, step).Schedule.Last, known.Last)
	require.Equal(t, 2, s.schedules.Kept, "few are left")
	for title, other := range map[string]contract.PlanSchedule{
		"of another generation": {Generation: known.Generation + 1, Last: known.Last + 3600},
		"of a refused plan":     {Generation: known.Generation, Last: known.Last + 3600, Refused: true},
	} {
		before := s.schedules.Kept
		s.act(contract.RefreshPlan.Name, contract.PlanStep{Schedule: &other})
		assert.Equal(t, before+1, s.schedules.Kept, title)
	}
	doubted := contract.PlanSchedule{Generation: known.Generation, Last: known.Last + 3600, Doubted: true}
	before := s.schedules.Kept
	assert.False(t, s.act(contract.RefreshPlan.Name, contract.PlanStep{Schedule: &doubted}).Schedule.Doubted)
	assert.Equal(t, before, s.schedules.Kept, "it is listed as it was")
	s.schedules.Operator = true
	assert.Equal(t, "Operator", s.act(contract.RefreshPlan.Name, contract.PlanStep{Schedule: &doubted}).Paused, "a pause that no review has found")
	s.schedules.Operator = false
	delete(s.schedules.Wanted, minutely)
	s.act(contract.RefreshPlan.Name, contract.PlanStep{Schedule: &doubted})
	assert.Contains(t, s.schedules.Wanted, minutely, "it was deleted")
	paused := contract.PlanSchedule{Generation: known.Generation, Last: known.Last + 3600, PausedByOperator: true}
	assert.Equal(t, "Operator", s.act(contract.RefreshPlan.Name, contract.PlanStep{Schedule: &paused}).Paused)
}
