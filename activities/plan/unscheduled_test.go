package plan_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows/contract"
)

// Temporal's development server lost the first task of three of 10,000 Schedules: their plans showed nothing at all.
func TestAPlanWithoutAScheduleSaysSo(t *testing.T) {
	s := newScene(t, nil)
	s.schedules.Err = errors.New("context deadline exceeded")
	_, err := s.try(contract.RefreshPlan.Name, contract.PlanStep{})
	require.ErrorContains(t, err, "context deadline exceeded")
	assert.Equal(t, "Unknown Unscheduled", s.reason("Ready"))
	s.schedules.Err = nil
	s.act(contract.RefreshPlan.Name, contract.PlanStep{})
	assert.Equal(t, "True Scheduled", s.reason("Ready"))
	s.schedules.Err = errors.New("context deadline exceeded")
	_, err = s.try(contract.RefreshPlan.Name, contract.PlanStep{})
	require.Error(t, err)
	assert.Equal(t, "True Scheduled", s.reason("Ready"), "it has one")
}
