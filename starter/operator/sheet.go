package operator

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/starter/terminal"
	"holdfast.dev/holdfast/workflows/contract"
)

// Sheet shows one object to a person, one line for each thing that is known of it.
type Sheet struct{ *tabwriter.Writer }

// NewSheet returns a sheet that is written to out at Flush.
func NewSheet(out io.Writer) Sheet { return Sheet{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)} }

// Line leaves out what is not known. Of a value with several lines each is shown below the one before.
func (s Sheet) Line(name, value string) {
	if value == "" {
		return
	}
	for part := range strings.Lines(value) {
		label := name
		if label != "" {
			label += ":"
		}
		fmt.Fprintf(s, "%s\t%s\n", label, terminal.Printable(strings.TrimRight(part, "\n")))
		name = ""
	}
}

// Moment shows when something happened; a time that is nil is left out.
func (s Sheet) Moment(name string, at *metav1.Time) { s.Line(name, Moment(at)) }

// Workflow shows the workflow of the object.
func (s Sheet) Workflow(workflow DescribedWorkflow) { s.Named("Workflow", workflow) }

// Named shows a workflow under that name.
func (s Sheet) Named(name string, workflow DescribedWorkflow) {
	s.Line(name, workflow.ID)
	s.Line(name+" status", workflow.Status)
	s.Line("Waiting", workflow.Waiting)
	s.Line("Retried", strings.Join(workflow.Retried, "\n"))
}

// Conditions shows each condition with its reason and message.
func (s Sheet) Conditions(conditions []metav1.Condition) {
	for _, condition := range conditions {
		s.Line("Condition "+condition.Type, fmt.Sprintf("%s (%s) %s", condition.Status, condition.Reason, condition.Message))
	}
}

// Condition shows one condition, if there is one of that type.
func (s Sheet) Condition(conditions []metav1.Condition, kind string) {
	if found := meta.FindStatusCondition(conditions, kind); found != nil {
		s.Line(kind, fmt.Sprintf("%s, %s: %s", found.Status, found.Reason, found.Message))
	}
}

// Findings shows what a drill has found, and how much more there is.
func (s Sheet) Findings(findings []holdfastv1alpha1.DrillFinding, more int64) {
	for i, found := range findings {
		s.Line(fmt.Sprintf("Finding %d", i+1), fmt.Sprintf("%s (%s): %s", found.Check, found.Result, found.Message))
	}
	if more > 0 {
		s.Line("More findings", fmt.Sprint(more))
	}
}

// Changes shows what of a spec has changed.
func (s Sheet) Changes(changes []contract.FieldChange) {
	s.Line("Changes", strings.Join(Diff(changes), "\n"))
}

// Diff shows changes as people know them: a line for what goes, and one for what comes.
func Diff(changes []contract.FieldChange) []string {
	var lines []string
	for _, change := range changes {
		if change.From != "" {
			lines = append(lines, terminal.Printable("- "+change.Field+": "+change.From))
		}
		if change.To != "" {
			lines = append(lines, terminal.Printable("+ "+change.Field+": "+change.To))
		}
		if change.From == "" && change.To == "" { // says how many are left out
			lines = append(lines, terminal.Printable("  "+change.Field))
		}
	}
	return lines
}
