package plan_test

import (
	"context"

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
