package fdblock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// duration is how long the lock is acquired for; it is renewed while it is used. So it is how long all others wait after a
	// worker has crashed. The operator's lock lasts 10 minutes.
	duration = 2 * time.Minute
	// renewEvery allows several attempts before the lock ends.
	renewEvery = 20 * time.Second
	// margin is how long before its end a lock that could not be renewed counts as lost: clocks differ.
	margin = 15 * time.Second

	// waitLimit is how long to wait until another holder releases the lock; workLeft is the part of the remaining time that is not
	// spent on waiting.
	waitLimit = 45 * time.Second
	workLeft  = 40 * time.Second
	pollEvery = time.Second

	// attemptLimit is the operator's for a transaction, returnLimit ours for releasing the lock.
	attemptLimit = 5 * time.Second
	returnLimit  = 10 * time.Second
)

// locker acquires the lock for one process.
type locker struct {
	owner string
	open  func(connectionString string) (database, error)

	mutex sync.Mutex
	// turns has a channel per database, by its name, for one command of this process at a time: the lock's owner is the process.
	turns map[string]chan struct{}
}

func newLocker(owner string, open func(connectionString string) (database, error)) *locker {
	return &locker{owner: owner, open: open, turns: map[string]chan struct{}{}}
}

// Locked calls do while it holds the database's lock, with a context that ends with a LostError as its cause if the lock is lost.
// It releases the lock when do returns. If it returns an error without calling do, the error says who holds the lock.
func (l *locker) Locked(ctx context.Context, clusterFile string, do func(ctx context.Context) error) error {
	name, connection, err := readClusterFile(clusterFile)
	if err != nil {
		return err
	}
	waiting, cancel := patience(ctx)
	defer cancel()
	done, err := l.turn(waiting, name)
	if err != nil {
		return err
	}
	defer done()
	db, err := l.open(connection)
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	defer db.close()
	held, err := l.acquire(waiting, db)
	if err != nil {
		var other *HeldError
		if !errors.As(err, &other) && !final(err) {
			_ = l.release(ctx, db) // a commit that timed out may have taken place
		}
		return err
	}
	err = l.hold(ctx, db, held, do)
	return errors.Join(err, l.release(ctx, db))
}

// patience returns a context that ends when there is no more time to wait for the lock.
func patience(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := waitLimit
	if end, limited := ctx.Deadline(); limited {
		limit = max(min(limit, time.Until(end)-workLeft), attemptLimit)
	}
	return context.WithTimeout(ctx, limit)
}

// turn waits until no other command of this process uses the database's lock.
func (l *locker) turn(ctx context.Context, name string) (done func(), err error) {
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

// acquire acquires the lock. When ctx ends, its error says why the last attempt failed.
func (l *locker) acquire(ctx context.Context, db database) (held record, err error) {
	began := time.Now()
	for {
		attempt := db.transact(ctx, func(tx transaction) error {
			seen, err := read(tx, l.owner)
			if err != nil {
				return err
			}
			if held, err = grant(seen, l.owner, time.Now(), duration); err == nil {
				tx.write(held)
			}
			return err
		})
		if attempt == nil {
			return held, nil
		}
		if err == nil || ctx.Err() == nil {
			err = attempt // an attempt that was cut short gives no reason
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

// final reports whether waiting is useless.
func final(err error) bool {
	var (
		denied *DeniedError
		value  *ValueError
		lost   *LostError
	)
	return errors.As(err, &denied) || errors.As(err, &value) || errors.As(err, &lost)
}

// hold calls do and renews the lock until do returns, also while do cleans up after its context has ended.
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

// renew extends the lock again and again until ctx ends. It returns an error when the lock is lost, or may be soon.
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
		seen, err := read(tx, l.owner)
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

// release removes the lock if it is ours. A lock that stays expires.
func (l *locker) release(ctx context.Context, db database) error {
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
			return nil // released, or not ours
		}
		if final(err) {
			return err
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return fmt.Errorf("the lock could not be released, and expires within %s: %w", duration, err)
		}
	}
}
