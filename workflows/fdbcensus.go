package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// fdbCensusInterval is how often coordinators of FoundationDB backups look whether those they know of still run.
	fdbCensusInterval = time.Minute
	// fdbCensusTimeout limits one look; what it did not find out, the next one does.
	fdbCensusTimeout = time.Minute
	fdbCensusAttempt = 20 * time.Second
)

// fdbCensus finds out, now and then and without holding anything up, which workflows do not run.
type fdbCensus struct {
	timer  workflow.Future // nil: no look is planned
	answer workflow.Future // nil: no look is under way
	asked  []string
	// heard are those who have spoken since the look began: what it says of them may be older than that.
	heard map[string]bool
}

// fdbCounted is what a look found.
type fdbCounted struct{ closed, running []string }

// hear notes that a workflow has spoken.
func (c *fdbCensus) hear(id string) {
	if c.answer != nil {
		c.heard[id] = true
	}
}

// busy reports whether a look is under way.
func (c *fdbCensus) busy() bool { return c.answer != nil }

// ready reports whether advance has something to do.
func (c *fdbCensus) ready() bool {
	return (c.timer != nil && c.timer.IsReady()) || (c.answer != nil && c.answer.IsReady())
}

// advance looks after those workflows once the interval has passed, and returns what a look found when it has ended. With
// nobody to look after it plans nothing.
func (c *fdbCensus) advance(ctx workflow.Context, interval time.Duration, ids []string) fdbCounted {
	var found fdbCounted
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
			c.ask(ctx, ids)
		}
	}
	return found
}

func (c *fdbCensus) ask(ctx workflow.Context, ids []string) {
	c.asked, c.heard = ids, map[string]bool{}
	c.answer = call.Start(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:    fdbCensusAttempt,
		ScheduleToCloseTimeout: fdbCensusTimeout,
		RetryPolicy:            call.Retry(),
	}, contract.DescribeWorkflows, contract.FDBHolders{WorkflowIDs: ids})
}

func (c *fdbCensus) count(ctx workflow.Context) fdbCounted {
	var closed contract.FDBHolders
	err := c.answer.Get(ctx, &closed)
	c.answer = nil
	if err != nil {
		workflow.GetLogger(ctx).Warn("who runs is not known", "error", err)
		return fdbCounted{}
	}
	var found fdbCounted
	for _, id := range c.asked {
		switch {
		case c.heard[id]:
		case slices.Contains(closed.WorkflowIDs, id):
			found.closed = append(found.closed, id)
		default:
			found.running = append(found.running, id)
		}
	}
	return found
}
