package queue

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
	"holdfast.dev/holdfast/workflows/turns"
)

// Bounds of UpdateSetTurnLimit.
const (
	maxLimit    = contract.MaxTurns
	maxLimitFor = 7 * 24 * time.Hour
	maxReason   = 500
)

// handle answers queries and Updates.
func (r *queueRun) handle(ctx workflow.Context) error {
	return errors.Join(
		workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.VeleroQueueState, error) {
			return r.state(workflow.Now(ctx).Unix()), nil
		}),
		workflow.SetQueryHandler(ctx, contract.QueryTurnOrder, func() (contract.TurnOrder, error) {
			return r.order(workflow.Now(ctx).Unix()), nil
		}),
		workflow.SetUpdateHandlerWithOptions(ctx, contract.UpdateNextTurn, r.next, workflow.UpdateHandlerOptions{
			Validator: r.validateNext, Description: "Give an object the next turn",
		}),
		workflow.SetUpdateHandlerWithOptions(ctx, contract.UpdateSetTurnLimit, r.setLimit, workflow.UpdateHandlerOptions{
			Validator: r.validateLimit, Description: "Set for a time how many turns are given at once",
		}))
}

func (r *queueRun) state(now int64) contract.VeleroQueueState {
	state := contract.VeleroQueueState{Rules: r.shownRules()}
	if r.pausedUntil > now {
		state.PausedUntil = r.pausedUntil
	}
	for _, of := range r.pools {
		state.Pools = append(state.Pools, contract.PoolShown{
			Pool: of.name, Limit: of.Limit, Override: of.override, Turns: of.running(),
			Waiting: turns.Each(of.Order(now), shown), Beyond: of.Beyond.Count,
		})
	}
	return state
}

func (r *queueRun) order(now int64) contract.TurnOrder {
	order := contract.TurnOrder{Waiting: map[contract.Pool][]string{}, Active: map[contract.Pool]int{}, Paused: !r.Found}
	for _, of := range r.pools {
		order.Active[of.name] = len(of.Turns)
		for _, member := range of.Order(now) {
			order.Waiting[of.name] = append(order.Waiting[of.name], member.Key.UID)
		}
	}
	return order
}

func refuse(format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), contract.ErrorVeleroQueueInvalid, nil)
}

// wish is that an object has the next turn.
type wish struct {
	name contract.TurnName
	met  bool // it was in the queue or in the objects
}

func (w *wish) is(key contract.TurnKey) bool { return nameOf(key) == w.name }

// drop: it was refused, and must not be fulfilled later.
func (w *wish) drop() { w.name = contract.TurnName{} }

func nameOf(key contract.TurnKey) contract.TurnName {
	return contract.TurnName{Pool: key.Pool, Namespace: key.Namespace, Name: key.Name}
}

// grant fulfils a wish if the object waits in the queue.
func (p *pool) grant(wish *wish) { wish.met = p.PutFirst(wish.is) || wish.met }

// held returns since when the object has a turn; 0 if it has none.
func (p *pool) held(name contract.TurnName) int64 {
	for _, turn := range p.Turns {
		if nameOf(turn.Key) == name {
			return turn.Began
		}
	}
	return 0
}

func (r *queueRun) validatePool(name contract.Pool) error {
	of := r.pool(name)
	if of == nil {
		return refuse("pool: must be %s or %s, not %q", contract.PoolBackups, contract.PoolRestores, name)
	}
	if r.Found && r.unlimited(name) {
		return refuse("the policy sets no limit for %s in Kubernetes cluster %s: Velero is handed all of them at once. "+
			"Set queue.%s in key holdfast of the policy first", name, r.cluster, fieldOf(name))
	}
	return nil
}

func fieldOf(pool contract.Pool) string {
	if pool == contract.PoolRestores {
		return "maxActiveRestores"
	}
	return "maxActive"
}

// validateNext refuses, without a trace in the history, a name that is not in the queue. If members are still unknown it accepts.
func (r *queueRun) validateNext(in contract.NextTurn) error {
	switch {
	case in.Namespace == "" || in.Name == "":
		return refuse("namespace and name: must be those of a %s", in.Pool.Kind().Kubernetes)
	case strings.TrimSpace(in.Reason) == "":
		return refuse("reason: must be set; it stays in the history of the queue")
	case len(in.Reason) > maxReason:
		return refuse("reason: must have at most %d bytes, has %d", maxReason, len(in.Reason))
	}
	if err := r.validatePool(in.Pool); err != nil {
		return err
	}
	of := r.pool(in.Pool)
	if since := of.held(in.TurnName); since != 0 {
		return refuse("%s/%s has had its turn since %s", in.Namespace, in.Name, details.Stamp(since))
	}
	known := len(of.Waiting((&wish{name: in.TurnName}).is)) > 0
	if r.Found && !known && !r.Pending() && of.Beyond.Count == 0 {
		return r.absent(in.TurnName)
	}
	return nil
}

func (r *queueRun) absent(name contract.TurnName) error {
	return refuse("%s/%s is not waiting for a turn in Kubernetes cluster %s: a %s waits while its condition Queued has reason "+
		"WaitingForTurn; see what 'holdfast queue' shows", name.Namespace, name.Name, r.cluster, name.Pool.Kind().Kubernetes)
}

// next gives an object the next turn. One that is not carried is found in the objects.
func (r *queueRun) next(ctx workflow.Context, in contract.NextTurn) (contract.TurnAnswer, error) {
	wish, of := &wish{name: in.TurnName}, r.pool(in.Pool)
	if err := r.begun(ctx, in.Pool); err != nil {
		return contract.TurnAnswer{}, err
	}
	r.Receive(ctx) // earlier news
	r.Pace(ctx)
	r.Touch()
	if of.grant(wish); !wish.met && of.held(wish.name) == 0 {
		r.wishes = append(r.wishes, wish)
		ended, err := r.Relist(ctx)
		if err != nil {
			return contract.TurnAnswer{}, err
		}
		if !ended {
			wish.drop()
			return contract.TurnAnswer{}, r.unlisted()
		}
	}
	switch {
	case of.held(wish.name) != 0:
		return contract.TurnAnswer{Message: fmt.Sprintf("%s/%s has its turn.", in.Namespace, in.Name)}, nil
	case !wish.met:
		return contract.TurnAnswer{}, r.absent(in.TurnName)
	}
	workflow.GetLogger(ctx).Info("an operator gives the next turn", "pool", in.Pool, "namespace", in.Namespace, "name", in.Name,
		"reason", in.Reason)
	text := fmt.Sprintf("%s/%s has the next turn", in.Namespace, in.Name)
	if of.Running() >= of.Limit {
		text += fmt.Sprintf(": %d of %d run, and it begins when fewer do", of.Running(), of.Limit)
	}
	return contract.TurnAnswer{Message: text + "."}, nil
}

// begun waits until the objects have been listed and the policy was read, and refuses a pool without a limit.
func (r *queueRun) begun(ctx workflow.Context, name contract.Pool) error {
	if !r.Found {
		found, err := workflow.AwaitWithTimeout(ctx, turns.ListTimeout, func() bool { return r.Found })
		if err != nil {
			return err
		}
		if !found {
			return r.unlisted()
		}
	}
	return r.validatePool(name)
}

func (r *queueRun) unlisted() error {
	return refuse("the objects could not be listed within %s: see the pending activity of workflow %s, and try again",
		turns.ListTimeout, contract.VeleroQueueID(r.cluster))
}

// validateLimit refuses a limit that cannot hold.
func (r *queueRun) validateLimit(in contract.TurnLimit) error {
	switch {
	case in.Limit < 0 || in.Limit > maxLimit:
		return refuse("limit: must be a number from 0 to %d, not %d; 0 restores the policy's", maxLimit, in.Limit)
	case in.Limit > 0 && (in.For <= 0 || in.For > int64(maxLimitFor/time.Second)):
		return refuse("for: must be a duration of at most %s; a lasting limit belongs into the policy", maxLimitFor)
	}
	return r.validatePool(in.Pool)
}

func (r *queueRun) setLimit(ctx workflow.Context, in contract.TurnLimit) (contract.TurnAnswer, error) {
	if err := r.begun(ctx, in.Pool); err != nil {
		return contract.TurnAnswer{}, err
	}
	of := r.pool(in.Pool)
	of.override = nil
	if in.Limit > 0 {
		of.override = &contract.LimitOverride{Limit: in.Limit, Until: workflow.Now(ctx).Unix() + in.For}
	}
	r.Pace(ctx)
	r.Touch()
	text := fmt.Sprintf("%s: %d at a time, as the policy says", in.Pool, r.rules.Limits[in.Pool])
	if of.override != nil {
		text = fmt.Sprintf("%s: %d at a time until %s, and then %d as the policy says",
			in.Pool, in.Limit, details.Stamp(of.override.Until), r.rules.Limits[in.Pool])
	}
	if running := of.Running(); of.Limit > 0 && running > of.Limit {
		text += fmt.Sprintf(". The %d running turns continue; the next begins when fewer than %d run", running, of.Limit)
	}
	return contract.TurnAnswer{Message: text + "."}, nil
}

// Details shows in Markdown who has a turn and who waits.
func (r *queueRun) Details(now int64) string {
	text := ""
	if r.pausedUntil > now {
		text = fmt.Sprintf("**Paused until %s:** an earlier run was lost, and turns that it gave may still be used.\n\n",
			details.Stamp(r.pausedUntil))
	}
	for _, of := range r.pools {
		text += of.details(now)
	}
	return text
}

func (p *pool) details(now int64) string {
	if p.Limit == 0 && len(p.Turns)+len(p.Members) == 0 {
		return fmt.Sprintf("**Velero %s:** no limit; Velero is handed all of them at once.\n\n", p.name)
	}
	text := fmt.Sprintf("**Velero %s:** %d of at most %d at a time; %d wait.\n",
		p.name, p.Running(), p.Limit, len(p.Members)+p.Beyond.Count)
	if p.override != nil {
		text += fmt.Sprintf("\nAn operator has set the limit until %s.\n", details.Stamp(p.override.Until))
	}
	text += turns.Listed("Have a turn:", p.running(), len(p.Turns), func(turn contract.HeldTurn) string {
		line := fmt.Sprintf("- `%s` since %s", details.OneLine(turn.String()), details.Stamp(turn.Turn))
		if turn.ClosedSince != 0 {
			line += fmt.Sprintf("; its workflow has not run since %s", details.Stamp(turn.ClosedSince))
		}
		return line
	})
	next := turns.Each(p.Head(now, turns.Shown), shown)
	return text + turns.Listed("Next turns, in this order:", next, len(p.Members), func(member contract.TurnMember) string {
		line := fmt.Sprintf("- `%s` (%s)", details.OneLine(member.String()), contract.LaneName(member.Lane))
		if member.First {
			line += ", put first by an operator"
		}
		return line
	}) + p.BeyondText() + "\n"
}
