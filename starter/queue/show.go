package queue

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/terminal"
	"holdfast.dev/holdfast/workflows/contract"
)

// shown is what `holdfast queue` shows.
type shown struct {
	Cluster string `json:"cluster"`
	// Off: the queue does not run, since the policy limits nothing.
	Off bool `json:"off"`
	// PausedUntil is until when no turn begins, because an earlier run of the queue was lost.
	PausedUntil *time.Time  `json:"pausedUntil,omitempty"`
	Pools       []shownPool `json:"pools,omitempty"`
}

// shownPool is a pool. Its Limit is 0 if the policy limits only the other.
type shownPool struct {
	Pool        contract.Pool   `json:"pool"`
	Limit       int             `json:"limit"`
	PolicyLimit int             `json:"policyLimit"`
	Override    *shownOverride  `json:"override,omitempty"`
	Active      int             `json:"active"`
	Waiting     int             `json:"waiting"`
	Turns       []shownTurn     `json:"turns,omitempty"`
	Queue       []shownPosition `json:"queue,omitempty"`
	// Beyond is how many come after those in Queue, counted from the objects.
	Beyond int `json:"beyond,omitempty"`
}

// shownOverride is an operator's limit.
type shownOverride struct {
	Limit int       `json:"limit"`
	Until time.Time `json:"until"`
}

// shownTurn is a turn that runs.
type shownTurn struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Lane      string    `json:"lane"`
	Since     time.Time `json:"since"`
	// Lost is since when the object's workflow was found not to run: its object is read.
	Lost *time.Time `json:"lostSince,omitempty"`
}

// shownPosition is an object that waits.
type shownPosition struct {
	Position  int       `json:"position"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Lane      string    `json:"lane"`
	Created   time.Time `json:"created"`
	WaitsFor  reason    `json:"waitsFor"`
	// First: an operator gave it the next turn.
	First bool `json:"first,omitempty"`
}

// reason is why an object waits.
type reason string

const (
	reasonPause     reason = "pause after a loss"
	reasonNamespace reason = "its namespace has a turn"
	reasonLimit     reason = "limit"
	reasonReturn    reason = "its turn came back unused: not yet"
	reasonNothing   reason = "nothing: due now"
)

// read queries the queue for its state. One that does not run is off.
func read(ctx context.Context, temporal client.Client, clusterID string, now time.Time) (*shown, error) {
	queue := &shown{Cluster: clusterID}
	var state contract.VeleroQueueState
	runs, err := coordinator(clusterID).Read(ctx, temporal, &state)
	if err != nil {
		return nil, err
	}
	if queue.Off = !runs; queue.Off {
		return queue, nil
	}
	if state.PausedUntil > now.Unix() {
		until := moment(state.PausedUntil)
		queue.PausedUntil = &until
	}
	for _, pool := range state.Pools {
		queue.Pools = append(queue.Pools, poolShown(pool, state.Rules.Limits[pool.Pool], queue.PausedUntil != nil, now))
	}
	return queue, nil
}

func poolShown(of contract.PoolShown, policyLimit int, paused bool, now time.Time) shownPool {
	pool := shownPool{
		Pool: of.Pool, Limit: of.Limit, PolicyLimit: policyLimit, Active: len(of.Turns), Waiting: len(of.Waiting) + of.Beyond,
		Beyond: of.Beyond,
	}
	if of.Override != nil {
		pool.Override = &shownOverride{Limit: of.Override.Limit, Until: moment(of.Override.Until)}
	}
	for _, turn := range of.Turns {
		row := shownTurn{Namespace: turn.Namespace, Name: turn.Name, Lane: contract.LaneName(turn.Lane), Since: moment(turn.Turn)}
		if turn.ClosedSince != 0 {
			lost := moment(turn.ClosedSince)
			row.Lost = &lost
		}
		pool.Turns = append(pool.Turns, row)
	}
	why := reasonsOf(of, paused, now)
	for i, member := range of.Waiting {
		pool.Queue = append(pool.Queue, shownPosition{
			Position: i + 1, Namespace: member.Namespace, Name: member.Name, Lane: contract.LaneName(member.Lane),
			Created: moment(member.Created), WaitsFor: why(member), First: member.First,
		})
	}
	return pool
}

// reasonsOf returns why members of a pool wait. A namespace has no second Backup at a time while another one waits that has none.
func reasonsOf(of contract.PoolShown, paused bool, now time.Time) func(contract.TurnMember) reason {
	active := map[string]bool{}
	for _, turn := range of.Turns {
		active[turn.Namespace] = true
	}
	others := slices.ContainsFunc(of.Waiting, func(m contract.TurnMember) bool { return !active[m.Namespace] })
	return func(member contract.TurnMember) reason {
		switch {
		case paused:
			return reasonPause
		case member.NotBefore > now.Unix():
			return reasonReturn
		case of.Pool == contract.PoolBackups && !member.First && others && active[member.Namespace]:
			return reasonNamespace
		case len(of.Turns) >= of.Limit:
			return reasonLimit
		}
		return reasonNothing
	}
}

func moment(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }

// only leaves out the objects of other namespaces. Positions stay those among all.
func (s *shown) only(namespace string) {
	if namespace == "" {
		return
	}
	for i := range s.Pools {
		pool := &s.Pools[i]
		pool.Turns = slices.DeleteFunc(pool.Turns, func(t shownTurn) bool { return t.Namespace != namespace })
		pool.Queue = slices.DeleteFunc(pool.Queue, func(p shownPosition) bool { return p.Namespace != namespace })
	}
}

var turnColumns = []operator.Column[shownTurn]{
	operator.NewColumn("NAMESPACE", func(t shownTurn) string { return terminal.Printable(t.Namespace) }),
	operator.NewColumn("NAME", func(t shownTurn) string { return terminal.Printable(t.Name) }),
	operator.NewColumn("LANE", func(t shownTurn) string { return t.Lane }),
	operator.NewColumn("SINCE", func(t shownTurn) string { return t.Since.Format(time.RFC3339) }),
	operator.NewColumn("STATE", func(t shownTurn) string {
		if t.Lost != nil {
			return "lost"
		}
		return "running"
	}),
}

var positionColumns = []operator.Column[shownPosition]{
	operator.NewColumn("POSITION", func(p shownPosition) string { return strconv.Itoa(p.Position) }),
	operator.NewColumn("NAMESPACE", func(p shownPosition) string { return terminal.Printable(p.Namespace) }),
	operator.NewColumn("NAME", func(p shownPosition) string { return terminal.Printable(p.Name) }),
	operator.NewColumn("LANE", func(p shownPosition) string { return p.Lane }),
	operator.NewColumn("CREATED", func(p shownPosition) string { return p.Created.Format(time.RFC3339) }),
	operator.NewColumn("WAITS-FOR", func(p shownPosition) string {
		if p.First {
			return string(p.WaitsFor) + ", put first by an operator"
		}
		return string(p.WaitsFor)
	}),
}

// Print writes the queue for people.
func (s *shown) Print(out io.Writer) error {
	if s.Off {
		_, err := fmt.Fprintf(out, "Nobody waits: %s.\n", absent(s.Cluster))
		return err
	}
	if s.PausedUntil != nil {
		fmt.Fprintf(out, "Paused until %s: an earlier run of the queue was lost, and turns that it gave may still be used.\n\n",
			s.PausedUntil.Format(time.RFC3339))
	}
	for i := range s.Pools {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := s.Pools[i].Print(out); err != nil {
			return err
		}
	}
	return nil
}

// Print writes the pool for people.
func (p *shownPool) Print(out io.Writer) error {
	if p.Limit == 0 && p.Active+p.Waiting == 0 {
		_, err := fmt.Fprintf(out, "Velero %s: the policy sets no limit; Velero is handed all of them at once.\n", p.Pool)
		return err
	}
	fmt.Fprintf(out, "Velero %s: %d of at most %d at a time; %d wait.\n", p.Pool, p.Active, p.Limit, p.Waiting)
	if p.Override != nil {
		fmt.Fprintf(out, "An operator has set the limit until %s; the policy's is %d.\n",
			p.Override.Until.Format(time.RFC3339), p.PolicyLimit)
	}
	if err := operator.PrintPart(out, "Have a turn", turnColumns, p.Turns); err != nil {
		return err
	}
	if err := operator.PrintPart(out, "Wait", positionColumns, p.Queue); err != nil || p.Beyond == 0 {
		return err
	}
	_, err := fmt.Fprintf(out, "\nAbout %d more come after the first %d.\n", p.Beyond, p.Waiting-p.Beyond)
	return err
}
