package panics

import "testing"

func TestPanics(*testing.T) {
	var m map[string]int
	m["a"] = 1
}
