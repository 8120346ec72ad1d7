package queue

import (
	"context"
	"errors"
	"time"

	"holdfast.dev/holdfast/workflows/connect"
)

// keepInterval is how often the queue is asked whether it runs.
const keepInterval = 30 * time.Second

// keep starts the workflow again when somebody has terminated it, or Temporal has lost it.
func (n *News) keep(ctx context.Context) {
	for sleep(ctx, keepInterval) {
		if !n.anyLimit() {
			continue
		}
		if _, err := n.Turns.Order(ctx); errors.Is(err, connect.ErrNotRunning) {
			n.mutex.Lock()
			n.policy = true
			n.mutex.Unlock()
			wake(n.dirty)
		}
	}
}

func (n *News) anyLimit() bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return len(n.rules.Limits) > 0
}
