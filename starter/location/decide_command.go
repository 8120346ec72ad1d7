package location

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/workflows/contract"
)

// maxReasonBytes bounds what an administrator gives as reason: it is shown in tables, Events and the Web UI.
const maxReasonBytes = 512

// DecideFlags are those of holdfast approve, reject and revoke.
type DecideFlags struct {
	operator.Flags
	Reason          string
	resourceVersion string
	Timeout         time.Duration
}

// Validate returns one line that names the flag that is wrong.
func (f *DecideFlags) Validate() error {
	switch {
	case strings.TrimSpace(f.Reason) == "":
		return errors.New("--reason: say why, other administrators will read it")
	case len(f.Reason) > maxReasonBytes:
		return fmt.Errorf("--reason: must have at most %d bytes, has %d", maxReasonBytes, len(f.Reason))
	case !utf8.ValidString(f.Reason) || strings.ContainsFunc(f.Reason, unicode.IsControl):
		return errors.New("--reason: must be one line of text")
	case f.Timeout <= 0:
		return errors.New("--timeout: must be a duration above 0")
	}
	return f.Flags.Validate()
}

// Commands returns `holdfast approve`, `reject` and `revoke`.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		decideCommand(contract.DecisionApprove, "Approve the pending request of a tenant's storage location",
			"  holdfast approve shop/offsite --reason 'ticket 4711' --resource-version 8123"),
		decideCommand(contract.DecisionReject,
			"Reject the pending request of a tenant's storage location; what was approved before stays in use",
			"  holdfast reject shop/offsite --reason 'not our provider'"),
		decideCommand(contract.DecisionRevoke, "Revoke the approval of a tenant's storage location, which is removed from Velero",
			"  holdfast revoke shop/offsite --reason 'contract ended'"),
	}
}

func decideCommand(decision contract.Decision, short, example string) *cobra.Command {
	var flags DecideFlags
	command := &cobra.Command{
		Use:   string(decision) + " NAMESPACE/NAME --reason TEXT",
		Short: short,
		Long: short + ".\n\nIt writes the approval request with your own Kubernetes rights and in your name, and waits " +
			"until the worker has acted on it.",
		Example: example,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := flags.Validate(); err != nil {
				return err
			}
			location, err := operator.TenantObject(args[0])
			if err != nil {
				return fmt.Errorf("%s %w", decision, err)
			}
			kubeClient, err := flags.Kubernetes()
			if err != nil {
				return err
			}
			d := decider{
				client: kubeClient, oadpNamespace: flags.OADPNamespace, location: location, decision: decision,
				reason: flags.Reason, resourceVersion: flags.resourceVersion, timeout: flags.Timeout, interval: 500 * time.Millisecond,
			}
			return flags.decide(command.Context(), &d, command.OutOrStdout())
		},
	}
	flags.BindKubernetes(command)
	command.Flags().StringVar(&flags.Reason, "reason", "", "why, for other administrators to read; required")
	command.Flags().StringVar(&flags.resourceVersion, "resource-version", "",
		"VERSION as holdfast list approvals showed it; if the request has changed since, nothing is decided")
	command.Flags().DurationVar(&flags.Timeout, "timeout", time.Minute, "how long to wait until the decision was acted on")
	return command
}

// decide shows what is decided about, decides, and shows what came of it. Programs get one document once the decision is
// stored, whether or not it was acted on in time.
func (f *DecideFlags) decide(ctx context.Context, d *decider, out io.Writer) error {
	people := f.Output == "table"
	d.shown = func(about *decided) error {
		if !people {
			return nil
		}
		return about.printBefore(out)
	}
	result, err := d.run(ctx)
	if result == nil {
		return err
	}
	if people && err != nil {
		return err
	}
	return errors.Join(err, f.Print(out, result, result.printAfter))
}

// decided is what `holdfast approve`, `reject` and `revoke` show.
type decided struct {
	Decision contract.Decision `json:"decision"`
	By       string            `json:"by"`
	Reason   string            `json:"reason"`
	// About is what was decided about.
	About shownApproval `json:"about"`
	// ActedOn: the worker has carried it out. Now is how things stand then; without ActedOn, how they stood last.
	ActedOn bool           `json:"actedOn"`
	Now     *shownApproval `json:"now,omitempty"`
}

func (d *decided) printBefore(out io.Writer) error {
	sheet := operator.NewSheet(out)
	d.About.lines(sheet)
	sheet.Line("Decision", string(d.Decision))
	sheet.Line("Decided by", d.By)
	sheet.Line("Reason", d.Reason)
	return sheet.Flush()
}

func (d *decided) printAfter(out io.Writer) error {
	var now string
	switch d.Now.State {
	case contract.ApprovalApproved:
		now = "approved, and in use as soon as Velero has it"
	case contract.ApprovalRejected:
		now = "rejected"
		if d.Now.ApprovedSpec != nil {
			now = "rejected; what was approved before stays in use"
		}
	default:
		now = d.Now.stateText()
		if d.Decision == contract.DecisionRevoke {
			now = "revoked; the tenant's present specification is " + now
		}
	}
	_, err := fmt.Fprintf(out, "\n%s/%s: %s\n", d.About.Namespace, d.About.Name, now)
	return err
}
