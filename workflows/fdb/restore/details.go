package restore

import (
	"fmt"
	"strings"

	"holdfast.dev/holdfast/k8s/fdb/restoretool"
	"holdfast.dev/holdfast/workflows/contract"
	fdbbackup "holdfast.dev/holdfast/workflows/fdb/backup"
)

const hundred = 100

// Percent returns the share of blocks that were restored, in percent.
func Percent(s Situation) int32 {
	if restore := s.Seen.Restore; restore != nil && restore.Blocks > 0 && State(s) != StateCompleted {
		return int32(min(hundred, max(0, restore.BlocksDone*hundred/restore.Blocks))) //nolint:gosec // within 0 and 100
	}
	if state := State(s); state == StateCompleted || state == StateFinalizing || state == StateFailed {
		return hundred
	}
	return 0
}

// Find returns what a pass found, for the status.
func Find(s Situation, ref contract.ObjectRef, failed *Attempt) contract.FDBRestoreFindings {
	findings := contract.FDBRestoreFindings{
		Ref: ref, Generation: s.View.Generation, State: State(s), Percent: Percent(s), Conditions: Judge(s, failed),
		Tasks: s.Tasks, Finalized: s.Finalized(),
	}
	if s.Seen.Restore != nil {
		findings.BytesWritten = s.Seen.Restore.BytesWritten
	}
	if findings.State == StateCompleted && s.View.Plan != nil {
		findings.Restored = s.View.Plan.Version
	}
	return findings
}

// Signature is the part of a pass's findings that is news when it changes: without what changes by itself while a restore runs.
func Signature(findings contract.FDBRestoreFindings) string {
	lines := []string{findings.State}
	for _, condition := range findings.Conditions {
		lines = append(lines, condition.Type+"="+condition.Reason)
	}
	return strings.Join(lines, "\n")
}

// Details returns what the Web UI shows of a restore, in Markdown.
func Details(s Situation, findings contract.FDBRestoreFindings) string {
	lines := []string{fmt.Sprintf("**%s**, %d %% done", restoretool.Observed(findings.State), findings.Percent)}
	for _, condition := range findings.Conditions {
		lines = append(lines, fmt.Sprintf("- **%s** (%s): %s", condition.Type, condition.Reason, plain(condition.Message)))
	}
	if plan := s.View.Plan; plan != nil {
		point := fdbbackup.PointText(&contract.FDBPoint{Version: plan.Version, Time: plan.Time})
		lines = append(lines, fmt.Sprintf("\nTag `%s`, to %s of `%s`", plan.Tag, point, plan.URL))
	}
	if restore := s.Seen.Restore; restore != nil && restore.LastError != "" {
		lines = append(lines, "\nLast error: "+plain(restore.LastError))
	}
	for _, task := range findings.Tasks {
		lines = append(lines, fmt.Sprintf("- %s: %s %s", task.Name, task.Phase, plain(strings.Join(task.Errors, "; "))))
	}
	return strings.Join(lines, "\n")
}

// plain returns a text in one line without Markdown's code quotes.
func plain(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "`", "'")
}
