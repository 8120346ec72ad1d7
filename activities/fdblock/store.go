package fdblock

import "context"

// database is the part of a FoundationDB database that the lock needs.
type database interface {
	// transact runs step in a transaction and commits it. Where the database asks for it, step runs again in another, also after
	// a commit of which it is not known whether it took place.
	transact(ctx context.Context, step func(tx transaction) error) error
	close()
}

// transaction reads and writes the lock. What it has read must not have changed when it is committed.
type transaction interface {
	// lock is nil if nobody has it.
	lock() (*record, error)
	denied(name string) (bool, error)
	write(lock record)
	clear()
}

// look reads all that a decision needs.
func look(tx transaction, owner string) (situation, error) {
	var seen situation
	current, err := tx.lock()
	if err != nil {
		return seen, err
	}
	seen.current = current
	for _, name := range denyNames(owner) {
		denied, err := tx.denied(name)
		if err != nil {
			return seen, err
		}
		if denied {
			seen.denied = name
			break
		}
	}
	if current != nil && current.owner != owner {
		seen.holderDenied, err = tx.denied(current.owner)
	}
	return seen, err
}
