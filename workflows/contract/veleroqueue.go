package contract

import "time"

// KindVeleroQueue gives turns before Velero in a Kubernetes cluster. Its ID is VeleroQueueID. Input: VeleroQueueInput, no
// result. It answers QueryState with VeleroQueueState and QueryTurnOrder with TurnOrder.
var KindVeleroQueue = Kind{Workflow: "VeleroQueue", Summary: "Turns before Velero in", Queue: QueueVelero}

// Signals, queries and Updates of the queue before Velero, and its error.
const (
	// SignalTurnNews says who needs a turn and whose has ended. Payload: TurnNews. Sending it again is harmless.
	SignalTurnNews = "news"
	// SignalTurnReturned gives a turn back that its object does not use. Payload: TurnReturn. Sending it again is harmless.
	SignalTurnReturned = "returned"
	// QueryTurnOrder returns who waits in the order of the turns.
	QueryTurnOrder = "order"
	// UpdateSetTurnLimit sets, for a time, how many turns there are. Input: TurnLimit, result: TurnAnswer.
	UpdateSetTurnLimit = "set-limit"
	// UpdateNextTurn gives an object the next turn. Input: NextTurn, result: TurnAnswer.
	UpdateNextTurn = "next"
	// ErrorVeleroQueueInvalid is the type of the error that refuses an Update which can never be carried out. Not retryable.
	ErrorVeleroQueueInvalid = "VeleroQueueInvalid"
)

// The activities.
var (
	// FindTurns reads the policy and lists the objects: who waits for a turn, and who has one.
	FindTurns = Activity[TurnsWanted, TurnsFound]{"find-velero-turns", "Find who waits for a turn and who has one"}
	// GiveTurns signals the workflows of objects that they have a turn, and starts those that do not run. It may be repeated.
	GiveTurns = Activity[TurnsGiven, TurnsRefused]{"give-velero-turns", "Give turns"}
	// ReturnTurn signals SignalTurnReturned to the queue if that runs.
	ReturnTurn = Activity[TurnReturn, None]{"return-velero-turn", "Give the turn back"}
)

// TurnUsable is how long after it was given a turn can be used, by Temporal's clock: the Velero object is made by then, but for
// the length of a workflow task and of an activity's attempt, or not with that turn. A queue that Temporal has lost waits for
// longer before it gives the first turn, so that those of its predecessor show or are void. A worker's clock has no part in it.
const (
	TurnUsable    = 20 * time.Second
	TurnLossPause = 45 * time.Second
)

// VeleroQueueID returns the workflow ID of a Kubernetes cluster's queue before Velero.
func VeleroQueueID(cluster string) string { return cluster + "/velero-queue" }

// Pool is a set of turns with a limit of its own.
type Pool string

// The pools.
const (
	PoolBackups  Pool = "backups"
	PoolRestores Pool = "restores"
)

// Pools are all pools, in their order.
func Pools() []Pool { return []Pool{PoolBackups, PoolRestores} }

// Kind returns the kind of tenants' objects that have turns of the pool. Drills have some of PoolRestores, too.
func (p Pool) Kind() Kind {
	if p == PoolRestores {
		return KindRestore
	}
	return KindBackup
}

// The lanes of a pool, the highest first.
const (
	// LaneHand is for what somebody has made by hand.
	LaneHand = iota
	// LanePlan is for runs of tenants' plans, LaneDefaultPlan for those of the administrator's default plans.
	LanePlan
	LaneDefaultPlan
	// LaneDrill is for drills. They have turns of PoolRestores.
	LaneDrill
	TurnLanes
)

// LaneName returns the lane's name in metrics and for people.
func LaneName(lane int) string {
	return [TurnLanes]string{"by-hand", "plan", "default-plan", "drill"}[lane]
}

// Lanes returns the lanes that the pool's objects can be in.
func (p Pool) Lanes() []int {
	if p == PoolRestores {
		return []int{LaneHand, LaneDrill}
	}
	return []int{LaneHand, LanePlan, LaneDefaultPlan}
}

// Bounds of each lane of the queue: how many waiting members it carries, and how many one listing returns. With the longest names
// all of them fit into a payload.
const (
	MaxTurnsCarried = MaxCarried / 5
	MaxTurnsFound   = MaxTurnsCarried / 2
	// MaxTurns is the largest limit of a pool, and MaxTurnsActive how many unfinished objects one listing of a pool returns.
	MaxTurns       = 200
	MaxTurnsActive = MaxTurns + MaxTurns/2
	// MaxTurnsGiven is how many turns one GiveTurns gives.
	MaxTurnsGiven = 25
	// MaxTurnNews is how many entries one TurnNews has at most.
	MaxTurnNews = 200
)

// TurnKey names an object that needs a turn.
type TurnKey struct {
	Pool Pool `json:"pool"`
	ObjectRef
	// Drill: it is a RestoreDrill.
	Drill bool `json:"drill,omitempty"`
}

// Kind returns the kind of the object.
func (k TurnKey) Kind() Kind {
	if k.Drill {
		return KindDrill
	}
	return k.Pool.Kind()
}

// TurnMember is an object that waits for its turn.
type TurnMember struct {
	TurnKey
	Lane int `json:"lane,omitempty"`
	// Created is when the object was created, and Since when the queue first knew of it, in Unix seconds.
	Created int64 `json:"created,omitempty"`
	Since   int64 `json:"since,omitempty"`
	// First: an operator gave it the next turn.
	First bool `json:"first,omitempty"`
	// Returned is how often its turn came back unused, and NotBefore when it may have the next one, in Unix seconds.
	Returned  int   `json:"returned,omitempty"`
	NotBefore int64 `json:"notBefore,omitempty"`
}

// HeldTurn is a turn that runs.
type HeldTurn struct {
	TurnMember
	// Turn is its number: when it began, in Unix seconds, but higher than those of earlier turns of the same object.
	Turn int64 `json:"turn"`
	// ClosedSince is when its object's workflow was first found not to run, in Unix seconds; 0 if it runs.
	ClosedSince int64 `json:"closedSince,omitempty"`
}

// Turn is what the workflow of an object knows of its turn; the zero value is none.
type Turn struct {
	Number int64 `json:"number"`
	// Given is when it was given, in Unix seconds: it can be used for TurnUsable from then on.
	Given int64 `json:"given"`
}

// VeleroChanged is the payload of SignalChanged for NonAdminBackups and NonAdminRestores.
type VeleroChanged struct {
	Changed
	// Volumes: Velero has made PodVolumeBackups, DataUploads or the like for the object: from now on they are listed.
	Volumes bool `json:"volumes,omitempty"`
	// Drill is the newest RestoreDrill that has a verdict on the backup, by name, if the backup does not show it yet.
	Drill string `json:"drill,omitempty"`
	// Turn is the object's turn before Velero.
	Turn Turn `json:"turn,omitzero"`
}

// Remaining returns the turn for an activity that is scheduled now, by Temporal's clock.
func (t Turn) Remaining(now time.Time) UsableTurn {
	left := time.Unix(t.Given, 0).Add(TurnUsable).Sub(now)
	if t.Number == 0 || left <= 0 {
		return UsableTurn{}
	}
	return UsableTurn{Turn: t, For: min(left, TurnUsable)}
}

// UsableTurn is what an activity knows of a turn; the zero value is none.
type UsableTurn struct {
	Turn

	// For is for how long after a local activity was scheduled a Velero object may be made with the turn: its times are the
	// worker's. Those of a regular one are Temporal's, and it may be scheduled again and again.
	For time.Duration `json:"for"`
}

// TurnRequest requests a turn.
type TurnRequest struct {
	TurnKey
	Lane    int   `json:"lane,omitempty"`
	Created int64 `json:"created,omitempty"`
	// Weight is that of its namespace in the policy; 1 if zero.
	Weight int `json:"weight,omitempty"`
}

// TurnNews is the payload of SignalTurnNews.
type TurnNews struct {
	Requests []TurnRequest `json:"requests,omitempty"`
	// Ended are objects that need no turn any more, for ever: Velero has finished or stalls.
	Ended []TurnKey `json:"ended,omitempty"`
	// Gone are objects that were deleted: they wait no more. A turn that one of them has ends otherwise, since Velero may work on
	// what is being made with it.
	Gone []TurnKey `json:"gone,omitempty"`
	// Policy is the version of the policy; the queue reads another one.
	Policy string `json:"policy,omitempty"`
	// Leads: the watcher leads since now. Ends that the last one has not sent are lost.
	Leads bool `json:"leads,omitempty"`
}

// TurnReturn is the payload of SignalTurnReturned.
type TurnReturn struct {
	Cluster string `json:"cluster"`
	TurnKey
	Turn int64 `json:"turn"`
	// Waits: the turn came too late to be used, and the object waits for another.
	Waits bool `json:"waits,omitempty"`
}

// TurnRules are the policy's.
type TurnRules struct {
	// Version is the policy's.
	Version string `json:"version,omitempty"`
	// Limits are how many turns each pool has; a pool without one gives no turns: its objects need none.
	Limits map[Pool]int `json:"limits,omitempty"`
	// Weights are those of namespaces with another weight than 1 in which somebody waits.
	Weights map[string]int `json:"weights,omitempty"`
	// Timeout is how long a turn lasts at most, in seconds.
	Timeout int64 `json:"timeout,omitempty"`
}

// TurnName names an object for operators.
type TurnName struct {
	Pool      Pool   `json:"pool"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// TurnsWanted is the input of FindTurns.
type TurnsWanted struct {
	// Lanes are the order of the namespaces, by pools and lanes.
	Lanes map[Pool][]Lane `json:"lanes,omitempty"`
	// Named are objects that FindTurns returns wherever they stand.
	Named []TurnName `json:"named,omitempty"`
	// Doubted are objects with a turn that may have ended unseen.
	Doubted []TurnKey `json:"doubted,omitempty"`
	// Unknown are the pools whose turns are not known.
	Unknown map[Pool]bool `json:"unknown,omitempty"`
}

// TurnsFound is the result of FindTurns.
type TurnsFound struct {
	Rules TurnRules          `json:"rules"`
	Pools map[Pool]PoolFound `json:"pools,omitempty"`
}

// PoolFound is what the objects of a pool say.
type PoolFound struct {
	// Waiting have no Velero object yet, in the order of their creation: the front of each lane. Beyond describes the others by
	// lanes.
	Waiting []TurnMember `json:"waiting,omitempty"`
	Beyond  []Beyond     `json:"beyond,omitempty"`
	// Active have an unfinished Velero object, Created is when that was made: of a pool whose turns are not known all, or the last
	// MaxTurnsActive, since Velero works in that order; else those that are doubted. One whose tenant's object is gone has a UID
	// that follows from the Velero object.
	Active []TurnMember `json:"active,omitempty"`
}

// TurnsGiven is the input of GiveTurns.
type TurnsGiven struct {
	Cluster string      `json:"cluster"`
	Turns   []GivenTurn `json:"turns"`
	// Given is the time, in Unix seconds.
	Given int64 `json:"given"`
}

// GivenTurn is one of the turns that are given.
type GivenTurn struct {
	TurnKey
	Turn int64 `json:"turn"`
}

// TurnsRefused are the objects whose workflow Temporal will never start.
type TurnsRefused struct {
	Keys []TurnKey `json:"keys,omitempty"`
}

// TurnLimit is the input of UpdateSetTurnLimit.
type TurnLimit struct {
	Pool Pool `json:"pool"`
	// Limit is how many turns there are; 0 restores the policy's.
	Limit int `json:"limit"`
	// For is how long that holds, in seconds.
	For int64 `json:"for,omitempty"`
}

// LimitOverride is a limit that an operator has set, until then, in Unix seconds.
type LimitOverride struct {
	Limit int   `json:"limit"`
	Until int64 `json:"until"`
}

// NextTurn is the input of UpdateNextTurn.
type NextTurn struct {
	TurnName
	// Reason is for the people who read the history.
	Reason string `json:"reason"`
}

// TurnAnswer says, in a sentence for people, what an Update of a queue has changed.
type TurnAnswer struct {
	Message string `json:"message"`
}

// VeleroQueueInput starts, and continues, the queue before Velero.
type VeleroQueueInput struct {
	Cluster string `json:"cluster"`
	// Found: the objects have been listed since the first start.
	Found bool `json:"found,omitempty"`
	// List: they are to be listed again.
	List bool `json:"list,omitempty"`
	// Unseen: turns may have ended before the watcher led, and their objects have not been read.
	Unseen bool `json:"unseen,omitempty"`
	// NextCheck is when the census checks next, in Unix seconds; 0 if no check is planned.
	NextCheck int64              `json:"nextCheck,omitempty"`
	Rules     TurnRules          `json:"rules,omitzero"`
	Pools     map[Pool]PoolState `json:"pools,omitempty"`
}

// PoolState is what one run hands to the next.
type PoolState struct {
	Members  []TurnMember     `json:"members,omitempty"`
	Turns    []HeldTurn       `json:"turns,omitempty"`
	Carried  Carried[TurnKey] `json:"carried,omitzero"`
	Override *LimitOverride   `json:"override,omitempty"`
}

// VeleroQueueState answers QueryState.
type VeleroQueueState struct {
	Rules TurnRules `json:"rules"`
	// PausedUntil is until when no turn begins, in Unix seconds; 0 if turns begin.
	PausedUntil int64       `json:"pausedUntil,omitempty"`
	Pools       []PoolShown `json:"pools"`
}

// PoolShown shows a pool to people.
type PoolShown struct {
	Pool Pool `json:"pool"`
	// Limit is how many turns there are now. Override is set while an operator's limit holds.
	Limit    int            `json:"limit"`
	Override *LimitOverride `json:"override,omitempty"`
	Turns    []HeldTurn     `json:"turns,omitempty"`
	// Waiting are in the order of their turns, and Beyond is how many come after them, as of the last listing of objects.
	Waiting []TurnMember `json:"waiting,omitempty"`
	Beyond  int          `json:"beyond,omitempty"`
}

// TurnOrder answers QueryTurnOrder, by pools: the UIDs of those that wait, in the order of their turns, and how many have a turn.
type TurnOrder struct {
	Waiting map[Pool][]string `json:"waiting,omitempty"`
	Active  map[Pool]int      `json:"active,omitempty"`
	// Paused: the objects have not been listed, so that nothing is known of their order.
	Paused bool `json:"paused,omitempty"`
}
