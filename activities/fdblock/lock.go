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
	denyKeys  = keyPrefix + "/denyList/" // and an owner; there is a value while the owner may not have the lock
)

// record is the lock's value: who holds it since when and until when, in seconds since 1970 by the holder's clock.
type record struct {
	owner      string
	start, end int64
}

// expired is the operator's judgement: the lock is still held in the second in which it ends.
func (r record) expired(now time.Time) bool { return r.end < now.Unix() }

// until is when the lock ends by itself.
func (r record) until() time.Time { return time.Unix(r.end, 0).UTC() }

// situation is what a transaction has read.
type situation struct {
	// current is nil while nobody has the lock.
	current *record
	// denied is the entry of the deny list that keeps the lock from us; empty if none does.
	denied string
	// holderDenied: whoever holds the lock is on the deny list, and so does not hold it any more.
	holderDenied bool
}

// take decides whether owner may have the lock now, and returns what is to be written then.
//
// It differs from the operator in two points, neither to another's disadvantage: the operator lets a denied owner have a lock
// that nobody holds, and it keeps the start of the holder whose lock it takes over.
func take(seen situation, owner string, now time.Time, duration time.Duration) (record, error) {
	ours := record{owner: owner, start: now.Unix(), end: now.Add(duration).Unix()}
	switch {
	case seen.denied != "":
		return record{}, &DeniedError{Entry: seen.denied}
	case seen.current == nil:
		return ours, nil
	case seen.current.owner == owner: // what an attempt wrote whose end was not known
		ours.start = min(seen.current.start, ours.start)
		return ours, nil
	case seen.current.expired(now) || seen.holderDenied:
		return ours, nil
	}
	return record{}, &HeldError{Owner: seen.current.owner, Until: seen.current.until()}
}

// extend decides whether the lock is still held, and returns what is to be written then. One that ran out and that nobody has
// taken is.
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

// removable reports whether the lock is owner's to give back.
func removable(seen situation, owner string) bool {
	return seen.current != nil && seen.current.owner == owner
}

// denyNames are the entries of the deny list that keep the lock from one of our owners: itself, all of its host, all of Holdfast.
func denyNames(owner string) []string {
	var names []string
	for at, letter := range owner {
		if letter == '/' {
			names = append(names, owner[:at])
		}
	}
	return append(names, owner)
}

// HeldError says that another has the lock.
type HeldError struct {
	Owner string
	Until time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%.80q holds it until %s, unless it gives it back or extends it", e.Owner, e.Until.Format(time.RFC3339))
}

// DeniedError says that the operator's deny list keeps the lock from us.
type DeniedError struct{ Entry string }

func (e *DeniedError) Error() string {
	return fmt.Sprintf("%.80q is on its deny list (spec.lockOptions.denyList of the FoundationDBCluster): allow it there", e.Entry)
}

// LostError says that the lock was held, and is not any more.
type LostError struct {
	// Cause is nil if the lock is simply gone.
	Cause error
}

func (e *LostError) Error() string {
	if e.Cause == nil {
		return "the lock was lost: somebody has removed it"
	}
	return "the lock was lost: " + e.Cause.Error()
}

func (e *LostError) Unwrap() error { return e.Cause }

// ValueError says that what stands at the lock's key is no lock; nobody takes it over.
type ValueError struct{ Problem string }

func (e *ValueError) Error() string {
	return fmt.Sprintf("the value of key %s is no lock (%s): have the FoundationDB operator's administrator clear it",
		strings.ReplaceAll(lockKey, "\xff\x02", `\xff\x02`), e.Problem)
}
