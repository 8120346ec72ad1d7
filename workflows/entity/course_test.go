package entity_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/entity"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
)

// follow takes the steps of a course whose views are the names of the steps taken, and says what was done, what is left and how long
// it took.
func follow(t *testing.T, long bool, next func(done string) entity.Step) (done, left string, took time.Duration) {
	t.Helper()
	env := environment.New(&testsuite.WorkflowTestSuite{})
	env.SetContinueAsNewSuggested(long)
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		began := workflow.Now(ctx)
		course := entity.Course[string]{
			Read: entity.Step{Activity: "read"}, Next: next,
			Do: func(_ workflow.Context, step entity.Step) (string, error) {
				done += step.String() + " "
				return done, nil
			},
		}
		step, err := course.Take(ctx)
		left, took = step.String(), workflow.Now(ctx).Sub(began)
		return err
	})
	require.True(t, env.IsWorkflowCompleted())
	require.NoError(t, env.GetWorkflowError())
	return strings.TrimSpace(done), left, took
}

func TestACourseEndsAtTheFirstStepWithoutAnActivity(t *testing.T) {
	for _, last := range []entity.Step{entity.Wait, entity.Settle, {Summary: "finalize"}} {
		done, left, took := follow(t, false, func(done string) entity.Step {
			if done == "read " {
				return entity.Step{Activity: "create"}
			}
			return last
		})
		assert.Equal(t, "read create", done)
		assert.Equal(t, last.Summary, left)
		assert.Zero(t, took)
	}
}

func TestStepsThatComeToNothingPause(t *testing.T) {
	write := entity.Step{Activity: "write"}
	done, left, took := follow(t, false, func(done string) entity.Step {
		if strings.Count(done, "write") == 7 {
			return entity.Settle
		}
		return write
	})
	assert.Equal(t, "read"+strings.Repeat(" write", 7), done)
	assert.Equal(t, "settle", left)
	assert.Equal(t, entity.Pause, took, "one pause after four activities")

	done, left, _ = follow(t, true, func(string) entity.Step { return write })
	assert.Equal(t, "read write write write", done, "a long history ends the run")
	assert.Equal(t, "wait", left)
}

func TestOnlySettledEndsARun(t *testing.T) {
	assert.Equal(t, entity.Settled, entity.OutcomeOf(entity.Settle))
	assert.Equal(t, entity.Waiting, entity.OutcomeOf(entity.Wait))
	assert.Equal(t, entity.Waiting, entity.OutcomeOf(entity.Step{Summary: "finalize"}))
}
