package eventually

import (
	"errors"
	"testing"
	"time"
)

const interval = 100 * time.Millisecond

// Stop wraps an error after which another try is useless: Succeeds fails at once.
func Stop(err error) error { return &stop{err} }

type stop struct{ error }

func (s *stop) Unwrap() error { return s.error }

// Succeeds calls try until it returns nil. The test fails with its last error if it has not within limit, or at once after Stop.
// No other error fails the test before: a transient one is a reason to try again, so try returns its errors and asserts nothing.
// It calls try on the test's goroutine, at least once, and does not interrupt it: a try that can hang has a context of its own.
// The limit is for what never comes, far above what a busy machine needs; it is no promise.
func Succeeds(t testing.TB, limit time.Duration, try func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for tries := 1; ; tries++ {
		err := try()
		if err == nil {
			return
		}
		var final *stop
		if errors.As(err, &final) || time.Now().After(deadline) {
			t.Fatalf("not within %s, in %d tries; the last one: %v", limit, tries, err)
		}
		time.Sleep(interval)
	}
}

// IsTrue is Succeeds for a condition that cannot fail and has no more to say than what it waits for.
func IsTrue(t testing.TB, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	Succeeds(t, limit, func() error {
		if condition() {
			return nil
		}
		return errors.New("not yet: " + what)
	})
}
