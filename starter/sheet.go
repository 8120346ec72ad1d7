package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/workflows/contract"
)

// sheet shows one object to a person, one line for each thing that is known of it.
type sheet struct{ *tabwriter.Writer }

func newSheet(out io.Writer) sheet { return sheet{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)} }

// line leaves out what is not known. Of a value with several lines each is shown below the one before.
func (s sheet) line(name, value string) {
	if value == "" {
		return
	}
	for part := range strings.Lines(value) {
		label := name
		if label != "" {
			label += ":"
		}
		fmt.Fprintf(s, "%s\t%s\n", label, printable(strings.TrimRight(part, "\n")))
		name = ""
	}
}

func (s sheet) workflow(workflow describedWorkflow) { s.named("Workflow", workflow) }

func (s sheet) named(name string, workflow describedWorkflow) {
	s.line(name, workflow.ID)
	s.line(name+" status", workflow.Status)
	s.line("Waiting", workflow.Waiting)
	s.line("Retried", strings.Join(workflow.Retried, "\n"))
}

func (s sheet) conditions(conditions []metav1.Condition) {
	for _, condition := range conditions {
		s.line("Condition "+condition.Type, fmt.Sprintf("%s (%s) %s", condition.Status, condition.Reason, condition.Message))
	}
}

func (s sheet) changes(changes []contract.FieldChange) {
	s.line("Changes", strings.Join(diff(changes), "\n"))
}

// diff shows changes as people know them: a line for what goes, and one for what comes.
func diff(changes []contract.FieldChange) []string {
	var lines []string
	for _, change := range changes {
		if change.From != "" {
			lines = append(lines, printable("- "+change.Field+": "+change.From))
		}
		if change.To != "" {
			lines = append(lines, printable("+ "+change.Field+": "+change.To))
		}
		if change.From == "" && change.To == "" { // says how many are left out
			lines = append(lines, printable("  "+change.Field))
		}
	}
	return lines
}

// printable is text in which nothing can steer a terminal or feign a line: tenants write some of what is shown.
func printable(text string) string {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		quoted := strconv.QuoteToGraphic(text)
		return quoted[1 : len(quoted)-1]
	}
	return text
}
