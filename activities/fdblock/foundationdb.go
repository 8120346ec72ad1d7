//go:build fdb

package fdblock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apple/foundationdb/bindings/go/src/fdb"
	"github.com/apple/foundationdb/bindings/go/src/fdb/tuple"

	"holdfast.dev/holdfast/activities/fdb/tools"
)

// apiVersion is the oldest useful one: it reaches databases of 7.1 and later.
const apiVersion = 710

// New returns a locker that uses FoundationDB's C library. The library has one network thread and one set of TLS files per
// process: it reaches a database that speaks TLS with the worker's own FDB_TLS_* environment, not with the files of a
// FoundationDBBackup.
func New() tools.FDBLocker { return newLocker(newOwner(), open) }

// open connects to a database; the first call of a process starts the network.
func open(connectionString string) (database, error) {
	if err := fdb.APIVersion(apiVersion); err != nil {
		return nil, err
	}
	db, err := fdb.OpenWithConnectionString(connectionString)
	if err != nil {
		return nil, err
	}
	return &foundationDB{Database: db, tls: strings.Contains(connectionString, ":tls")}, nil
}

// foundationDB is a database.
type foundationDB struct {
	fdb.Database
	tls bool
}

func (d *foundationDB) close() { d.Close() }

func (d *foundationDB) transact(ctx context.Context, step func(tx transaction) error) error {
	tr, err := d.CreateTransaction()
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, tr.Cancel)()
	limit, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	if err := tr.Options().SetTimeout(milliseconds(limit)); err != nil { // the limit of all attempts together
		return err
	}
	for {
		err := attempt(tr, step)
		var fault fdb.Error
		if err == nil || !errors.As(err, &fault) {
			return err
		}
		if again := tr.OnError(fault).Get(); again != nil {
			return d.explain(again)
		}
		if limit.Err() != nil {
			return d.explain(fault)
		}
	}
}

// explain adds the advice to check the worker's TLS files, if the database speaks TLS.
func (d *foundationDB) explain(err error) error {
	if !d.tls {
		return err
	}
	return fmt.Errorf("%w; the database speaks TLS, for which this needs the worker's own FDB_TLS_* environment", err)
}

// milliseconds returns what is left of ctx, but at least 1: 0 would be no limit.
func milliseconds(ctx context.Context) int64 {
	end, _ := ctx.Deadline()
	return max(time.Until(end).Milliseconds(), 1)
}

// attempt runs step once and commits.
func attempt(tr fdb.Transaction, step func(tx transaction) error) error {
	if err := tr.Options().SetAccessSystemKeys(); err != nil {
		return err
	}
	if err := tr.Options().SetLockAware(); err != nil { // a database that is being restored is locked
		return err
	}
	if err := step(&fdbTransaction{tr}); err != nil {
		return err
	}
	return tr.Commit().Get()
}

// fdbTransaction implements transaction.
type fdbTransaction struct{ fdb.Transaction }

func (t *fdbTransaction) lock() (*record, error) {
	value, err := t.Get(fdb.Key(lockKey)).Get()
	if err != nil || len(value) == 0 {
		return nil, err
	}
	return decode(value)
}

func (t *fdbTransaction) denied(name string) (bool, error) {
	value, err := t.Get(fdb.Key(denyKeys + name)).Get()
	return value != nil, err
}

func (t *fdbTransaction) write(lock record) { t.Set(fdb.Key(lockKey), encode(lock)) }

func (t *fdbTransaction) clear() { t.Clear(fdb.Key(lockKey)) }

// encode writes the value that the operator reads.
func encode(lock record) []byte { return tuple.Tuple{lock.owner, lock.start, lock.end}.Pack() }

// decode reads the operator's value.
func decode(value []byte) (lock *record, err error) {
	defer func() {
		if recover() != nil { // Unpack indexes beyond the end of a value cut short
			lock, err = nil, &ValueError{Problem: "a tuple cut short"}
		}
	}()
	elements, err := tuple.Unpack(slices.Clip(value))
	if err != nil {
		return nil, &ValueError{Problem: "not a tuple"}
	}
	if len(elements) < 3 {
		return nil, &ValueError{Problem: fmt.Sprintf("a tuple of %d", len(elements))}
	}
	owner, isText := elements[0].(string)
	start, startsAt := elements[1].(int64)
	end, endsAt := elements[2].(int64)
	if !isText || !startsAt || !endsAt {
		return nil, &ValueError{Problem: "not an owner, a start and an end"}
	}
	return &record{owner: owner, start: start, end: end}, nil
}
