package turns

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// AskTimeout is how long objects are asked for somebody whom an Update names.
const AskTimeout = time.Minute

// listing is how objects are asked, beside all else, one time after the other. The zero value has asked nobody.
type listing struct {
	wanted, begun, ended int // which of them; none runs if as many have ended as have begun
	err                  error
}

func (l *listing) runs() bool { return l.begun > l.ended }

// due reports whether one has failed, or the next is to begin.
func (l *listing) due() bool { return l.err != nil || (!l.runs() && l.wanted > l.begun) }

// begin asks objects before any turn is given, and reports whether the run goes on. What is asked of the coordinator waits
// meanwhile: it is newer. A run whose history is long leaves the asking to the next.
func (c *Coordinator[K]) begin(ctx workflow.Context) (bool, error) {
	if c.Found {
		return true, nil
	}
	c.list(ctx)
	ends := func() bool {
		return workflow.GetInfo(ctx).GetContinueAsNewSuggested() && workflow.AllHandlersFinished(ctx)
	}
	if err := workflow.Await(ctx, func() bool { return !c.listing.runs() || ends() }); err != nil {
		return false, err
	}
	if c.listing.runs() { // nothing may yield up to the return
		c.User.Receive(ctx)
		return false, c.User.Next(ctx)
	}
	return c.listing.err == nil, c.listing.err
}

// list asks objects. A run that continues as new meanwhile forgets that: the next one asks when it needs to.
func (c *Coordinator[K]) list(ctx workflow.Context) {
	c.listing.begun++
	for _, queue := range c.Queues {
		queue.Ask()
	}
	workflow.Go(ctx, func(ctx workflow.Context) {
		c.listing.err = c.User.Find(ctx)
		c.Found = c.Found || c.listing.err == nil
		for _, queue := range c.Queues {
			queue.told(workflow.Now(ctx).Unix())
		}
		c.listing.ended++
		c.touched = true
	})
}

// refill asks objects for those beyond when there is room for them, or an Update wants it.
func (c *Coordinator[K]) refill(ctx workflow.Context) error {
	due, now := c.listing.wanted > c.listing.begun, workflow.Now(ctx).Unix()
	for _, queue := range c.Queues {
		due = due || queue.RefillDue(now)
	}
	if due && !c.listing.runs() {
		c.list(ctx)
	}
	return c.listing.err
}

// Ask has objects asked from now on, and waits for that, but not for long; it reports whether they have told.
func (c *Coordinator[K]) Ask(ctx workflow.Context) (bool, error) {
	wanted := c.listing.begun + 1
	c.listing.wanted = wanted
	return workflow.AwaitWithTimeout(ctx, AskTimeout, func() bool { return c.listing.ended >= wanted })
}
