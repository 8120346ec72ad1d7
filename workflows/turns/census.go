package turns

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// CensusInterval is how often coordinators check which workflows of their members still run.
	CensusInterval = time.Minute
	// censusTimeout limits one check; what it did not find out, the next one does.
	censusTimeout = time.Minute
	censusAttempt = 20 * time.Second
)

// Census checks at intervals, beside everything else, which workflows do not run.
type Census struct {
	timer   workflow.Future // nil: no check is planned
	answer  workflow.Future // nil: no check is under way
	checked []string
	// noted are the workflows that have sent something since the check began: its answer about them may be older.
	noted map[string]bool
	// closed is since when workflows are known not to run, see Gone.
	closed map[string]time.Time
}

// Counted is the result of a check, by workflow IDs.
type Counted struct{ Closed, Running []string }

// NoteMessage notes that a workflow has sent something.
func (c *Census) NoteMessage(id string) {
	delete(c.closed, id)
	if c.answer != nil {
		c.noted[id] = true
	}
}

// Planned reports whether a check is planned.
func (c *Census) Planned() bool { return c.timer != nil }

// Busy reports whether a check is under way.
func (c *Census) Busy() bool { return c.answer != nil }

// Ready reports whether Advance has something to do.
func (c *Census) Ready() bool {
	return (c.timer != nil && c.timer.IsReady()) || (c.answer != nil && c.answer.IsReady())
}

// Advance begins a check of those workflows once the interval has passed, and returns the result of a check that has ended.
// Without workflows it plans none.
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
			c.Check(ctx, ids)
		}
	}
	return found
}

// Gone advances by CensusInterval. It returns the workflows that were found to run, and those that two checks, at least grace
// apart, have found not to run, without a message between.
func (c *Census) Gone(ctx workflow.Context, grace time.Duration, ids []string) (running, gone []string) {
	if c.closed == nil {
		c.closed = map[string]time.Time{}
	}
	found := c.Advance(ctx, CensusInterval, ids)
	for _, id := range found.Running {
		delete(c.closed, id)
	}
	for _, id := range found.Closed {
		switch since, known := c.closed[id]; {
		case !known:
			c.closed[id] = workflow.Now(ctx)
		case workflow.Now(ctx).Sub(since) >= grace:
			delete(c.closed, id)
			gone = append(gone, id)
		}
	}
	return found.Running, gone
}

// Check begins a check of those workflows.
func (c *Census) Check(ctx workflow.Context, ids []string) {
	c.checked, c.noted = ids, map[string]bool{}
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
		workflow.GetLogger(ctx).Warn("cannot find out which workflows run", "error", err)
		return Counted{}
	}
	gone := map[string]bool{}
	for _, id := range closed.WorkflowIDs {
		gone[id] = true
	}
	var found Counted
	for _, id := range c.checked {
		switch {
		case c.noted[id]:
		case gone[id]:
			found.Closed = append(found.Closed, id)
		default:
			found.Running = append(found.Running, id)
		}
	}
	return found
}
