package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/contract"
)

// handle answers queries and Updates.
func (r *fdbExpiryQueueRun) handle(ctx workflow.Context) error {
	err := workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.FDBExpiryQueueState, error) {
		return contract.FDBExpiryQueueState{Limit: r.pace.Limit, Turns: r.turns, Entries: r.order(workflow.Now(ctx).Unix())}, nil
	})
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandlerWithOptions(ctx, contract.UpdateExpireNow, r.expireNow, workflow.UpdateHandlerOptions{
		Validator: r.validateName, Description: "Put a backup first, whatever the minimum interval",
	})
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandlerWithOptions(ctx, contract.UpdateRemoveEntry, r.removeEntry, workflow.UpdateHandlerOptions{
		Validator: r.validateName, Description: "Take a backup out of the queue until it asks again",
	})
	if err != nil {
		return err
	}
	return workflow.SetUpdateHandlerWithOptions(ctx, contract.UpdateSetExpiryLimit, r.setLimit, workflow.UpdateHandlerOptions{
		Validator: r.validateLimit, Description: "Set how many turns may run at a time",
	})
}

func refuseFDBQueue(format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), contract.ErrorFDBQueueInvalid, nil)
}

// validateName refuses, without a trace in the history, a name that nobody in the queue has, unless that is not known yet.
func (r *fdbExpiryQueueRun) validateName(name contract.FDBQueueName) error {
	if name.Namespace == "" || name.Name == "" {
		return refuseFDBQueue("want the namespace and the name of a FoundationDBBackup")
	}
	if waits, _ := r.named(name); r.found && !waits && r.requests.Len() == 0 {
		return r.absent(name)
	}
	return nil
}

func (r *fdbExpiryQueueRun) absent(name contract.FDBQueueName) error {
	text := fmt.Sprintf("%s/%s is not in the queue of Kubernetes cluster %s.", name.Namespace, name.Name, r.cluster)
	if _, since := r.named(name); since != 0 {
		text += fmt.Sprintf(" Its last turn runs since %s and is not disturbed.", stamp(since))
	}
	return refuseFDBQueue("%s A FoundationDBBackup is in it if it has an expiry policy, or is being deleted with its data: "+
		"look at its spec, and at what 'holdfast fdb queue' shows", text)
}

// known waits until it is known who is in the queue, and reads what was asked before.
func (r *fdbExpiryQueueRun) known(ctx workflow.Context, name contract.FDBQueueName) (since int64, err error) {
	if err := workflow.Await(ctx, func() bool { return r.found }); err != nil {
		return 0, err
	}
	r.receive(ctx)
	r.touched = true
	waits, since := r.named(name)
	if !waits {
		return 0, r.absent(name)
	}
	return since, nil
}

func (r *fdbExpiryQueueRun) expireNow(ctx workflow.Context, name contract.FDBQueueName) (contract.FDBQueueAnswer, error) {
	since, err := r.known(ctx, name)
	if err != nil {
		return contract.FDBQueueAnswer{}, err
	}
	r.hurry(name)
	text := fmt.Sprintf("%s/%s is first in the queue", name.Namespace, name.Name)
	switch running := r.running(); {
	case since != 0:
		text += fmt.Sprintf(". A turn of it runs since %s; the next begins when that has ended", stamp(since))
	case running >= r.pace.Limit:
		text += fmt.Sprintf(". Its turn begins when one of the %d that run has ended (at most %d at a time)", running, r.pace.Limit)
	default:
		text += " and its turn begins now"
	}
	return contract.FDBQueueAnswer{Message: text + "."}, nil
}

func (r *fdbExpiryQueueRun) removeEntry(ctx workflow.Context, name contract.FDBQueueName) (contract.FDBQueueAnswer, error) {
	since, err := r.known(ctx, name)
	if err != nil {
		return contract.FDBQueueAnswer{}, err
	}
	r.forget(name)
	text := fmt.Sprintf("%s/%s is out of the queue until it asks again: when its object changes, its workflow starts anew, "+
		"or an hour has passed.",
		name.Namespace, name.Name)
	if since != 0 {
		text += fmt.Sprintf(" The turn that runs since %s goes on.", stamp(since))
	}
	return contract.FDBQueueAnswer{Message: text}, nil
}

func (r *fdbExpiryQueueRun) validateLimit(in contract.FDBQueueLimit) error {
	if in.Limit < 0 || in.Limit > maxFDBExpiryLimit {
		return refuseFDBQueue("limit: want a number from 0 to %d, not %d; 0 goes back to --fdb-expiry-concurrency",
			maxFDBExpiryLimit, in.Limit)
	}
	return nil
}

func (r *fdbExpiryQueueRun) setLimit(ctx workflow.Context, in contract.FDBQueueLimit) (contract.FDBQueueAnswer, error) {
	r.limit = in.Limit
	r.pace = r.paceNow(ctx)
	r.touched = true
	text := fmt.Sprintf("At most %d may run at a time", r.pace.Limit)
	if in.Limit == 0 {
		text += ", as --fdb-expiry-concurrency says"
	} else {
		text += " for as long as there is a queue"
	}
	if running := r.running(); running > r.pace.Limit {
		text += fmt.Sprintf(". The %d that run go on; the next begins when fewer than %d do", running, r.pace.Limit)
	}
	return contract.FDBQueueAnswer{Message: text + "."}, nil
}

func fdbTurnSummary(turn contract.FDBTurn) string {
	if turn.Job == contract.FDBJobDelete {
		return "Delete the data of " + turn.Ref.String()
	}
	return "Expire " + turn.Ref.String()
}

// details says in Markdown whose turn it is and who waits.
func (r *fdbExpiryQueueRun) details(now int64) string {
	text := fmt.Sprintf("**Expirations and deletions:** %d of at most %d at a time; %d in the queue.\n",
		r.running(), r.pace.Limit, len(r.entries))
	text += listedFDB("Run:", r.turns, func(turn contract.FDBTurn) string {
		line := fmt.Sprintf("- `%s` (%s) since %s", oneLine(turn.Ref.String()), turn.Job, stamp(turn.Turn))
		if turn.Closing {
			line += "; its pod is in termination and does not count"
		}
		if turn.ClosedSince != 0 {
			line += fmt.Sprintf("; its workflow does not run since %s and is started again", stamp(turn.ClosedSince))
		}
		return line
	})
	return text + listedFDB("Have their turns in this order:", r.order(now), func(entry contract.FDBQueueEntry) string {
		line := fmt.Sprintf("- `%s` (%s)", oneLine(entry.Ref.String()), entry.Job)
		if entry.NotBefore != 0 {
			line += " not before " + stamp(entry.NotBefore)
		}
		if entry.Last != 0 {
			line += "; last turn " + stamp(entry.Last)
		}
		if entry.Outcome != "" {
			line += ": " + string(entry.Outcome)
		}
		return line
	})
}

// listedFDB is a heading and the first of a list.
func listedFDB[T any](heading string, list []T, line func(T) string) string {
	if len(list) == 0 {
		return ""
	}
	text := "\n" + heading + "\n\n"
	for i, each := range list {
		if i == maxShownFDBBackups {
			return text + fmt.Sprintf("- and %d more\n", len(list)-i)
		}
		text += line(each) + "\n"
	}
	return text
}

// paceNow is what this worker was started with, and the limit that people have set. It goes through the history, so that a worker
// with other flags can take over.
func (r *fdbExpiryQueueRun) paceNow(ctx workflow.Context) fdbPace {
	fallback := fdbPace{
		Limit: defaultFDBExpiryLimit, Retry: int64(defaultFDBExpiryRetryInterval / time.Second),
		Min: int64(defaultFDBExpiryMinInterval / time.Second),
	}
	present := func(workflow.Context) any {
		pace := fallback
		if r.options.FDBExpiryLimit > 0 {
			pace.Limit = r.options.FDBExpiryLimit
		}
		if r.options.FDBExpiryRetryInterval > 0 {
			pace.Retry = max(1, int64(r.options.FDBExpiryRetryInterval/time.Second))
		}
		if r.options.FDBExpiryMinInterval > 0 {
			pace.Min = max(1, int64(r.options.FDBExpiryMinInterval/time.Second))
		}
		return pace
	}
	pace := fallback
	err := workflow.MutableSideEffect(ctx, fdbPaceEffect, present, func(a, b any) bool { return a == b }).Get(&pace)
	if err != nil {
		workflow.GetLogger(ctx).Error("limit and intervals in the history not readable, the defaults hold", "error", err)
		pace = fallback
	}
	if r.limit > 0 {
		pace.Limit = r.limit
	}
	return pace
}

func (r *fdbExpiryQueueRun) turnID(ref contract.ObjectRef) string {
	return contract.WorkflowID(r.cluster, contract.KindFDBExpiry, ref)
}

func (r *fdbExpiryQueueRun) deserted() bool { return len(r.entries)+len(r.turns) == 0 }
