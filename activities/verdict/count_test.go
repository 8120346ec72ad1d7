package verdict_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"holdfast.dev/holdfast/activities/verdict"
)

func TestOneThingIsNotSeveral(t *testing.T) {
	for number, want := range map[int64]string{0: "0 ranges", 1: "1 range", 2: "2 ranges"} {
		assert.Equal(t, want, verdict.Count(number, "range"))
	}
}

func TestWholeSecondsAreNoMoreThanThat(t *testing.T) {
	for seconds, want := range map[int64]string{0: "less than a second", 1: "1 second", 42: "42 seconds"} {
		assert.Equal(t, want, verdict.Took(seconds))
	}
}
