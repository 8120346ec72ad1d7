package fdblock

import (
	"context"
	"errors"
	"maps"
	"sync"
)

var errUnreachable = errors.New("operation aborted because the transaction timed out")

// memory is a database in memory. Transactions see what is committed; a step runs again if what it has read has changed.
type memory struct {
	mutex   sync.Mutex
	current *record
	deny    map[string]bool
	version int
	// broken is the error for a value that is no lock.
	broken error
}

// handle is a process's connection to the database.
type handle struct {
	*memory
	mutex sync.Mutex
	// cut: no transaction gets through, and each ends with its context.
	cut bool
	// unknown is how many commits take place with an unknown result, so that the client runs the step again.
	unknown int
	// mute is how many commits take place without an answer to the client before its time is over.
	mute int
	// between runs once, after a transaction has read and before it commits.
	between func()
	runs    int
}

func (h *handle) close() {}

func (h *handle) set(change func()) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	change()
}

// less decrements a counter, and reports whether it was above zero.
func (h *handle) less(counter *int) (was bool) {
	h.set(func() {
		if was = *counter > 0; was {
			*counter--
		}
	})
	return was
}

func (h *handle) transact(ctx context.Context, step func(tx transaction) error) error {
	limited, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	for {
		var cut bool
		var between func()
		h.set(func() { cut, between, h.between = h.cut, h.between, nil; h.runs++ })
		if cut || limited.Err() != nil {
			<-limited.Done()
			return errUnreachable
		}
		tx := h.begin()
		if err := step(tx); err != nil {
			return err
		}
		if between != nil {
			between()
		}
		if !h.commit(tx) || h.less(&h.unknown) {
			continue
		}
		if h.less(&h.mute) {
			<-limited.Done()
			return errUnreachable
		}
		return nil
	}
}

type memoryTransaction struct {
	seen    *record
	broken  error
	deny    map[string]bool
	version int
	written bool
	value   *record
}

func (m *memory) begin() *memoryTransaction {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	tx := &memoryTransaction{broken: m.broken, version: m.version, deny: map[string]bool{}}
	maps.Copy(tx.deny, m.deny)
	if m.current != nil {
		seen := *m.current
		tx.seen = &seen
	}
	return tx
}

func (m *memory) commit(tx *memoryTransaction) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if !tx.written {
		return true
	}
	if tx.version != m.version {
		return false
	}
	m.version++
	m.current = tx.value
	return true
}

// change makes another client's change.
func (m *memory) change(do func()) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.version++
	do()
}

func (m *memory) value() *record {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.current
}

func (t *memoryTransaction) lock() (*record, error)           { return t.seen, t.broken }
func (t *memoryTransaction) denied(name string) (bool, error) { return t.deny[name], nil }
func (t *memoryTransaction) write(lock record)                { t.written, t.value = true, &lock }
func (t *memoryTransaction) clear()                           { t.written, t.value = true, nil }
