package approval

import (
	"fmt"
	"strings"
	"time"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
)

// approvalReread is how often a waiting approval reads its objects without a signal, in case signals are lost. It may wait for
// weeks.
const approvalReread = time.Hour

// approvalPhases are the values of the search attribute HoldfastPhase.
var approvalPhases = map[contract.Approval]string{
	contract.ApprovalPending:     "Pending",
	contract.ApprovalApproved:    "Approved",
	contract.ApprovalRejected:    "Rejected",
	contract.ApprovalNotRequired: "NotRequired",
}

// approvalDetails says in Markdown what is to be decided, and how.
func approvalDetails(ref contract.ObjectRef, v contract.ApprovalView, refused string) string {
	var paragraphs []string
	line := func(format string, args ...any) { paragraphs = append(paragraphs, fmt.Sprintf(format, args...)) }
	switch state := v.State(); {
	case state == contract.ApprovalNotRequired:
		line("**Closed:** the location is gone, or the policy requires no approval.")
	case !v.Found:
		line("**Waiting** for the approval request.")
	case state == contract.ApprovalApproved:
		line("**Approved.** Nothing is pending. To revoke, run `holdfast revoke %s --reason TEXT`. Where "+
			"`--approve-through-temporal` allows it, Update `%s` with decision `revoke` does the same.", ref, contract.UpdateDecide)
	case state == contract.ApprovalPending && !v.HasPending:
		line("**Waiting** for a valid spec from the tenant.")
	default:
		if v.Rejected {
			line("**Rejected.** The decision can still be changed.")
		} else {
			line("**Pending since %s:** an administrator has to decide.", v.PendingSince.UTC().Format(time.RFC3339))
		}
		if v.HasApproved {
			line("What was approved before stays in use meanwhile. The change:")
		} else {
			line("Nothing was approved before. The request:")
		}
		paragraphs = append(paragraphs, diff(v.Changes))
		if DecisionWaits(v) {
			line("Decision *%s* is on hold: the tenant has changed the spec since, and the new one is invalid.", v.Decision)
		}
		line("To decide, run `holdfast approve %s --reason TEXT` (or `reject`), or edit approval request `%s`. Where "+
			"`--approve-through-temporal` allows it, Update `%s` does the same, with\n"+
			"`{\"decision\": \"approve\", \"reason\": \"…\", \"resourceVersion\": \"%s\"}`.",
			ref, v.Request, contract.UpdateDecide, v.ResourceVersion)
	}
	if v.Last != nil {
		line("Last decision: %s by %s at %s: %s",
			v.Last.Decision, details.OneLine(v.Last.By), v.Last.At.UTC().Format(time.RFC3339), details.OneLine(v.Last.Reason))
	}
	if refused != "" {
		line("Note: %s", details.OneLine(refused))
	}
	return strings.Join(paragraphs, "\n\n")
}

func diff(changes []contract.FieldChange) string {
	lines := []string{"```diff"}
	for _, change := range changes {
		field := details.OneLine(change.Field)
		if change.From != "" {
			lines = append(lines, "- "+field+": "+details.OneLine(change.From))
		}
		if change.To != "" {
			lines = append(lines, "+ "+field+": "+details.OneLine(change.To))
		}
		if change.From == "" && change.To == "" {
			lines = append(lines, "  "+field)
		}
	}
	return strings.Join(append(lines, "```"), "\n")
}
