package activities

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// A step may take longer than what the workflow waits for a heartbeat.
func TestAWorkerThatLivesSaysSoDuringALongStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		beats := 0
		stop := repeating(t.Context(), beatInterval, func() { beats++ })
		assert.Equal(t, 1, beats, "at once")
		time.Sleep(20*time.Second + time.Millisecond)
		synctest.Wait()
		assert.Equal(t, 11, beats)
		stop()
		time.Sleep(time.Minute)
		assert.Equal(t, 11, beats, "nothing after the end")
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
