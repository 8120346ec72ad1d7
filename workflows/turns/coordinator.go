package turns

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// User is what is particular to a coordinator. The coordinator calls it, one call at a time.
type User[K comparable] interface {
	// Find asks objects, for as long as that takes, and takes what they say: the coordinator has just begun, or Temporal has lost
	// it, or, once Found, there is room for those beyond. It runs beside all else, once at a time; the queues are told by Refill.
	Find(ctx workflow.Context) error
	// Receive takes all that has come, without yielding. Pending reports whether there is anything.
	Receive(ctx workflow.Context)
	Pending() bool
	// Pace sets what the worker's flags, and people, say about the queues now.
	Pace(ctx workflow.Context)
	// Give begins a turn, or, again, one that it may have begun already. What becomes of it is noted in the queue. The error is the
	// run's end.
	Give(ctx workflow.Context, queue *Queue[K], turn Turn[K], again bool) error
	// Lost is what to do with a turn whose workflow is known not to run for Grace.
	Lost(queue *Queue[K], key K)
	// WorkflowID is the workflow that runs as long as somebody's turn does.
	WorkflowID(key K) string
	// Details says in Markdown whose turn it is and who waits.
	Details(now int64) string
	// Next is the error by which the run continues as new.
	Next(ctx workflow.Context) error
}

// Coordinator is the state of one run of a workflow that gives turns. Nothing in it outlives the run but what User.Next carries
// over.
type Coordinator[K comparable] struct {
	User User[K]
	// Queues are what turns are given from, each by its own limit.
	Queues []*Queue[K]
	// Found: what objects say is in the queues.
	Found bool
	// Interval is how often it is looked whose workflow runs, and Grace how long one that does not may be started again, in seconds.
	// Pace may set them.
	Interval, Grace int64
	// Until is when Pace says something else by itself; 0 if it does not. Pace may set it.
	Until int64
	// Everybody: who waits is a workflow too, and is forgotten when that does not run.
	Everybody bool

	touched bool // an Update has changed something
	listing listing
	census  Census
	lookAt  int64 // when it is looked whose workflow runs; 0 if no look is planned
	timer   workflow.Future
	timed   int64 // when timer fires
	cancel  workflow.CancelFunc
}

// Serve gives turns until nobody has or wants one.
func (c *Coordinator[K]) Serve(ctx workflow.Context) error {
	if more, err := c.begin(ctx); !more {
		return err
	}
	for {
		c.touched = false
		c.User.Receive(ctx)
		c.look(ctx)
		if err := c.refill(ctx); err != nil {
			return err
		}
		if err := c.give(ctx); err != nil {
			return err
		}
		c.sleep(ctx)
		workflow.SetCurrentDetails(ctx, c.User.Details(workflow.Now(ctx).Unix()))
		// From here to the return nothing may yield: a request that came meanwhile would be lost.
		if !c.due() && c.atRest(ctx) {
			switch {
			case c.deserted():
				return nil
			case workflow.GetInfo(ctx).GetContinueAsNewSuggested():
				return c.User.Next(ctx)
			}
		}
		err := workflow.Await(ctx, func() bool {
			ends := c.deserted() || workflow.GetInfo(ctx).GetContinueAsNewSuggested()
			return c.due() || (ends && c.atRest(ctx))
		})
		if err != nil {
			return err
		}
	}
}

// Touch has the coordinator look at its queues: an Update has changed something.
func (c *Coordinator[K]) Touch() { c.touched = true }

// Heard notes that somebody's workflow has spoken: what a look says that began before is older.
func (c *Coordinator[K]) Heard(key K) { c.census.Hear(c.User.WorkflowID(key)) }

// due reports whether Serve has something to do.
func (c *Coordinator[K]) due() bool {
	for _, queue := range c.Queues {
		if len(queue.again) > 0 {
			return true
		}
	}
	return c.touched || c.listing.due() || c.User.Pending() || c.census.Ready() || (c.timer != nil && c.timer.IsReady())
}

// atRest: nobody waits for anything of this run.
func (c *Coordinator[K]) atRest(ctx workflow.Context) bool {
	return workflow.AllHandlersFinished(ctx) && !c.census.Busy()
}

// deserted: nobody has or wants a turn, and objects that are asked need not be waited for.
func (c *Coordinator[K]) deserted() bool {
	if c.listing.runs() {
		return false
	}
	for _, queue := range c.Queues {
		if !queue.Empty() {
			return false
		}
	}
	return true
}

// give gives turns again that are asked for again, and then new ones as long as limits and queues allow it. What comes while a
// turn is given counts for the next.
func (c *Coordinator[K]) give(ctx workflow.Context) error {
	for _, queue := range c.Queues {
		for len(queue.again) > 0 {
			turn := queue.again[0]
			queue.again = queue.again[1:]
			c.User.Receive(ctx)
			if known := queue.Turn(turn.Key); known == nil || known.Began != turn.Began {
				continue // its end has come in meanwhile
			}
			c.Heard(turn.Key)
			if err := c.User.Give(ctx, queue, turn, true); err != nil {
				return err
			}
		}
	}
	for _, queue := range c.Queues {
		for {
			c.User.Pace(ctx)
			turn, begun := queue.Begin(workflow.Now(ctx).Unix())
			if !begun {
				break
			}
			c.Heard(turn.Key)
			if err := c.User.Give(ctx, queue, turn, false); err != nil {
				return err
			}
			c.User.Receive(ctx)
		}
	}
	return nil
}

// look finds out now and then whose workflow runs.
func (c *Coordinator[K]) look(ctx workflow.Context) {
	now := workflow.Now(ctx).Unix()
	if c.census.Ready() {
		c.count(c.census.Advance(ctx, 0, nil), now) // with nobody to look after it plans nothing: lookAt does
	}
	// If the run is about to end, the next one looks.
	if c.lookAt != 0 && c.lookAt <= now && !c.census.Busy() && !workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
		if ids := c.watched(); len(ids) > 0 {
			c.census.Ask(ctx, ids)
		}
		c.lookAt = 0
	}
}

// watched are the workflows of all who have turns, and of those that wait.
func (c *Coordinator[K]) watched() []string {
	var ids []string
	for _, queue := range c.Queues {
		for _, turn := range queue.Turns {
			ids = append(ids, c.User.WorkflowID(turn.Key))
		}
	}
	for _, queue := range c.Queues {
		for _, member := range queue.Members {
			if c.Everybody {
				ids = append(ids, c.User.WorkflowID(member.Key))
			}
		}
	}
	return ids
}

// count takes what a look has found.
func (c *Coordinator[K]) count(found Counted, now int64) {
	for _, queue := range c.Queues {
		keys := map[string]K{}
		for _, turn := range queue.Turns {
			keys[c.User.WorkflowID(turn.Key)] = turn.Key
		}
		for _, member := range queue.Members {
			if c.Everybody {
				keys[c.User.WorkflowID(member.Key)] = member.Key
			}
		}
		for _, id := range found.Running {
			if key, known := keys[id]; known {
				queue.Runs(key)
			}
		}
		for _, id := range found.Closed {
			key, known := keys[id]
			if known && c.Everybody {
				queue.Leave(key)
			}
			if known && queue.Closed(key, now) >= c.Grace {
				c.User.Lost(queue, key)
			}
		}
	}
}

// planLook says when it is looked next: after the interval, and sooner if a workflow was found not to run.
func (c *Coordinator[K]) planLook(now int64) {
	interval, anybody := c.Interval, false
	for _, queue := range c.Queues {
		if queue.doubtful() {
			interval = min(interval, int64(CensusInterval/time.Second))
		}
		anybody = anybody || len(queue.Turns) > 0 || (c.Everybody && len(queue.Members) > 0)
	}
	switch {
	case !anybody:
		c.lookAt = 0
	case c.lookAt == 0 || c.lookAt > now+interval:
		c.lookAt = now + interval
	}
}

// sleep has the run wake when the next turn is due, or it is time to look whose workflow runs.
func (c *Coordinator[K]) sleep(ctx workflow.Context) {
	c.planLook(workflow.Now(ctx).Unix())
	at := earlier(c.lookAt, c.Until)
	for _, queue := range c.Queues {
		at = earlier(at, earlier(queue.Next(), queue.refillAt(workflow.Now(ctx).Unix())))
	}
	c.wake(ctx, at)
}

// earlier is the earlier of two times; 0 is none.
func earlier(a, b int64) int64 {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// wake has the run wake then: one timer for all, left as it is if it fires earlier.
func (c *Coordinator[K]) wake(ctx workflow.Context, at int64) {
	if c.timer != nil && c.timer.IsReady() {
		c.timer = nil
	}
	if at == 0 || (c.timer != nil && c.timed <= at) {
		return
	}
	if c.timer != nil {
		c.cancel()
	}
	var timing workflow.Context
	timing, c.cancel = workflow.WithCancel(ctx)
	wait := max(time.Unix(at, 0).Sub(workflow.Now(ctx)), time.Second)
	c.timer, c.timed = workflow.NewTimer(timing, wait), at
}
