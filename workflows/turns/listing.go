package turns

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// ListTimeout is how long an Update waits for a listing of the objects that it needs.
const ListTimeout = time.Minute

// listing is the state of the listings of objects, which run beside everything else, one after the other. The zero value has
// begun none.
type listing struct {
	wanted, begun, ended int // their numbers; none runs if as many have ended as have begun
	err                  error
}

func (l *listing) runs() bool { return l.begun > l.ended }

// due reports whether a listing has failed, or the next is to begin.
func (l *listing) due() bool { return l.err != nil || (!l.runs() && l.wanted > l.begun) }

// begin lists the objects before any turn is given, and reports whether the run goes on. Requests to the coordinator wait
// meanwhile: they are newer. A run whose history is long leaves the listing to the next.
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

// list lists the objects. A run that continues as new meanwhile forgets that: the next one lists them when it needs to.
func (c *Coordinator[K]) list(ctx workflow.Context) {
	c.listing.begun++
	for _, queue := range c.Queues {
		queue.Listing()
	}
	workflow.Go(ctx, func(ctx workflow.Context) {
		c.listing.err = c.User.Find(ctx)
		c.Found = c.Found || c.listing.err == nil
		for _, queue := range c.Queues {
			queue.listed(workflow.Now(ctx).Unix())
		}
		c.listing.ended++
		c.touched = true
	})
}

// refill lists the objects when there is room for members beyond, or an Update needs it.
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

// WantListing has the objects listed from now on, and does not wait for the result.
func (c *Coordinator[K]) WantListing() { c.listing.wanted = max(c.listing.wanted, c.listing.begun+1) }

// WantsListing reports whether a listing is wanted that has not ended: a run that continues as new leaves it to the next.
func (c *Coordinator[K]) WantsListing() bool {
	return c.listing.runs() || c.listing.wanted > c.listing.begun
}

// Relist lists the objects from now on, and waits for the result, at most ListTimeout. It reports whether the listing has ended.
func (c *Coordinator[K]) Relist(ctx workflow.Context) (bool, error) {
	wanted := c.listing.begun + 1
	c.listing.wanted = wanted
	return workflow.AwaitWithTimeout(ctx, ListTimeout, func() bool { return c.listing.ended >= wanted })
}
