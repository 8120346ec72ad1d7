package sample

import (
	"os"
	"strings"
	"testing"
)

// Whole reports whether `make test-long` runs: whole matrices, outages of minutes, and Velero at its own pace.
func Whole() bool { return os.Getenv("HOLDFAST_TEST_LONG") != "" }

// InLong leaves a test, or a case of one, to `make test-long`. The tests that are its sample belong to the same package and run
// in `make test`: test/house has it so.
func InLong(t testing.TB, samples ...string) {
	t.Helper()
	if !Whole() {
		t.Skipf("make test-long runs it; make test has %s", strings.Join(samples, ", "))
	}
}

// Case leaves a case of a matrix to `make test-long` that is not in the sample.
func Case(t testing.TB, chosen bool) {
	t.Helper()
	if !chosen && !Whole() {
		t.Skip("make test-long runs it; make test has other cases")
	}
}
