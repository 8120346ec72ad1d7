package queue

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/kinds"
	"holdfast.dev/holdfast/workflows/turns"
)

const (
	// refillPause is the least time between two listings for members beyond, in seconds.
	refillPause = 5
	// findLimit limits one listing of all objects.
	findLimit = 5 * time.Minute
)

// Kind is how the workflow is run.
var Kind = kinds.Kind{
	Kind:       contract.KindVeleroQueue,
	Activities: contract.Names(contract.FindTurns, contract.GiveTurns, contract.ReturnTurn),
	Run:        kinds.Serving(Workflow),
}

// Workflow gives turns before Velero for as long as the policy limits them. A turn begins when the object's workflow is
// signalled that it has one, and ends when Velero has finished, when the workflow gives it back, or at the policy's timeout.
// It serves two pools, of Backups and of Restores, by limits of their own.
//
// A run that Temporal has lost is replaced by one that lists the objects. If some of them may still use a turn of the lost
// run, it waits until those turns are void: there are never more turns than the limit.
func Workflow(ctx workflow.Context, in contract.VeleroQueueInput, options call.Options) error {
	r := newQueueRun(in, options)
	r.news = workflow.GetSignalChannel(ctx, contract.SignalTurnNews)
	r.returned = workflow.GetSignalChannel(ctx, contract.SignalTurnReturned)
	r.Pace(ctx)
	if err := r.handle(ctx); err != nil {
		return err
	}
	return r.Serve(ctx)
}

// queueRun is the state of one run.
type queueRun struct {
	turns.Coordinator[contract.TurnKey]
	cluster        string
	options        call.Options
	rules          contract.TurnRules
	pools          []*pool
	news, returned workflow.ReceiveChannel
	// pausedUntil is until when it waits before it gives turns, see list; in Unix seconds.
	pausedUntil int64
	// policy is the version of the policy of which the watcher sent news last.
	policy string
	// given are the turns that Deliver gives.
	given []contract.GivenTurn
	// doubted are the members with a turn whose workflow does not run: their objects are to be read.
	doubted map[contract.TurnKey]bool
	// unseen are turns, by number, that may have ended before the watcher led: their objects are to be read. reads: a listing reads
	// some.
	unseen map[contract.TurnKey]int64
	reads  bool
	// readAgain is when the objects of unseen are read again, in Unix seconds; 0 if a listing is wanted, or there are none.
	readAgain int64
	// weighed is the last request of each namespace that came while the objects were listed: the list may not know its weight.
	weighed []contract.TurnRequest
	wishes  []*wish
	// early are requests for a pool without turns that came while the objects were listed: the policy may give it some, and the list
	// may lack them.
	early []contract.TurnRequest
}

func newQueueRun(in contract.VeleroQueueInput, options call.Options) *queueRun {
	r := &queueRun{
		cluster: in.Cluster, options: options, rules: in.Rules, policy: in.Rules.Version, doubted: map[contract.TurnKey]bool{},
		unseen: map[contract.TurnKey]int64{},
	}
	var queues []*turns.Queue[contract.TurnKey]
	for _, name := range contract.Pools() {
		of := newPool(name, in.Pools[name])
		r.pools, queues = append(r.pools, of), append(queues, &of.Queue)
	}
	r.Coordinator = turns.Coordinator[contract.TurnKey]{
		User: r, Queues: queues, Found: in.Found, NextCheck: in.NextCheck,
		Interval: int64(turns.CensusInterval / time.Second), Grace: int64(turns.CensusInterval / time.Second),
	}
	if in.List {
		r.WantListing()
	}
	if in.Unseen {
		r.doubtEnds()
	}
	return r
}

// pool returns the pool of that name, or nil.
func (r *queueRun) pool(name contract.Pool) *pool {
	for _, of := range r.pools {
		if of.name == name {
			return of
		}
	}
	return nil
}

// unknown returns the pools whose turns are not known: all at the start, and those for which the policy has had no limit.
func (r *queueRun) unknown() map[contract.Pool]bool {
	unknown := map[contract.Pool]bool{}
	for _, of := range r.pools {
		unknown[of.name] = !r.Found || r.rules.Limits[of.name] == 0
	}
	return unknown
}

// Find lists the objects and reads the policy. Where turns are not known, the objects with an unfinished Velero object have one.
func (r *queueRun) Find(ctx workflow.Context) error {
	wishes, doubted, unseen := r.wishes, r.doubted, r.unseen
	r.wishes, r.doubted, r.unseen = nil, map[contract.TurnKey]bool{}, map[contract.TurnKey]int64{}
	r.reads = len(unseen) > 0
	request := contract.TurnsWanted{Lanes: map[contract.Pool][]contract.Lane{}, Unknown: r.unknown()}
	for _, of := range r.pools {
		request.Lanes[of.name] = of.namespaces(workflow.Now(ctx).Unix())
		for _, turn := range of.Turns {
			if doubted[turn.Key] || unseen[turn.Key] == turn.Began {
				request.Named, request.Doubted = append(request.Named, nameOf(turn.Key)), append(request.Doubted, turn.Key)
			}
		}
	}
	for _, wish := range wishes {
		request.Named = append(request.Named, wish.name)
	}
	found, err := r.list(ctx, request)
	if err != nil {
		return err
	}
	now := workflow.Now(ctx).Unix()
	unknown := r.unknown()
	r.rules = found.Rules
	for _, of := range r.pools {
		if unknown[of.name] {
			of.hold(found.Pools[of.name], now)
		}
		of.settleDoubts(found.Pools[of.name], doubted, now)
		for _, young := range of.settleUnseen(found.Pools[of.name], unseen, now) {
			r.unseen[young.TurnKey] = young.Turn
			r.readAgain = now + int64(contract.TurnLossPause/time.Second)
		}
		of.refill(now, found.Pools[of.name], wishes)
	}
	r.reads = false
	early, weighed := r.early, r.weighed
	r.early, r.weighed = nil, nil
	for _, request := range weighed {
		r.setWeight(request)
	}
	for _, request := range early {
		r.request(request, now)
	}
	return nil
}

// Receive drains the news and the returned turns.
func (r *queueRun) Receive(ctx workflow.Context) {
	now := workflow.Now(ctx).Unix()
	for r.returned.Len() > 0 {
		var back contract.TurnReturn
		if !r.returned.ReceiveAsync(&back) {
			continue
		}
		if of := r.pool(back.Pool); of != nil && back.Cluster == r.cluster {
			r.NoteMessage(back.TurnKey)
			of.takeBack(back, now)
		}
	}
	for r.news.Len() > 0 {
		var news contract.TurnNews
		if !r.news.ReceiveAsync(&news) { // skips what cannot be decoded
			continue
		}
		if news.Policy != "" && news.Policy != r.policy && news.Policy != r.rules.Version {
			r.policy = news.Policy
			r.WantListing()
		}
		if news.Leads {
			r.doubtEnds()
		}
		for _, ended := range news.Ended {
			if of := r.pool(ended.Pool); of != nil {
				of.ended(ended)
			}
		}
		for _, gone := range news.Gone {
			if of := r.pool(gone.Pool); of != nil {
				of.Leave(gone)
			}
		}
		for _, request := range news.Requests {
			r.request(request, now)
		}
	}
	for _, of := range r.pools {
		of.expire(now, r.rules.Timeout)
	}
}

// request notes that an object needs a turn, if the policy gives any.
func (r *queueRun) request(request contract.TurnRequest, now int64) {
	of := r.pool(request.Pool)
	switch {
	case of == nil || !valid(request):
	case !r.unlimited(request.Pool):
		r.weigh(request)
		of.request(request, now)
	case r.WantsListing():
		r.early = append(r.early, request)
	}
}

// doubtEnds has the objects of all turns read: nobody has said which have ended.
func (r *queueRun) doubtEnds() {
	for _, of := range r.pools {
		for _, turn := range of.Turns {
			r.unseen[turn.Key] = turn.Began
			r.WantListing()
		}
	}
}

// unlimited reports whether the policy, as it was read last, gives no turns of the pool. When it does, the objects are listed.
func (r *queueRun) unlimited(pool contract.Pool) bool { return r.Found && r.rules.Limits[pool] == 0 }

func valid(request contract.TurnRequest) bool {
	return request.Namespace != "" && request.Name != "" && request.UID != "" &&
		request.Lane >= 0 && request.Lane < contract.TurnLanes
}

// Pending reports whether there are news.
func (r *queueRun) Pending() bool { return r.news.Len() > 0 || r.returned.Len() > 0 }

// Pace sets the limits that hold now, and when that changes.
func (r *queueRun) Pace(ctx workflow.Context) {
	now := workflow.Now(ctx).Unix()
	r.Open, r.Until = !r.Found, r.readAgain
	if r.readAgain != 0 && r.readAgain <= now {
		r.readAgain, r.Until = 0, 0
		r.WantListing()
	}
	for _, of := range r.pools {
		until := of.pace(r.rules, now)
		if of.Limit > 0 {
			r.Open = true
		} else if r.Found {
			of.clear()
		}
		r.Until = turns.Earlier(r.Until, turns.Earlier(until, of.timeout(r.rules.Timeout)))
	}
}

// Give notes a turn for Deliver.
func (r *queueRun) Give(
	_ workflow.Context, _ *turns.Queue[contract.TurnKey], turn turns.Turn[contract.TurnKey], _ bool,
) error {
	r.given = append(r.given, contract.GivenTurn{TurnKey: turn.Key, Turn: turn.Began})
	return nil
}

// Deliver signals the workflows that have a turn. The activity is no local one: after a kill those run again, when others may
// be next, and the turns of before would be given beside theirs.
func (r *queueRun) Deliver(ctx workflow.Context) error {
	for len(r.given) > 0 {
		batch := r.given[:min(len(r.given), contract.MaxTurnsGiven)]
		r.given = r.given[len(batch):]
		refused, err := call.Recorded(ctx, r.options.Limits, contract.GiveTurns, contract.TurnsGiven{
			Cluster: r.cluster, Turns: batch, Given: workflow.Now(ctx).Unix(),
		})
		if err != nil {
			return err
		}
		for _, key := range refused.Keys { // Temporal will never accept the start
			workflow.GetLogger(ctx).Error("turn not given, and given up", "object", key.String(), "pool", key.Pool)
			r.pool(key.Pool).ended(key)
		}
	}
	return nil
}

// Lost has the object of a turn read whose workflow does not run.
func (r *queueRun) Lost(_ *turns.Queue[contract.TurnKey], key contract.TurnKey) {
	r.doubted[key] = true
	r.WantListing()
}

// WorkflowID returns the workflow of the object.
func (r *queueRun) WorkflowID(key contract.TurnKey) string {
	return contract.WorkflowID(r.cluster, key.Kind(), key.ObjectRef)
}
