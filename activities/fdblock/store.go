package fdblock

import "context"

// database is the part of a FoundationDB database that the lock needs.
type database interface {
	// transact runs step in a transaction and commits it. It runs step again in a new transaction if the database says that it may
	// be retried, also if it is unknown whether the commit took place.
	transact(ctx context.Context, step func(tx transaction) error) error
	close()
}

// transaction reads and writes the lock. Its commit fails if what it has read was changed meanwhile.
type transaction interface {
	// lock returns nil if nobody holds the lock.
	lock() (*record, error)
	denied(name string) (bool, error)
	write(lock record)
	clear()
}

// read reads what a decision needs.
func read(tx transaction, owner string) (situation, error) {
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
