package gate

import (
	"fmt"
	"strings"
	"time"
)

const (
	maxFlakes   = 8
	maxPatience = 14 * 24 * time.Hour
)

// Flake is a line of test/flakes.txt: a test that has been forgiven, and until when it may be.
type Flake struct {
	Package, Test string // of the package the folder, such as test/e2e; the test function
	Cause         string // suspected
	Expires       time.Time
}

// ReadFlakes parses test/flakes.txt: "FOLDER TEST | suspected cause | 2026-12-09" a line, and lines that begin with #. It refuses
// more than eight lines, and a date more than 14 days ahead. A line past its date is valid: its test is forgiven no more.
func ReadFlakes(text string, now time.Time) ([]Flake, error) {
	var flakes []Flake
	number := 0
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(line, "|")
		if len(columns) != 3 {
			return nil, fmt.Errorf("line %d: must be FOLDER TEST | suspected cause | date, got %q", number, line)
		}
		test := strings.Fields(columns[0])
		if len(test) != 2 || strings.Contains(test[1], "/") {
			return nil, fmt.Errorf("line %d: must be the package's folder and a test function, got %q", number, columns[0])
		}
		flake := Flake{Package: test[0], Test: test[1], Cause: strings.TrimSpace(columns[1])}
		if flake.Cause == "" {
			return nil, fmt.Errorf("line %d: no suspected cause", number)
		}
		var err error
		if flake.Expires, err = time.Parse(time.DateOnly, strings.TrimSpace(columns[2])); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if flake.Expires.After(now.Add(maxPatience)) {
			return nil, fmt.Errorf("line %d: %s expires more than 14 days from now", number, flake.Test)
		}
		flakes = append(flakes, flake)
	}
	if len(flakes) > maxFlakes {
		return nil, fmt.Errorf("%d lines, at most %d: mend a test", len(flakes), maxFlakes)
	}
	return flakes, nil
}

// Expired tells whether the day until which the test may be forgiven is over.
func (f Flake) Expired(now time.Time) bool { return now.After(f.Expires.Add(24 * time.Hour)) }
