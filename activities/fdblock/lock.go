package fdblock

import (
	"fmt"
	"strings"
	"time"
)

// The FoundationDB operator's keys, unless spec.lockOptions.lockKeyPrefix of the FoundationDBCluster says otherwise.
const (
	keyPrefix = "\xff\x02/org.foundationdb.kubernetes-operator"
	lockKey   = keyPrefix + "/global"
	denyKeys  = keyPrefix + "/denyList/" // + owner: it has a value while that owner may not have the lock
)

// record is the lock's value: its holder, and its start and end in seconds since 1970 by the holder's clock.
type record struct {
	owner      string
	start, end int64
}

// expired judges as the operator does: in the second in which it ends, the lock is still held.
func (r record) expired(now time.Time) bool { return r.end < now.Unix() }

// until returns when the lock ends unless it is renewed.
func (r record) until() time.Time { return time.Unix(r.end, 0).UTC() }

// situation is what a transaction has read.
type situation struct {
	// current is nil while nobody has the lock.
	current *record
	// denied is the entry of the deny list that denies us the lock; empty if there is none.
	denied string
	// holderDenied: the holder is on the deny list, and so does not hold the lock any more.
	holderDenied bool
}

// grant decides whether owner may have the lock now, and returns the value to write.
//
// It differs from the operator in two points, neither of which harms others: the operator grants a free lock to a denied owner,
// and it keeps the start of the previous holder.
func grant(seen situation, owner string, now time.Time, duration time.Duration) (record, error) {
	ours := record{owner: owner, start: now.Unix(), end: now.Add(duration).Unix()}
	switch {
	case seen.denied != "":
		return record{}, &DeniedError{Entry: seen.denied}
	case seen.current == nil:
		return ours, nil
	case seen.current.owner == owner: // written by an attempt whose result was unknown
		ours.start = min(seen.current.start, ours.start)
		return ours, nil
	case seen.current.expired(now) || seen.holderDenied:
		return ours, nil
	}
	return record{}, &HeldError{Owner: seen.current.owner, Until: seen.current.until()}
}

// extend decides whether the lock is still held, and returns the value to write. A lock that has expired is still held if nobody
// else has acquired it.
func extend(seen situation, held record, now time.Time, duration time.Duration) (record, error) {
	switch {
	case seen.denied != "":
		return record{}, &LostError{Cause: &DeniedError{Entry: seen.denied}}
	case seen.current == nil:
		return record{}, &LostError{}
	case seen.current.owner != held.owner:
		return record{}, &LostError{Cause: &HeldError{Owner: seen.current.owner, Until: seen.current.until()}}
	}
	return record{owner: held.owner, start: seen.current.start, end: now.Add(duration).Unix()}, nil
}

// removable reports whether owner holds the lock, and so may release it.
func removable(seen situation, owner string) bool {
	return seen.current != nil && seen.current.owner == owner
}

// denyNames returns the entries of the deny list that deny one of our owners the lock: itself, its host, all of Holdfast.
func denyNames(owner string) []string {
	var names []string
	for at, letter := range owner {
		if letter == '/' {
			names = append(names, owner[:at])
		}
	}
	return append(names, owner)
}

// HeldError says that another owner holds the lock.
type HeldError struct {
	Owner string
	Until time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%.80q holds it until %s, unless it releases or extends it", e.Owner, e.Until.Format(time.RFC3339))
}

// DeniedError says that the operator's deny list denies us the lock.
type DeniedError struct{ Entry string }

func (e *DeniedError) Error() string {
	return fmt.Sprintf("%.80q is on its deny list (spec.lockOptions.denyList of the FoundationDBCluster): allow it there", e.Entry)
}

// LostError says that the lock was held, and no longer is.
type LostError struct {
	// Cause is nil if the lock does not exist any more.
	Cause error
}

func (e *LostError) Error() string {
	if e.Cause == nil {
		return "the lock was lost: somebody has removed it"
	}
	return "the lock was lost: " + e.Cause.Error()
}

func (e *LostError) Unwrap() error { return e.Cause }

// ValueError says that the value at the lock's key is no lock. Nobody overwrites it.
type ValueError struct{ Problem string }

func (e *ValueError) Error() string {
	return fmt.Sprintf("the value of key %s is not a lock (%s): have the FoundationDB operator's administrator clear it",
		strings.ReplaceAll(lockKey, "\xff\x02", `\xff\x02`), e.Problem)
}
