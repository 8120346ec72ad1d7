package turns

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"
)

// User is the part that is special to a coordinator. The loop calls it, one call at a time.
type User[K comparable] interface {
	// Find lists the objects and hands the result to the queues with Refill. It is called when the coordinator has just begun, or
	// Temporal has lost it, and, once Found, when there is room for members beyond. It may take its time: it runs beside everything
	// else, once at a time.
	Find(ctx workflow.Context) error
	// Receive drains all signals, without yielding. Pending reports whether there are any.
	Receive(ctx workflow.Context)
	Pending() bool
	// Pace sets in the queues what the worker's flags, and operators, say now.
	Pace(ctx workflow.Context)
	// Give begins a turn or, with again, one that it may have begun already, and notes the outcome in the queue. An error ends the
	// run.
	Give(ctx workflow.Context, queue *Queue[K], turn Turn[K], again bool) error
	// Deliver begins the turns that Give has only noted. It is called once in each pass, after all calls of Give.
	Deliver(ctx workflow.Context) error
	// Lost handles a turn whose workflow has not run for Grace.
	Lost(queue *Queue[K], key K)
	// WorkflowID returns the workflow that runs as long as the member's turn does.
	WorkflowID(key K) string
	// Details shows in Markdown who has a turn and who waits.
	Details(now int64) string
	// Next returns the error by which the run continues as new.
	Next(ctx workflow.Context) error
}

// Coordinator is the state of one run of a workflow that gives turns. Nothing in it outlives the run except what User.Next hands
// over.
type Coordinator[K comparable] struct {
	User User[K]
	// Queues give the turns, each by its own limit.
	Queues []*Queue[K]
	// Found: the objects have been listed since the first start.
	Found bool
	// Interval is how often the census checks whose workflow runs, and Grace how long a workflow that does not run may be started
	// again, in seconds. Pace may set them.
	Interval, Grace int64
	// NextCheck is when the census checks next; 0 if no check is planned. A User that continues as new under load hands it over:
	// else each run would plan a check that it does not live to see.
	NextCheck int64
	// Until is when Pace next changes something by itself; 0 if it does not. Pace may set it.
	Until int64
	// Everybody: members that wait are workflows too, and are dropped when they do not run.
	Everybody bool
	// Open: the run goes on although no member has or wants a turn. Pace may set it.
	Open bool

	touched bool // an Update has changed something
	listing listing
	census  Census
	timer   workflow.Future
	timed   int64 // when timer fires
	cancel  workflow.CancelFunc
}

// Serve gives turns until no member has or wants one.
func (c *Coordinator[K]) Serve(ctx workflow.Context) error {
	if more, err := c.begin(ctx); !more {
		return err
	}
	loop := Loop{
		Pass: c.pass, Due: c.due, AtRest: func() bool { return !c.census.Busy() }, Deserted: c.deserted, Next: c.User.Next,
	}
	return loop.Serve(ctx)
}

// pass gives the turns that are due.
func (c *Coordinator[K]) pass(ctx workflow.Context) error {
	c.touched = false
	c.User.Receive(ctx)
	if c.Open && c.mayContinue(ctx) {
		return c.User.Next(ctx)
	}
	c.check(ctx)
	if err := c.refill(ctx); err != nil {
		return err
	}
	if err := c.give(ctx); err != nil {
		return err
	}
	if err := c.User.Deliver(ctx); err != nil {
		return err
	}
	c.sleep(ctx)
	for _, queue := range c.Queues { // Begin does not at the limit, and histories have been recorded with it
		queue.settle()
	}
	workflow.SetCurrentDetails(ctx, c.User.Details(workflow.Now(ctx).Unix()))
	return nil
}

// mayContinue reports whether the next run can go on from what this one carries, although more may be due: under load
// something always is. It lists the objects again if that is wanted.
func (c *Coordinator[K]) mayContinue(ctx workflow.Context) bool {
	again := slices.ContainsFunc(c.Queues, func(queue *Queue[K]) bool { return len(queue.again) > 0 })
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested() && workflow.AllHandlersFinished(ctx) &&
		!again && c.listing.err == nil && !c.census.Busy()
}

// Touch wakes the coordinator: an Update has changed something in its queues.
func (c *Coordinator[K]) Touch() { c.touched = true }

// NoteMessage notes that a member's workflow has sent something: the answer of a check that began before is older.
func (c *Coordinator[K]) NoteMessage(key K) { c.census.NoteMessage(c.User.WorkflowID(key)) }

// due reports whether there is something for a pass.
func (c *Coordinator[K]) due(workflow.Context) bool {
	for _, queue := range c.Queues {
		if len(queue.again) > 0 {
			return true
		}
	}
	return c.touched || c.listing.due() || c.User.Pending() || c.census.Ready() || (c.timer != nil && c.timer.IsReady())
}

// deserted: no member has or wants a turn, and no listing is under way.
func (c *Coordinator[K]) deserted(workflow.Context) bool {
	if c.Open || c.listing.runs() {
		return false
	}
	for _, queue := range c.Queues {
		if !queue.Empty() {
			return false
		}
	}
	return true
}

// give repeats the turns that are to be given again, and then gives new ones as long as limits and queues allow it. A request
// that arrives while a turn is given counts for the next one.
func (c *Coordinator[K]) give(ctx workflow.Context) error {
	for _, queue := range c.Queues {
		for len(queue.again) > 0 {
			turn := queue.again[0]
			queue.again = queue.again[1:]
			c.User.Receive(ctx)
			if known := queue.Turn(turn.Key); known == nil || known.Began != turn.Began {
				continue // it has ended meanwhile
			}
			c.NoteMessage(turn.Key)
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
			c.NoteMessage(turn.Key)
			if err := c.User.Give(ctx, queue, turn, false); err != nil {
				return err
			}
			c.User.Receive(ctx)
		}
	}
	return nil
}

// check runs the census at its times.
func (c *Coordinator[K]) check(ctx workflow.Context) {
	now := workflow.Now(ctx).Unix()
	if c.census.Ready() {
		c.count(c.census.Advance(ctx, 0, nil), now) // without workflows it plans no check: NextCheck does
	}
	// If the run is about to end, the next one checks.
	if c.NextCheck != 0 && c.NextCheck <= now && !c.census.Busy() && !workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
		if ids := c.watched(); len(ids) > 0 {
			c.census.Check(ctx, ids)
		}
		c.NextCheck = 0
	}
}

// watched returns the workflows of all members with a turn and, with Everybody, of those that wait.
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

// count notes in the queues what a check has found.
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
				queue.MarkRunning(key)
			}
		}
		for _, id := range found.Closed {
			key, known := keys[id]
			if known && c.Everybody {
				queue.Leave(key)
			}
			if known && queue.MarkClosed(key, now) >= c.Grace {
				c.User.Lost(queue, key)
			}
		}
	}
}

// planCheck plans the next check: after the interval, and sooner if a workflow was found not to run.
func (c *Coordinator[K]) planCheck(now int64) {
	interval, anybody := c.Interval, false
	for _, queue := range c.Queues {
		if queue.doubtful() {
			interval = min(interval, int64(CensusInterval/time.Second))
		}
		anybody = anybody || len(queue.Turns) > 0 || (c.Everybody && len(queue.Members) > 0)
	}
	switch {
	case !anybody:
		c.NextCheck = 0
	case c.NextCheck == 0 || c.NextCheck > now+interval:
		c.NextCheck = now + interval
	}
}

// sleep sets the timer that wakes the run when the next turn, refill or check is due.
func (c *Coordinator[K]) sleep(ctx workflow.Context) {
	c.planCheck(workflow.Now(ctx).Unix())
	at := Earlier(c.NextCheck, c.Until)
	for _, queue := range c.Queues {
		at = Earlier(at, Earlier(queue.Next(), queue.refillAt(workflow.Now(ctx).Unix())))
	}
	c.wake(ctx, at)
}

// Earlier returns the earlier of two times; 0 is none.
func Earlier(a, b int64) int64 {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// wake sets one timer for all; it is left as it is if it fires earlier.
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
