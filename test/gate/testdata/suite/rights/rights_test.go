package rights

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	m.Run()
	fmt.Fprintln(os.Stderr, "never forgiven: missing right: holdfast-worker get /secrets")
	os.Exit(1)
}

func TestGood(*testing.T) {}
