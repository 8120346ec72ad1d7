package gate

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// costs is how many packages a report lists, those that took longest.
const costs = 16

// Report prints what a stage came to: what each package cost, why it is refused, and last each forgiveness.
func Report(out io.Writer, name string, result Result) {
	byTime := slices.SortedFunc(maps.Keys(result.Seconds), func(a, b string) int {
		return cmp.Compare(result.Seconds[b], result.Seconds[a])
	})
	fmt.Fprintf(out, "\n== %s: seconds of each package\n", name)
	for i, pkg := range byTime {
		if i == costs {
			fmt.Fprintf(out, "  and %d more\n", len(byTime)-costs)
			break
		}
		fmt.Fprintf(out, "  %6.0f  %s\n", result.Seconds[pkg], Short(pkg))
	}
	for _, warning := range result.Warned {
		fmt.Fprintf(out, "warning: %s\n", warning)
	}
	failed := 0
	for _, entry := range result.Verdicts {
		if !entry.Forgiven {
			failed++
		}
	}
	passed := result.Tests - result.Skipped - failed
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", passed, max(failed, len(result.Refused)), result.Skipped)
	fmt.Fprint(out, Noted(result))
}

// Flakes is the line that shows each forgiveness; empty without one.
func Flakes(result Result) string {
	var flakes []string
	for _, entry := range result.Verdicts {
		if entry.Forgiven {
			flakes = append(flakes, fmt.Sprintf("%s, failed %d of %d, load %.0f, log %s",
				entry.name(), entry.Failed, entry.Attempts, entry.Load, entry.Log))
		}
	}
	if len(flakes) == 0 {
		return ""
	}
	return fmt.Sprintf("FLAKES %d of %d: %s\n", len(flakes), result.Tests, strings.Join(flakes, "; "))
}

// Noted is what .ci/run prints once more, at its end.
func Noted(result Result) string {
	var noted strings.Builder
	for _, line := range result.Proved {
		fmt.Fprintln(&noted, line)
	}
	for _, why := range result.Refused {
		fmt.Fprintf(&noted, "REFUSED %s\n", why)
	}
	return noted.String() + Flakes(result)
}

// appendTo adds text to the file that .ci/run prints at its end, if there is one.
func appendTo(path, text string) error {
	if path == "" || text == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := file.WriteString(text); err != nil {
		_ = file.Close() // the write's error is the one to tell
		return err
	}
	return file.Close()
}
