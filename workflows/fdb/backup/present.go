package backup

import (
	"fmt"
	"strings"

	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
)

// Signature is the part of a pass's findings that is news when it changes: without what changes by itself while a backup runs.
func Signature(findings contract.FDBFindings) string {
	var lines []string
	for _, condition := range findings.Conditions {
		lines = append(lines, condition.Type+"="+condition.Reason)
	}
	for _, backup := range findings.Backups {
		lines = append(lines, fmt.Sprintf("%s %s %s %t", backup.Tag, backup.URL, backup.State, backup.Latest != nil))
	}
	return strings.Join(lines, "\n")
}

// Phase returns what lists of workflows show of a backup: FoundationDB's name of its state, Paused, or Unknown.
func Phase(s Situation) string {
	current, runs := s.Current()
	switch {
	case s.Seen.Failure != nil || s.View.Owner == "":
		return "Unknown"
	case runs && s.Seen.AgentsPaused:
		return "Paused"
	case !runs && current.State == "":
		return fdb.StateNeverRan
	}
	return current.State
}

// Details returns what the Web UI shows of a backup, in Markdown: its conditions, or what can be restored.
func Details(s Situation, findings contract.FDBFindings) string {
	var lines []string
	for _, condition := range findings.Conditions {
		lines = append(lines, fmt.Sprintf("- **%s** (%s): %s", condition.Type, condition.Reason, oneLine(condition.Message)))
	}
	if len(findings.Conditions) == 0 {
		lines = append(lines, fmt.Sprintf("**%s**, as the spec says.", Phase(s)))
	}
	for _, backup := range findings.Backups {
		line := fmt.Sprintf("\n%s on tag `%s`: `%s`", backup.State, backup.Tag, backup.URL)
		if backup.Oldest != nil && backup.Latest != nil {
			line += fmt.Sprintf(", restorable from %s to %s", PointText(backup.Oldest), PointText(backup.Latest))
		}
		lines = append(lines, line)
	}
	if last := s.View.Expiry; last != nil {
		lines = append(lines, fmt.Sprintf("\nLast turn in the queue of expirations: **%s**. %s", last.Reason, oneLine(last.Message)))
	}
	return strings.Join(lines, "\n")
}

// PointText returns a point in time of a database for people: its version, and the time if that is known.
func PointText(point *contract.FDBPoint) string {
	if point.Time == 0 {
		return fmt.Sprintf("version %d", point.Version)
	}
	return fmt.Sprintf("version %d (%s)", point.Version, details.Stamp(point.Time))
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
