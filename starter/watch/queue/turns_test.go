package queue

import (
	"context"
	"errors"
	"sync"
	"time"

	"holdfast.dev/holdfast/workflows/contract"
)

// recordedTurns is the queue before Velero: it records what it is sent.
type recordedTurns struct {
	mutex sync.Mutex
	// News are the signals that were sent, and Started whether the last one was to start the workflow.
	News    []contract.TurnNews
	Started bool
	// Answer is the order that the workflow answers; Failure is its error.
	Answer  contract.TurnOrder
	Failure error
	// Away: that many signals fail.
	Away int

	takes time.Duration
}

// Block makes each signal take so long from now on.
func (t *recordedTurns) Block(takes time.Duration) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.takes = takes
}

var errTurnsAway = errors.New("the queue does not answer")

// Signal records news.
func (t *recordedTurns) Signal(_ context.Context, news contract.TurnNews, start bool) error {
	t.mutex.Lock()
	takes := t.takes
	t.mutex.Unlock()
	time.Sleep(takes)
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.Away > 0 {
		t.Away--
		return errTurnsAway
	}
	t.News, t.Started = append(t.News, news), start
	return nil
}

// Order returns the answer.
func (t *recordedTurns) Order(context.Context) (contract.TurnOrder, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.Answer, t.Failure
}

// Sent returns the news so far.
func (t *recordedTurns) Sent() []contract.TurnNews {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return append([]contract.TurnNews(nil), t.News...)
}
