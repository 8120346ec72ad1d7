package expiryqueue

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
	"holdfast.dev/holdfast/workflows/turns"
)

// handle answers queries and Updates.
func (r *queueRun) handle(ctx workflow.Context) error {
	return errors.Join(
		workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.FDBExpiryQueueState, error) {
			entries := turns.Each(r.Order(workflow.Now(ctx).Unix()), fdbEntryOf)
			return contract.FDBExpiryQueueState{Limit: r.Limit, Turns: r.running(), Entries: entries, Beyond: r.Beyond.Count}, nil
		}),
		workflow.SetUpdateHandlerWithOptions(ctx, contract.UpdateExpireNow, r.expireNow, workflow.UpdateHandlerOptions{
			Validator: r.validateName, Description: "Put a backup first, regardless of the minimum interval",
		}),
		workflow.SetUpdateHandlerWithOptions(ctx, contract.UpdateRemoveEntry, r.removeEntry, workflow.UpdateHandlerOptions{
			Validator: r.validateName, Description: "Remove a backup from the queue until it asks again",
		}),
		workflow.SetUpdateHandlerWithOptions(ctx, contract.UpdateSetExpiryLimit, r.setLimit, workflow.UpdateHandlerOptions{
			Validator: r.validateLimit, Description: "Set how many turns may run at a time",
		}))
}

func refuse(format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), contract.ErrorFDBQueueInvalid, nil)
}

// validateName refuses, without a trace in the history, a name that is not in the queue. If members are still unknown it accepts.
func (r *queueRun) validateName(name contract.FDBQueueName) error {
	if name.Namespace == "" || name.Name == "" {
		return refuse("namespace and name: must be those of a FoundationDBBackup")
	}
	if waits, _ := r.named(name); r.Found && !waits && r.requests.Len() == 0 && r.Beyond.Count == 0 {
		return r.absent(name)
	}
	return nil
}

func (r *queueRun) absent(name contract.FDBQueueName) error {
	text := fmt.Sprintf("%s/%s is not in the queue of Kubernetes cluster %s.", name.Namespace, name.Name, r.cluster)
	if _, since := r.named(name); since != 0 {
		text += fmt.Sprintf(" Its last turn has run since %s and continues.", details.Stamp(since))
	}
	return refuse("%s A FoundationDBBackup is in it if it has an expiry policy, or is being deleted with its data: "+
		"check its spec, and what 'holdfast fdb queue' shows", text)
}

// fulfil fulfils a wish, and returns since when a turn of the backup runs, or 0. A backup that is not carried is found in the
// objects.
func (r *queueRun) fulfil(ctx workflow.Context, wish *wish) (since int64, err error) {
	if !r.Found {
		found, err := workflow.AwaitWithTimeout(ctx, turns.ListTimeout, func() bool { return r.Found })
		if err != nil {
			return 0, err
		}
		if !found {
			return 0, r.unlisted()
		}
	}
	r.Receive(ctx) // earlier requests
	r.Touch()
	_, since = r.named(wish.name)
	switch r.grant(wish); {
	case wish.met:
	case r.Beyond.Count == 0:
		return 0, r.absent(wish.name)
	default:
		r.wishes = append(r.wishes, wish)
		listed, err := r.Relist(ctx)
		switch {
		case err != nil:
			return 0, err
		case !listed:
			wish.name = contract.FDBQueueName{} // it is refused, and must not be fulfilled later
			return 0, r.unlisted()
		case !wish.met:
			return 0, r.absent(wish.name)
		}
	}
	return since, nil
}

// unlisted refuses an Update because the objects could not be listed in time.
func (r *queueRun) unlisted() error {
	return refuse("the FoundationDBBackups could not be listed within %s; try again later", turns.ListTimeout)
}

func (r *queueRun) expireNow(ctx workflow.Context, name contract.FDBQueueName) (contract.TurnAnswer, error) {
	since, err := r.fulfil(ctx, &wish{name: name, first: true})
	if err != nil {
		return contract.TurnAnswer{}, err
	}
	text := fmt.Sprintf("%s/%s is first in the queue", name.Namespace, name.Name)
	_, begun := r.named(name)
	switch running := r.Running(); {
	case since != 0:
		text += fmt.Sprintf(". Its current turn has run since %s; the next begins when that has ended", details.Stamp(since))
	case begun == 0 && running >= r.Limit:
		text += fmt.Sprintf(". Its turn begins when one of the %d running turns has ended (at most %d at a time)", running, r.Limit)
	default:
		text += " and its turn begins now"
	}
	return contract.TurnAnswer{Message: text + "."}, nil
}

func (r *queueRun) removeEntry(ctx workflow.Context, name contract.FDBQueueName) (contract.TurnAnswer, error) {
	since, err := r.fulfil(ctx, &wish{name: name})
	if err != nil {
		return contract.TurnAnswer{}, err
	}
	text := fmt.Sprintf("%s/%s is out of the queue until it asks again: when its object changes, its workflow starts again, "+
		"or an hour has passed.",
		name.Namespace, name.Name)
	if since != 0 {
		text += fmt.Sprintf(" Its turn, which has run since %s, continues.", details.Stamp(since))
	}
	return contract.TurnAnswer{Message: text}, nil
}

func (r *queueRun) validateLimit(in contract.FDBQueueLimit) error {
	if in.Limit < 0 || in.Limit > maxFDBExpiryLimit {
		return refuse("limit: must be a number from 0 to %d, not %d; 0 restores --fdb-expiry-concurrency",
			maxFDBExpiryLimit, in.Limit)
	}
	return nil
}

func (r *queueRun) setLimit(ctx workflow.Context, in contract.FDBQueueLimit) (contract.TurnAnswer, error) {
	r.limit = in.Limit
	r.Pace(ctx)
	r.Touch()
	text := fmt.Sprintf("At most %d may run at a time", r.Limit)
	if in.Limit == 0 {
		text += ", as --fdb-expiry-concurrency says"
	} else {
		text += " for as long as there is a queue"
	}
	if running := r.Running(); running > r.Limit {
		text += fmt.Sprintf(". The %d running turns continue; the next begins when fewer than %d run", running, r.Limit)
	}
	return contract.TurnAnswer{Message: text + "."}, nil
}

// Details shows in Markdown which turns run and who waits.
func (r *queueRun) Details(now int64) string {
	text := fmt.Sprintf("**Expirations and deletions:** %d of at most %d at a time; %d in the queue.\n",
		r.Running(), r.Limit, len(r.Members)+r.Beyond.Count)
	text += turns.Listed("Run:", r.running(), len(r.Turns), func(turn contract.FDBTurn) string {
		line := fmt.Sprintf("- `%s` (%s) since %s", details.OneLine(turn.Ref.String()), turn.Job, details.Stamp(turn.Turn))
		if turn.Closing {
			line += "; its pod is terminating and does not count"
		}
		if turn.ClosedSince != 0 {
			line += fmt.Sprintf("; its workflow has not run since %s and is started again", details.Stamp(turn.ClosedSince))
		}
		return line
	})
	order := turns.Each(r.Head(now, turns.Shown), fdbEntryOf)
	return text + turns.Listed("Next turns, in this order:", order, len(r.Members), func(entry contract.FDBQueueEntry) string {
		line := fmt.Sprintf("- `%s` (%s)", details.OneLine(entry.Ref.String()), entry.Job)
		if entry.NotBefore != 0 {
			line += " not before " + details.Stamp(entry.NotBefore)
		}
		if entry.Last != 0 {
			line += "; last turn " + details.Stamp(entry.Last)
		}
		if entry.Outcome != "" {
			line += ": " + string(entry.Outcome)
		}
		return line
	}) + r.BeyondText()
}
