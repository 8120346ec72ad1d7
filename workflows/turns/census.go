package turns

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// CensusInterval is how often coordinators look whether those they know of still run.
	CensusInterval = time.Minute
	// censusTimeout limits one look; what it did not find out, the next one does.
	censusTimeout = time.Minute
	censusAttempt = 20 * time.Second
)

// Census finds out, now and then and without holding anything up, which workflows do not run.
type Census struct {
	timer  workflow.Future // nil: no look is planned
	answer workflow.Future // nil: no look is under way
	asked  []string
	// heard are those who have spoken since the look began: what it says of them may be older than that.
	heard map[string]bool
}

// Counted is what a look found.
type Counted struct{ Closed, Running []string }

// Hear notes that a workflow has spoken.
func (c *Census) Hear(id string) {
	if c.answer != nil {
		c.heard[id] = true
	}
}

// Planned reports whether a look is planned.
func (c *Census) Planned() bool { return c.timer != nil }

// Busy reports whether a look is under way.
func (c *Census) Busy() bool { return c.answer != nil }

// Ready reports whether Advance has something to do.
func (c *Census) Ready() bool {
	return (c.timer != nil && c.timer.IsReady()) || (c.answer != nil && c.answer.IsReady())
}

// Advance looks after those workflows once the interval has passed, and returns what a look found when it has ended. With
// nobody to look after it plans nothing.
func (c *Census) Advance(ctx workflow.Context, interval time.Duration, ids []string) Counted {
	var found Counted
	if c.answer != nil && c.answer.IsReady() {
		found = c.count(ctx)
	}
	switch {
	case c.answer != nil:
	case c.timer == nil:
		if len(ids) > 0 {
			c.timer = workflow.NewTimer(ctx, interval)
		}
	case c.timer.IsReady():
		c.timer = nil
		if len(ids) > 0 {
			c.Ask(ctx, ids)
		}
	}
	return found
}

// Ask begins a look after those workflows.
func (c *Census) Ask(ctx workflow.Context, ids []string) {
	c.asked, c.heard = ids, map[string]bool{}
	c.answer = call.Start(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:    censusAttempt,
		ScheduleToCloseTimeout: censusTimeout,
		RetryPolicy:            call.Retry(),
	}, contract.DescribeWorkflows, contract.Workflows{WorkflowIDs: ids})
}

func (c *Census) count(ctx workflow.Context) Counted {
	var closed contract.Workflows
	err := c.answer.Get(ctx, &closed)
	c.answer = nil
	if err != nil {
		workflow.GetLogger(ctx).Warn("who runs is not known", "error", err)
		return Counted{}
	}
	gone := map[string]bool{}
	for _, id := range closed.WorkflowIDs {
		gone[id] = true
	}
	var found Counted
	for _, id := range c.asked {
		switch {
		case c.heard[id]:
		case gone[id]:
			found.Closed = append(found.Closed, id)
		default:
			found.Running = append(found.Running, id)
		}
	}
	return found
}
