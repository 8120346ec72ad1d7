package activities

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// A step may take longer than what the workflow waits for a heartbeat.
func TestAWorkerThatLivesSaysSoDuringALongStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var beats atomic.Int32
		stop := repeating(t.Context(), beatInterval, func() { beats.Add(1) })
		assert.EqualValues(t, 1, beats.Load(), "at once")
		time.Sleep(20*time.Second + time.Millisecond)
		synctest.Wait()
		assert.EqualValues(t, 11, beats.Load())
		stop()
		time.Sleep(time.Minute)
		assert.EqualValues(t, 11, beats.Load(), "nothing after the end")
	})
}

func TestAnActivityThatIsCancelledBeatsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		beats := 0
		defer repeating(ctx, beatInterval, func() { beats++ })()
		cancel()
		time.Sleep(time.Minute)
		assert.Equal(t, 1, beats)
	})
}
