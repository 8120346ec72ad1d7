package queue_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

// give is contract.GiveTurns: it signals the workflows of objects, which run from then on.
func (w *world) give(ctx context.Context, in contract.TurnsGiven) (contract.TurnsRefused, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if activity.GetInfo(ctx).IsLocalActivity {
		w.fault("turns are given by a local activity: after a kill others may be given beside them")
	}
	if in.Cluster != "west" || len(in.Turns) > contract.MaxTurnsGiven {
		w.fault("%d turns at once in cluster %q", len(in.Turns), in.Cluster)
	}
	if w.refused > 0 {
		w.refused--
		return contract.TurnsRefused{}, errors.New("away")
	}
	var refused contract.TurnsRefused
	for _, turn := range in.Turns {
		if turn.Name == w.never {
			refused.Keys = append(refused.Keys, turn.TurnKey)
			continue
		}
		if o := w.of(turn.TurnKey); o != nil {
			w.gives(o, contract.Turn{Number: turn.Turn, Given: in.Given})
		}
	}
	if w.lost > 0 {
		w.lost--
		return contract.TurnsRefused{}, errors.New("the answer was lost")
	}
	return refused, nil
}

func (w *world) gives(o *object, turn contract.Turn) {
	again := ""
	switch {
	case turn.Number < o.last:
		w.fault("%s gets turn %d after turn %d", o.key.Name, turn.Number, o.last)
	case turn.Number == o.last:
		again = " again"
	case o.active && !o.apart && !o.gone && !o.orphan:
		w.fault("%s gets turn %d while Velero works on it by turn %d", o.key.Name, turn.Number, o.turn.Number)
	default:
		o.had++
	}
	o.last = max(o.last, turn.Number)
	w.notes("%s is given turn %d%s", o.key.Name, turn.Number, again)
	w.given = append(w.given, fmt.Sprintf("%d %s%s", int(w.since()/time.Second), o.key.Name, again))
	o.flow = true
	if do := w.atTurn; do != nil {
		w.atTurn = nil
		w.in(0, func() { do(o) })
	}
	flows := o.flows
	w.in(w.delay(), func() {
		if o.flows == flows {
			w.serves(o, turn)
		}
	})
}

// delay returns how long a signal takes.
func (w *world) delay() time.Duration {
	switch {
	case !w.slow || w.chance.Intn(3) == 0:
		return 0
	case w.chance.Intn(4) > 0:
		return time.Duration(w.chance.Intn(20_000)) * time.Millisecond
	}
	return time.Duration(20_000+w.chance.Intn(20_000)) * time.Millisecond
}

// serves is a pass of an object's workflow that has received a turn: turns.Held, and what the activities do.
func (w *world) serves(o *object, turn contract.Turn) {
	if turn.Given >= o.turn.Given {
		o.turn = turn
	}
	switch {
	case o.making: // in the same workflow, one after the other
	case o.active && o.orphan: // contract.ReturnTurn keeps it, and the workflow ends
		o.turn, o.flow = contract.Turn{}, false
	case o.active && !o.gone && !o.stalled:
	case o.waits && !o.gone && o.turn.Remaining(w.start.Add(w.since())).Number > 0:
		o.making = true
		w.in(time.Duration(w.slowly(10_000))*time.Millisecond, func() { w.makes(o) })
	default:
		w.returns(o, o.waits && !o.gone)
	}
}

func (w *world) slowly(most int) int {
	if !w.slow {
		return 0
	}
	return w.chance.Intn(most)
}

func (w *world) returns(o *object, waits bool) {
	w.notes("%s returns turn %d, waits: %t", o.key.Name, o.turn.Number, waits)
	w.send = append(w.send, contract.TurnReturn{Cluster: "west", TurnKey: o.key, Turn: o.turn.Number, Waits: waits})
	if w.lossy && w.chance.Intn(4) == 0 { // an attempt that was repeated
		w.send = append(w.send, w.send[len(w.send)-1])
	}
	o.turn, o.flow = contract.Turn{}, o.active && !o.gone
}

// makes makes the Velero object.
func (w *world) makes(o *object) {
	o.making = false
	if !o.waits || o.gone {
		return
	}
	o.waits, o.active, o.made = false, true, w.unix()
	w.notes("%s is made", o.key.Name)
	if count, most := w.active(o.key.Pool), w.most(o.key.Pool); count > most {
		w.fault("%d Velero objects are unfinished with %s, and the limit is %d", count, o.key.Name, most)
	}
	w.works(o)
}

// makesWithout makes the Velero object if the policy gives no turns.
func (w *world) makesWithout(o *object) {
	if w.rules.Limits[o.key.Pool] > 0 || !o.waits || o.making || o.gone {
		return
	}
	o.waits, o.active, o.apart, o.flow, o.made = false, true, true, true, w.unix()
	w.works(o)
}

func (w *world) works(o *object) {
	if !w.hold {
		w.in(time.Duration(w.takes+w.chance.Intn(w.vary+1))*time.Second, func() { w.finishes(o, w.lossy && w.chance.Intn(3) == 0) })
	}
}

// active counts the unfinished Velero objects that were made with turns.
func (w *world) active(pool contract.Pool) int {
	count := 0
	for _, o := range w.objects {
		if o.key.Pool == pool && o.active && !o.apart && !o.gone {
			count++
		}
	}
	return count
}

// finishes ends what Velero does. The watcher's news may be lost.
func (w *world) finishes(o *object, unheard bool) {
	if !o.active || o.gone {
		return
	}
	w.notes("%s is finished, unheard: %t", o.key.Name, unheard)
	o.active, o.flow, o.turn = false, false, contract.Turn{}
	if !unheard && !o.orphan {
		w.send = append(w.send, contract.TurnNews{Ended: []contract.TurnKey{o.key}})
	}
}

// abandons deletes an object on which Velero goes on to work, or which is just being made: the tenant has removed our finalizer.
func (w *world) abandons(o *object) {
	w.notes("%s is abandoned", o.key.Name)
	o.orphan, o.flow, o.turn = true, false, contract.Turn{}
	o.flows++
	w.send = append(w.send, contract.TurnNews{Gone: []contract.TurnKey{o.key}})
}

// stalls: Velero does not go on, and the object says so. Its workflow gives the turn back, and the watcher sends that it has ended.
func (w *world) stalls(o *object) {
	o.apart, o.stalled = true, true
	w.returns(o, false)
	w.send = append(w.send, contract.TurnNews{Ended: []contract.TurnKey{o.key}})
}

func (w *world) of(key contract.TurnKey) *object {
	for _, o := range w.objects {
		if o.key == key {
			return o
		}
	}
	return nil
}

// named returns the last object of that name.
func (w *world) named(name string) *object {
	for i := len(w.objects) - 1; i >= 0; i-- {
		if w.objects[i].key.Name == name {
			return w.objects[i]
		}
	}
	return nil
}

// creates creates an object in a lane; the watcher sends that unless its news is lost. The namespace of "bank-a" is bank.
func (w *world) creates(pool contract.Pool, lane int, name string, unheard bool) *object {
	o := &object{lane: lane, created: w.unix(), waits: true, key: contract.TurnKey{Pool: pool, ObjectRef: contract.ObjectRef{
		Namespace: workflowtest.TeamOf(name), Name: name, UID: fmt.Sprintf("u-%s-%d", name, len(w.objects)),
	}}}
	w.objects = append(w.objects, o)
	switch {
	case w.rules.Limits[pool] == 0:
		w.makesWithout(o)
	case !unheard:
		w.asks(o)
	}
	return o
}

// asks has the watcher send that objects wait.
func (w *world) asks(all ...*object) {
	var news contract.TurnNews
	for _, o := range all {
		request := contract.TurnRequest{TurnKey: o.key, Lane: o.lane, Created: o.created, Weight: w.rules.Weights[o.key.Namespace]}
		if news.Requests = append(news.Requests, request); len(news.Requests) == contract.MaxTurnNews {
			w.send, news = append(w.send, news), contract.TurnNews{}
		}
	}
	if len(news.Requests) > 0 {
		w.send = append(w.send, news)
	}
}

// sweeps has the watcher send all that wait.
func (w *world) sweeps() {
	var all []*object
	for _, o := range w.objects {
		if o.waits && !o.gone && !o.orphan && w.rules.Limits[o.key.Pool] > 0 {
			all = append(all, o)
		}
	}
	w.asks(all...)
}

// leads: another watcher leads from now on, and says so if there is a queue.
func (w *world) leads() {
	if w.env != nil {
		w.send = append(w.send, contract.TurnNews{Policy: w.rules.Version, Leads: true})
	}
}

// leaves deletes an object; its Velero object is deleted, too.
func (w *world) leaves(o *object, unheard bool) {
	w.notes("%s is gone, unheard: %t", o.key.Name, unheard)
	o.gone, o.flow = true, false
	if !unheard {
		w.send = append(w.send, contract.TurnNews{Gone: []contract.TurnKey{o.key}})
	}
}

// terminated: an administrator terminates the workflow of an object. It knows nothing of its turn after that.
func (w *world) terminated(o *object) {
	w.notes("%s is terminated", o.key.Name)
	o.flows++
	o.flow, o.turn = false, contract.Turn{}
}

// updates sends an Update, and notes its answer.
func (w *world) updates(update string, in any) {
	if w.env == nil {
		return
	}
	w.updated++
	w.env.UpdateWorkflow(update, fmt.Sprintf("%s %d", update, w.updated), &testsuite.TestUpdateCallback{
		OnReject: func(err error) { w.answered("refused: " + call.Cause(err)) },
		OnAccept: func() {},
		OnComplete: func(answer any, err error) {
			if err != nil {
				w.answered("failed: " + call.Cause(err))
				return
			}
			w.answered(answer.(contract.TurnAnswer).Message)
			if limit, is := in.(contract.TurnLimit); is {
				w.overridden(limit)
			}
		},
	}, in)
}

func (w *world) answered(answer string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes("%s", answer)
	w.answers = append(w.answers, answer)
}

// overridden notes the limit that an operator has set.
func (w *world) overridden(limit contract.TurnLimit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.over, limit.Pool)
	if limit.Limit == 0 {
		w.limited(limit.Pool, w.rules.Limits[limit.Pool])
		return
	}
	w.over[limit.Pool] = contract.LimitOverride{Limit: limit.Limit, Until: w.unix() + limit.For}
	w.limited(limit.Pool, limit.Limit)
	until := time.Unix(w.over[limit.Pool].Until, 0).Sub(w.start.Add(w.since()))
	w.in(until-2*workflowtest.Apart, func() { // just before a turn can be given by the other limit
		if over := w.over[limit.Pool]; over.Until != 0 && over.Until <= w.unix()+1 {
			delete(w.over, limit.Pool)
			w.limited(limit.Pool, w.rules.Limits[limit.Pool])
		}
	})
}

func (w *world) state() (state contract.VeleroQueueState) {
	w.mu.Unlock() // the query runs the workflow
	defer w.mu.Lock()
	answer, err := w.env.QueryWorkflow(contract.QueryState)
	if err == nil {
		err = answer.Get(&state)
	}
	if err != nil {
		w.fault("query: %v", err)
	}
	return state
}
