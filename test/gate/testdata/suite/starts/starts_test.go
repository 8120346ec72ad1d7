package starts

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(*testing.M) {
	fmt.Fprintln(os.Stderr, "start the stack: etcd does not become ready")
	os.Exit(1)
}

func TestNeverRuns(*testing.T) {}
