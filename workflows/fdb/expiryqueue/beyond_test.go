package expiryqueue_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows/contract"
)

// TestWhoIsDeletedOrRemovedAmongFiftyThousand: deletions come first, wherever their objects stand, and however many there are. A removed
// backup stays out, even if a list has it.
func TestWhoIsDeletedOrRemovedAmongFiftyThousand(t *testing.T) {
	w := newCrowdWorld(t)
	firsts, answers := w.firsts(), map[string]string{}
	out := []contract.ObjectRef{firsts[450], firsts[1300]} // one that is carried, and one beyond
	var deleted contract.ObjectRef
	crowd := map[contract.ObjectRef]bool{}
	w.at30[0] = func() {
		deleted = w.deletes(len(w.objects) - 7)
		for _, ref := range out {
			w.silent[ref] = true
			w.update(contract.UpdateRemoveEntry, contract.FDBQueueName{Namespace: ref.Namespace, Name: ref.Name}, answers)
		}
	}
	in := w.run(t, contract.FDBExpiryQueueInput{Cluster: "west"}, 2, func() { w.env.SetContinueAsNewSuggested(true) })
	require.NotNil(t, in)
	assert.Contains(t, w.begun[100:200], deleted)
	w.at30 = map[int]func(){0: func() {
		for n := range 600 {
			crowd[w.deletes(len(w.objects)-100-n*3)] = true
		}
	}}
	in = w.run(t, *in, 14, func() { w.env.SetContinueAsNewSuggested(true) })
	require.NotNil(t, in)
	require.Greater(t, len(w.begun), 1500)
	assert.Len(t, answers, len(out))
	for _, ref := range out {
		assert.Contains(t, answers[ref.Name], "is out of the queue")
		assert.NotContains(t, w.begun, ref)
	}
	for _, ref := range w.begun {
		delete(crowd, ref)
	}
	assert.Empty(t, crowd, "are not deleted yet")
	assert.Less(t, len(in.Entries), contract.MaxCarried+contract.MaxDeletions)
	w.keepsSmall(t)
}

// TestTurnsGoOnWhileObjectsCannotBeListed: the API server is away when there is room for members beyond. Carried members have their
// turns, and the list that comes in the end is older than the requests since.
func TestTurnsGoOnWhileObjectsCannotBeListed(t *testing.T) {
	w := newCrowdWorld(t)
	firsts, answers := w.firsts(), map[string]string{}
	left, last := firsts[1040], refOf(&w.objects[len(w.objects)-5])
	var deleted contract.ObjectRef
	before := 0
	w.at30[3] = func() {
		w.mu.Lock()
		w.away = errors.New("away")
		w.mu.Unlock()
	}
	w.at30[7] = func() {
		w.mu.Lock()
		assert.NotNil(t, w.listed, "a listing is under way")
		w.objects[w.at[left]].Spec.Expiry.MaxRetention = ""
		before = len(w.begun)
		w.mu.Unlock()
		w.asks(w.at[left])
		deleted = w.deletes(len(w.objects) - 7)
		w.update(contract.UpdateExpireNow, contract.FDBQueueName{Namespace: last.Namespace, Name: last.Name}, answers)
	}
	w.at30[8] = func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		assert.Contains(t, w.begun[before:before+100], deleted, "turns go on")
		w.away = nil
	}
	in := w.run(t, contract.FDBExpiryQueueInput{Cluster: "west"}, 12, func() { w.env.SetContinueAsNewSuggested(true) })
	require.NotNil(t, in)
	assert.Contains(t, answers[last.Name], "the FoundationDBBackups could not be listed within 1m0s")
	assert.Greater(t, len(w.begun), 1200)
	assert.Contains(t, w.begun, firsts[1041])
	assert.NotContains(t, w.begun, left)
	assert.NotContains(t, w.begun, last, "it was refused")
	count := 0
	for _, ref := range w.begun {
		if ref == deleted {
			count++
		}
	}
	assert.Equal(t, 1, count, "it is gone")
	w.keepsSmall(t)
}

// TestAQueueThatCannotBeginContinues: the history of a run that waits for the list stays short, and no request is lost.
func TestAQueueThatCannotBeginContinues(t *testing.T) {
	w := newCrowdWorld(t)
	w.objects = w.objects[:10]
	w.away = errors.New("away")
	answers := map[string]string{}
	w.at30[0] = func() {
		for n := range w.objects {
			w.asks(n)
		}
		w.update(contract.UpdateExpireNow, contract.FDBQueueName{Namespace: "huge-tenant", Name: w.objects[0].Name}, answers)
	}
	in := w.run(t, contract.FDBExpiryQueueInput{Cluster: "west"}, 2, func() { w.env.SetContinueAsNewSuggested(true) })
	require.NotNil(t, in)
	assert.False(t, in.Found)
	assert.Len(t, in.Entries, 10)
	assert.Empty(t, w.begun, "no turn begins before it is known which run")
	assert.Contains(t, answers[w.objects[0].Name], "the FoundationDBBackups could not be listed within 1m0s")
	w.away, w.listed, w.at30 = nil, nil, nil
	require.NotNil(t, w.run(t, *in, 1, func() { w.env.SetContinueAsNewSuggested(true) }))
	assert.Len(t, w.begun, 10)
}

// A backup that the queue does not carry is found by its name.
func TestABackupThatTheQueueDoesNotCarryIsPutFirst(t *testing.T) {
	w := newCrowdWorld(t)
	last := refOf(&w.objects[len(w.objects)-5])
	answers := map[string]string{}
	w.at30[0] = func() {
		for _, name := range []string{last.Name, "nobody"} {
			w.update(contract.UpdateExpireNow, contract.FDBQueueName{Namespace: last.Namespace, Name: name}, answers)
		}
	}
	require.Nil(t, w.run(t, contract.FDBExpiryQueueInput{Cluster: "west"}, 1, func() { w.env.CancelWorkflow() }))
	require.Len(t, w.begun, 200)
	assert.Equal(t, last, w.begun[100])
	assert.Contains(t, answers[last.Name], last.String()+" is first in the queue")
	assert.Contains(t, answers["nobody"], "nobody is not in the queue")
}
