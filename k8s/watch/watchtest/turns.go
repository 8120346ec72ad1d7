package watchtest

import (
	"context"
	"errors"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/workflows/contract"
)

// Turns records what concerns the queue before Velero, and stands in for it.
type Turns struct {
	mutex sync.Mutex
	// Limits are the pools in which objects need turns.
	Limits map[contract.Pool]bool
	// EndedLately is how many turns have ended within the last second, and Busy says that none may start only to say that it waits.
	EndedLately int
	Busy        bool
	// Noted is what watchers have noted: "request", "waits" or "not needed" and the object.
	Noted []string
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
func (t *Turns) Block(takes time.Duration) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.takes = takes
}

// Limited reports whether objects of the pool need turns.
func (t *Turns) Limited(pool contract.Pool) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.Limits[pool]
}

// Ends returns EndedLately.
func (t *Turns) Ends(contract.Pool) int { return t.EndedLately }

// Announce returns the opposite of Busy.
func (t *Turns) Announce(contract.Pool) bool { return !t.Busy }

// BeganToWait notes that an object waits.
func (t *Turns) BeganToWait(_ context.Context, pool contract.Pool, object client.Object) {
	t.note("waits " + string(pool) + " " + client.ObjectKeyFromObject(object).String())
}

// Request notes a request.
func (t *Turns) Request(_ context.Context, pool contract.Pool, object client.Object) {
	t.note("request " + string(pool) + " " + client.ObjectKeyFromObject(object).String())
}

// NotNeeded notes that an object needs no turn.
func (t *Turns) NotNeeded(pool contract.Pool, object client.Object) {
	t.note("not needed " + string(pool) + " " + client.ObjectKeyFromObject(object).String())
}

// Gone notes that an object was deleted.
func (t *Turns) Gone(pool contract.Pool, object client.Object) {
	t.note("gone " + string(pool) + " " + client.ObjectKeyFromObject(object).String())
}

func (t *Turns) note(what string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.Noted = append(t.Noted, what)
}

var errTurnsAway = errors.New("the queue does not answer")

// Signal records news.
func (t *Turns) Signal(_ context.Context, news contract.TurnNews, start bool) error {
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
func (t *Turns) Order(context.Context) (contract.TurnOrder, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.Answer, t.Failure
}

// Sent returns the news so far.
func (t *Turns) Sent() []contract.TurnNews {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return append([]contract.TurnNews(nil), t.News...)
}
