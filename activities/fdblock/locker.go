package fdblock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// duration is how long the lock is taken for. It is renewed while it is used: this is only what the crash of a worker costs
	// everybody else. The operator takes it for 10 minutes.
	duration = 2 * time.Minute
	// renewEvery leaves several attempts before the end.
	renewEvery = 20 * time.Second
	// margin is how long before its end a lock that could not be renewed counts as lost: clocks differ.
	margin = 15 * time.Second

	// waitLimit is how long to wait for another to give the lock back, workLeft what is kept then of the time that is left.
	waitLimit = 45 * time.Second
	workLeft  = 40 * time.Second
	pollEvery = time.Second

	// attemptLimit is the operator's for a transaction, returnLimit ours for giving the lock back.
	attemptLimit = 5 * time.Second
	returnLimit  = 10 * time.Second
)

// locker takes the lock for one process.
type locker struct {
	owner string
	open  func(connectionString string) (database, error)

	mutex sync.Mutex
	// turns has what must be held to use the lock of a database, by its name: the lock knows only the process.
	turns map[string]chan struct{}
}

func newLocker(owner string, open func(connectionString string) (database, error)) *locker {
	return &locker{owner: owner, open: open, turns: map[string]chan struct{}{}}
}

// Locked calls do while the database's lock is held, with a context that ends with a LostError as its cause if the lock is lost.
// The lock is given back when do returns. An error without do having been called says who has it.
func (l *locker) Locked(ctx context.Context, clusterFile string, do func(ctx context.Context) error) error {
	name, connection, err := readClusterFile(clusterFile)
	if err != nil {
		return err
	}
	waiting, cancel := patience(ctx)
	defer cancel()
	pass, err := l.turn(waiting, name)
	if err != nil {
		return err
	}
	defer pass()
	db, err := l.open(connection)
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	defer db.close()
	held, err := l.acquire(waiting, db)
	if err != nil {
		var other *HeldError
		if !errors.As(err, &other) && !final(err) {
			_ = l.giveBack(ctx, db) // of a commit that timed out nobody knows
		}
		return err
	}
	err = l.hold(ctx, db, held, do)
	return errors.Join(err, l.giveBack(ctx, db))
}

// patience ends when waiting has to.
func patience(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := waitLimit
	if end, limited := ctx.Deadline(); limited {
		limit = max(min(limit, time.Until(end)-workLeft), attemptLimit)
	}
	return context.WithTimeout(ctx, limit)
}

// turn waits until nothing else of this process uses the database's lock.
func (l *locker) turn(ctx context.Context, name string) (pass func(), err error) {
	l.mutex.Lock()
	turn, known := l.turns[name]
	if !known {
		turn = make(chan struct{}, 1)
		l.turns[name] = turn
	}
	l.mutex.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("another command of this worker holds it: %w", ctx.Err())
	}
}

// acquire takes the lock, or says after the last attempt that ctx allowed why it is not to be had.
func (l *locker) acquire(ctx context.Context, db database) (held record, err error) {
	began := time.Now()
	for {
		attempt := db.transact(ctx, func(tx transaction) error {
			seen, err := look(tx, l.owner)
			if err != nil {
				return err
			}
			if held, err = take(seen, l.owner, time.Now(), duration); err == nil {
				tx.write(held)
			}
			return err
		})
		if attempt == nil {
			return held, nil
		}
		if err == nil || ctx.Err() == nil {
			err = attempt // one that was cut short says nothing
		}
		if final(attempt) {
			return record{}, attempt
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return record{}, fmt.Errorf("after %s: %w", time.Since(began).Round(time.Second), err)
		}
	}
}

// final reports whether waiting does not help.
func final(err error) bool {
	var (
		denied *DeniedError
		value  *ValueError
		lost   *LostError
	)
	return errors.As(err, &denied) || errors.As(err, &value) || errors.As(err, &lost)
}

// hold calls do and renews the lock until it returns, also while it cleans up after its context has ended.
func (l *locker) hold(ctx context.Context, db database, held record, do func(ctx context.Context) error) error {
	working, lose := context.WithCancelCause(ctx)
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var lost error
	var group sync.WaitGroup
	group.Go(func() {
		if lost = l.renew(renewing, db, held); lost != nil {
			lose(lost)
		}
	})
	err := do(working)
	stop()
	group.Wait()
	lose(nil)
	return errors.Join(err, lost)
}

// renew extends the lock again and again until ctx ends. It returns when the lock is lost, or may be soon.
func (l *locker) renew(ctx context.Context, db database, held record) error {
	wait := renewEvery
	var last error
	for {
		expiry := held.until().Add(-margin)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(min(wait, max(time.Until(expiry), 0))):
		}
		if !time.Now().Before(expiry) {
			return &LostError{Cause: fmt.Errorf("it could not be renewed in time: %w", last)}
		}
		extended, err := l.extend(ctx, db, held, expiry)
		switch {
		case err == nil:
			held, wait, last = extended, renewEvery, nil
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it is not needed any more
		case final(err):
			var lost *LostError
			if !errors.As(err, &lost) {
				err = &LostError{Cause: err}
			}
			return err
		default:
			wait, last = pollEvery, err
		}
	}
}

// extend renews the lock once.
func (l *locker) extend(ctx context.Context, db database, held record, expiry time.Time) (extended record, err error) {
	limited, cancel := context.WithDeadline(ctx, expiry)
	defer cancel()
	err = db.transact(limited, func(tx transaction) error {
		seen, err := look(tx, l.owner)
		if err != nil {
			return err
		}
		if extended, err = extend(seen, held, time.Now(), duration); err == nil {
			tx.write(extended)
		}
		return err
	})
	return extended, err
}

// giveBack removes the lock if it is ours. One that stays runs out by itself.
func (l *locker) giveBack(ctx context.Context, db database) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnLimit)
	defer cancel()
	for {
		err := db.transact(ctx, func(tx transaction) error {
			current, err := tx.lock()
			if err == nil && removable(situation{current: current}, l.owner) {
				tx.clear()
			}
			return err
		})
		if err == nil {
			return nil // given back, or not ours
		}
		if final(err) {
			return err
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return fmt.Errorf("the lock could not be given back, and ends by itself within %s: %w", duration, err)
		}
	}
}
