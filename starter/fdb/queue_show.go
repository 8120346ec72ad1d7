package fdb

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"go.temporal.io/sdk/client"

	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/terminal"
	"holdfast.dev/holdfast/workflows/contract"
)

// shownFDBQueue is what `holdfast fdb queue` shows.
type shownFDBQueue struct {
	Cluster string `json:"cluster"`
	// Empty: nobody waits for a turn, and the queue does not run.
	Empty bool            `json:"empty"`
	Limit int             `json:"limit,omitempty"`
	Turns []shownFDBTurn  `json:"turns,omitempty"`
	Queue []shownFDBEntry `json:"queue,omitempty"`
	// Beyond is how many entries come after those, counted from the objects.
	Beyond int `json:"beyond,omitempty"`
}

// shownFDBTurn is a turn that runs.
type shownFDBTurn struct {
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Job       contract.FDBJob `json:"job"`
	Since     time.Time       `json:"since"`
	// State is "running", "terminating" (it does not count against the limit) or "lost" (it is started again).
	State string `json:"state"`
}

// shownFDBEntry is an entry of the queue.
type shownFDBEntry struct {
	Position  int             `json:"position"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Job       contract.FDBJob `json:"job"`
	// NotBefore is the earliest begin of its next turn; nil if that is due. Running: its present turn has to end first.
	NotBefore *time.Time              `json:"notBefore,omitempty"`
	Running   bool                    `json:"running,omitempty"`
	Last      *time.Time              `json:"lastBegin,omitempty"`
	Outcome   contract.FDBTurnOutcome `json:"lastOutcome,omitempty"`
}

// readFDBQueue queries the queue for its state. A queue that does not run is empty.
func readFDBQueue(ctx context.Context, temporal client.Client, clusterID string, now time.Time) (*shownFDBQueue, error) {
	shown := &shownFDBQueue{Cluster: clusterID}
	var state contract.FDBExpiryQueueState
	runs, err := fdbQueue(clusterID).Read(ctx, temporal, &state)
	if err != nil {
		return nil, err
	}
	if shown.Empty = !runs; runs {
		shown.add(state, now)
	}
	return shown, nil
}

func (q *shownFDBQueue) add(state contract.FDBExpiryQueueState, now time.Time) {
	q.Limit, q.Beyond = state.Limit, state.Beyond
	running := map[contract.ObjectRef]bool{}
	for _, turn := range state.Turns {
		running[turn.Ref] = true
		word := "running"
		switch {
		case turn.ClosedSince != 0:
			word = "lost"
		case turn.Closing:
			word = "terminating"
		}
		q.Turns = append(q.Turns, shownFDBTurn{
			Namespace: turn.Ref.Namespace, Name: turn.Ref.Name, Job: turn.Job, Since: time.Unix(turn.Turn, 0).UTC(), State: word,
		})
	}
	for i, entry := range state.Entries {
		row := shownFDBEntry{
			Position: i + 1, Namespace: entry.Ref.Namespace, Name: entry.Ref.Name, Job: entry.Job,
			Running: running[entry.Ref], Last: unixMoment(entry.Last), Outcome: entry.Outcome,
		}
		if entry.NotBefore > now.Unix() {
			row.NotBefore = unixMoment(entry.NotBefore)
		}
		q.Queue = append(q.Queue, row)
	}
}

func unixMoment(seconds int64) *time.Time {
	if seconds == 0 {
		return nil
	}
	at := time.Unix(seconds, 0).UTC()
	return &at
}

var fdbTurnColumns = []operator.Column[shownFDBTurn]{
	operator.NewColumn("NAMESPACE", func(t shownFDBTurn) string { return t.Namespace }),
	operator.NewColumn("NAME", func(t shownFDBTurn) string { return t.Name }),
	operator.NewColumn("JOB", func(t shownFDBTurn) string { return string(t.Job) }),
	operator.NewColumn("SINCE", func(t shownFDBTurn) string { return operator.Moment(&t.Since) }),
	operator.NewColumn("STATE", func(t shownFDBTurn) string { return t.State }),
}

var fdbEntryColumns = []operator.Column[shownFDBEntry]{
	operator.NewColumn("POSITION", func(e shownFDBEntry) string { return strconv.Itoa(e.Position) }),
	operator.NewColumn("NAMESPACE", func(e shownFDBEntry) string { return e.Namespace }),
	operator.NewColumn("NAME", func(e shownFDBEntry) string { return e.Name }),
	operator.NewColumn("JOB", func(e shownFDBEntry) string { return string(e.Job) }),
	operator.NewColumn("NEXT-TURN", nextFDBTurn),
	operator.NewColumn("LAST-BEGIN", func(e shownFDBEntry) string { return operator.Moment(e.Last) }),
	operator.NewColumn("LAST-OUTCOME", func(e shownFDBEntry) string { return terminal.Printable(string(e.Outcome)) }),
}

func nextFDBTurn(e shownFDBEntry) string {
	switch {
	case e.NotBefore != nil:
		return "not before " + operator.Moment(e.NotBefore)
	case e.Running:
		return "when its turn has ended"
	}
	return "due"
}

func (q *shownFDBQueue) Print(out io.Writer) error {
	if q.Empty {
		_, err := fmt.Fprintf(out, "Nobody waits: %s.\n", fdbQueueAbsent(q.Cluster))
		return err
	}
	counted := 0
	for _, turn := range q.Turns {
		if turn.State != "terminating" {
			counted++
		}
	}
	fmt.Fprintf(out, "%d of at most %d at a time run; %d in the queue.\n", counted, q.Limit, len(q.Queue)+q.Beyond)
	if err := operator.PrintPart(out, "Running", fdbTurnColumns, q.Turns); err != nil {
		return err
	}
	if err := operator.PrintPart(out, "Queue", fdbEntryColumns, q.Queue); err != nil || len(q.Queue) == 0 || q.Beyond == 0 {
		return err
	}
	_, err := fmt.Fprintf(out, "\nAbout %d more come after these.\n", q.Beyond)
	return err
}
