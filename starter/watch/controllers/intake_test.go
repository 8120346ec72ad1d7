package controllers

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// A manager that stops must not hang on requests that nobody takes any more.
func TestAFullQueueDoesNotHoldUpTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &intake{} // nobody takes anything
		ctx, stop := context.WithCancel(t.Context())
		ended := false
		go func() {
			i.Enqueue(ctx, Request{Name: "nightly"})
			ended = true
		}()
		synctest.Wait()
		assert.False(t, ended, "no request is dropped")
		stop()
		synctest.Wait()
		assert.True(t, ended)
	})
}

// recordingQueue records what is added.
type recordingQueue struct {
	Queue
	added []Request
}

func (q *recordingQueue) Add(request Request) { q.added = append(q.added, request) }

func TestRequestsFromElsewhereArePassedOn(t *testing.T) {
	q, forced := &recordingQueue{}, Request{Name: "nightly", Force: true}
	forward(newIntake().addOwn).Generic(t.Context(), event.TypedGenericEvent[Request]{Object: forced}, q)
	assert.Equal(t, []Request{forced}, q.added)
}
