package house

import (
	"fmt"
	"os"
	"testing"
)

// strict is set by `make lint-house`. A word or a size is for the reader of a change to judge. It must not veto a build, nor hide
// what the tests have found: in `make test` it is a warning.
var strict = os.Getenv("HOLDFAST_HOUSE") == "strict"

// expect reports what does not hold of prose, names, sizes or the maps: as a failure if strict, and as a warning otherwise. It
// returns whether it holds.
func expect(t testing.TB, holds bool, format string, args ...any) bool {
	t.Helper()
	switch message := fmt.Sprintf(format, args...); {
	case holds:
	case strict:
		t.Error(message)
	default:
		t.Log("warning: " + message)
	}
	return holds
}
