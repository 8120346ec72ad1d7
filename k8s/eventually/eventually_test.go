package eventually_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"holdfast.dev/holdfast/k8s/eventually"
)

var errTransient = errors.New("connection refused")

// recorder is a test that fails without ending this one.
type recorder struct {
	testing.TB

	failure string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failure is what a test that calls run fails with.
func failure(t *testing.T, run func(testing.TB)) string {
	t.Helper()
	r, done := &recorder{TB: t}, make(chan struct{})
	go func() {
		defer close(done)
		run(r)
	}()
	<-done
	return r.failure
}

func TestATransientErrorIsNoFailure(t *testing.T) {
	tries := 0
	eventually.Succeeds(t, time.Minute, func() error {
		if tries++; tries < 3 {
			return errTransient
		}
		return nil
	})
	assert.Equal(t, 3, tries)
}

func TestTheLastErrorIsShown(t *testing.T) {
	said := failure(t, func(tb testing.TB) {
		eventually.Succeeds(tb, 0, func() error { return errTransient })
	})
	assert.Contains(t, said, "the last one: connection refused")
	said = failure(t, func(tb testing.TB) { eventually.IsTrue(tb, 0, "the Pod runs", func() bool { return false }) })
	assert.Contains(t, said, "not yet: the Pod runs")
}

func TestAFinalErrorEndsTheWait(t *testing.T) {
	tries := 0
	said := failure(t, func(tb testing.TB) {
		eventually.Succeeds(tb, time.Hour, func() error {
			tries++
			return fmt.Errorf("get: %w", eventually.Stop(errors.New("it is gone")))
		})
	})
	assert.Contains(t, said, "it is gone")
	assert.Equal(t, 1, tries)
}
