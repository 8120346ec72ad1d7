package flaky

import (
	"os"
	"path/filepath"
	"testing"
)

// once fails the first time that it is called with this name.
func once(t *testing.T, name string) {
	path := filepath.Join(os.Getenv("SUITE_STATE"), name)
	if _, err := os.Stat(path); err == nil {
		return
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Error("a slow moment")
}

func TestFlaky(t *testing.T) {
	t.Run("one|case/with a (strange) name", func(t *testing.T) { once(t, "case") })
	t.Run("same", func(*testing.T) {})
	t.Run("same", func(t *testing.T) { once(t, "same") })
}

func TestAlsoFlaky(t *testing.T) { once(t, "also") }

func TestSteady(*testing.T) {}
