package location

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/terminal"
	"holdfast.dev/holdfast/workflows/contract"
)

// listApprovals needs no Temporal: an approval request says all by itself.
func listApprovals(
	ctx context.Context, flags *operator.Flags, namespace string, _ io.Writer,
) (any, func(io.Writer) error, error) {
	kubeClient, err := flags.Kubernetes()
	if err != nil {
		return nil, nil, err
	}
	requests, err := approvalRequests(ctx, kubeClient, flags.OADPNamespace)
	if err != nil {
		return nil, nil, err
	}
	rows := approvalRows(requests, namespace)
	return rows, func(out io.Writer) error { return printApprovals(out, rows) }, nil
}

// approvalRows are the requests of one tenant's namespace, or of all: what is pending first, and of that the oldest.
func approvalRows(requests []approvalRequest, namespace string) []shownApproval {
	rows := make([]shownApproval, 0, len(requests))
	for i := range requests {
		if shown, known := showApproval(&requests[i]); known && (namespace == "" || shown.Namespace == namespace) {
			rows = append(rows, shown)
		}
	}
	rank := func(s shownApproval) int {
		if s.State == contract.ApprovalPending {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(rows, func(a, b shownApproval) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Since.Compare(b.Since),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return rows
}

// printApprovals shows below each request that is pending what it would change.
func printApprovals(out io.Writer, rows []shownApproval) error {
	var aligned bytes.Buffer
	table := tabwriter.NewWriter(&aligned, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NAMESPACE\tNAME\tSTATE\tBUCKET\tAGE\tVERSION\tDECIDED-BY")
	for _, r := range rows {
		decided := ""
		if r.LastDecision != nil {
			decided = fmt.Sprintf("%s (%s)", r.LastDecision.DecidedBy, r.LastDecision.Decision)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Namespace, r.Name, r.stateText(), terminal.Printable(r.Bucket),
			duration.HumanDuration(time.Since(r.Since)), r.ResourceVersion, terminal.Printable(decided))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	row := -1 // the header
	for line := range strings.Lines(aligned.String()) {
		fmt.Fprintln(out, strings.TrimRight(line, " \n"))
		if row >= 0 && rows[row].State == contract.ApprovalPending {
			for _, change := range operator.Diff(rows[row].Changes) {
				fmt.Fprintln(out, "  "+change)
			}
		}
		row++
	}
	return nil
}
