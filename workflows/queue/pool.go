package queue

import (
	"time"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/turns"
)

// pool is the queue of one pool. It applies what objects and operators say. Times are in Unix seconds, and arguments.
type pool struct {
	turns.Queue[contract.TurnKey]
	name     contract.Pool
	override *contract.LimitOverride
}

// returnPause is the least time, in seconds, from the return of a turn to the next one of its object, unless the first one only
// came too late. It doubles with each return up to returnPauseMost: what is never made, since a webhook denies it, must not have
// every other turn.
const (
	returnPause     = 10
	returnPauseMost = 600
)

func newPool(name contract.Pool, state contract.PoolState) *pool {
	p := &pool{name: name, override: state.Override}
	p.Alone, p.Pause = name == contract.PoolBackups, refillPause
	for range contract.TurnLanes {
		p.Most = append(p.Most, contract.MaxTurnsCarried)
	}
	p.Resume(state.Carried)
	p.Members = turns.Each(state.Members, memberOf)
	p.Turns = turns.Each(state.Turns, func(turn contract.HeldTurn) turns.Turn[contract.TurnKey] {
		return turns.Turn[contract.TurnKey]{Member: memberOf(turn.TurnMember), Began: turn.Turn, ClosedSince: turn.ClosedSince}
	})
	return p
}

// state is what the next run needs.
func (p *pool) state(now int64) contract.PoolState {
	return contract.PoolState{Members: turns.Each(p.Members, shown), Turns: p.running(), Carried: p.Carry(now), Override: p.override}
}

func memberOf(member contract.TurnMember) turns.Member[contract.TurnKey] {
	return turns.Member[contract.TurnKey]{
		Key: member.TurnKey, Namespace: member.Namespace, Lane: member.Lane, Created: member.Created, Since: member.Since,
		First: member.First, Returned: member.Returned, NotBefore: member.NotBefore,
	}
}

func shown(member turns.Member[contract.TurnKey]) contract.TurnMember {
	return contract.TurnMember{
		TurnKey: member.Key, Lane: member.Lane, Created: member.Created, Since: member.Since, First: member.First,
		Returned: member.Returned, NotBefore: member.NotBefore,
	}
}

// running returns the turns that run.
func (p *pool) running() []contract.HeldTurn {
	return turns.Each(p.Turns, func(turn turns.Turn[contract.TurnKey]) contract.HeldTurn {
		return contract.HeldTurn{TurnMember: shown(turn.Member), Turn: turn.Began, ClosedSince: turn.ClosedSince}
	})
}

// namespaces returns the order of the namespaces, for a listing.
func (p *pool) namespaces(now int64) []contract.Lane {
	return turns.Each(p.Carry(now).Lanes, func(lane contract.Lane) contract.Lane {
		return contract.Lane{Namespaces: lane.Namespaces}
	})
}

// pace sets the limit and the weights that hold now. It returns when that changes by itself, or 0.
func (p *pool) pace(rules contract.TurnRules, now int64) (until int64) {
	p.Weights, p.Limit = rules.Weights, rules.Limits[p.name]
	if p.override != nil && (p.override.Until <= now || p.Limit == 0) {
		p.override = nil
	}
	if p.override != nil {
		p.Limit, until = p.override.Limit, p.override.Until
	}
	return until
}

// clear forgets everything: the policy has no limit any more, and the watcher wakes those that wait.
func (p *pool) clear() { p.Members, p.Turns, p.Lanes, p.Beyond = nil, nil, nil, contract.Beyond{} }

// timeout returns when the next turn has lasted too long; 0 if none will.
func (p *pool) timeout(seconds int64) int64 {
	var at int64
	for _, turn := range p.Turns {
		if seconds > 0 {
			at = turns.Earlier(at, turn.Began+seconds)
		}
	}
	return at
}

// expire ends the turns that have lasted too long.
func (p *pool) expire(now, seconds int64) {
	var over []contract.TurnKey
	for _, turn := range p.Turns {
		if seconds > 0 && turn.Began+seconds <= now {
			over = append(over, turn.Key)
		}
	}
	for _, key := range over {
		p.End(key)
	}
}

// request notes that an object needs a turn.
func (p *pool) request(request contract.TurnRequest, now int64) {
	if p.Member(request.TurnKey) != nil || p.Turn(request.TurnKey) != nil {
		return
	}
	p.Add(now, memberOf(contract.TurnMember{
		TurnKey: request.TurnKey, Lane: request.Lane, Created: request.Created, Since: now,
	}))
}

// ended notes that an object needs no turn any more.
func (p *pool) ended(key contract.TurnKey) {
	p.Leave(key)
	p.End(key)
}

// takeBack ends a turn that its object does not use. If it waits it has another one.
func (p *pool) takeBack(back contract.TurnReturn, now int64) {
	turn := p.Turn(back.TurnKey)
	switch {
	case turn == nil || turn.Began != back.Turn: // an earlier turn
	case back.Waits:
		p.putBack(turn, now)
	default:
		p.End(back.TurnKey)
	}
}

// putBack ends a turn that was not used: its object waits at its place, but no more before all others.
func (p *pool) putBack(turn *turns.Turn[contract.TurnKey], now int64) {
	turn.Since, turn.First = now, false
	if turn.Returned > 0 || now-turn.Began < returnPause {
		turn.NotBefore = now + min(int64(returnPause)<<min(max(turn.Returned-1, 0), 6), returnPauseMost)
	}
	turn.Returned++
	p.Return(*turn)
}

// hold notes the turns of a run that was lost, or of objects from before: those with an unfinished Velero object, made at
// Created.
func (p *pool) hold(found contract.PoolFound, now int64) {
	for _, member := range found.Active {
		member.Since = now
		p.Hold(turns.Turn[contract.TurnKey]{Member: memberOf(member), Began: min(max(member.Created, 1), now)})
	}
}

// settleDoubts ends the turns of which nothing is left. One that was not used goes back: its object waits at its place, and what
// fails each time it starts must not keep a turn.
func (p *pool) settleDoubts(found contract.PoolFound, doubted map[contract.TurnKey]bool, now int64) {
	waits, active := keysOf(found.Waiting), keysOf(found.Active)
	for _, turn := range p.running() {
		switch key := turn.TurnKey; {
		case !doubted[key] || turn.ClosedSince == 0: // it has sent something since
		case active[key]:
			p.MarkRunning(key)
		case waits[key]:
			p.putBack(p.Turn(key), now)
		default:
			p.End(key)
		}
	}
}

// settleUnseen ends the turns of which nothing is left: nobody has said that they ended. It returns those that were given a
// moment ago: who deletes its object while it starts leaves nothing, and the Velero object is still made.
func (p *pool) settleUnseen(found contract.PoolFound, unseen map[contract.TurnKey]int64, now int64) (young []contract.HeldTurn) {
	waits, active := keysOf(found.Waiting), keysOf(found.Active)
	for _, turn := range p.running() {
		switch key := turn.TurnKey; {
		case unseen[key] != turn.Turn || waits[key] || active[key]:
		case now-turn.Turn < int64(contract.TurnLossPause/time.Second):
			young = append(young, turn)
		default:
			p.End(key)
		}
	}
	return young
}

func keysOf(members []contract.TurnMember) map[contract.TurnKey]bool {
	keys := map[contract.TurnKey]bool{}
	for _, member := range members {
		keys[member.TurnKey] = true
	}
	return keys
}

// refill adds the members that were found in the objects, and fulfils wishes.
func (p *pool) refill(now int64, found contract.PoolFound, wishes []*wish) {
	var members []turns.Member[contract.TurnKey]
	for _, waiting := range found.Waiting {
		waiting.Since = max(waiting.Created, 1)
		for _, wish := range wishes {
			waiting.First = waiting.First || wish.is(waiting.TurnKey)
		}
		members = append(members, memberOf(waiting))
	}
	p.Refill(now, members, found.Beyond...)
	for _, wish := range wishes {
		p.grant(wish)
	}
}
