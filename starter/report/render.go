package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"
	texttemplate "text/template"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/duration"

	"holdfast.dev/holdfast/starter/terminal"
)

// Formats are the values of --output.
var Formats = []string{"html", "markdown", "json"}

//go:embed page.html
var page string

//go:embed page.md
var markdown string

//go:embed fleet.html
var fleetPage string

//go:embed fleet.md
var fleetMarkdown string

// functions are what both templates call.
var functions = map[string]any{
	"protections": func() []Protection { return Protections },
	"clock":       func(at time.Time) string { return at.Format("2006-01-02 15:04") },
	"span":        func(seconds int64) string { return duration.HumanDuration(time.Duration(seconds) * time.Second) },
	"good":        goodText,
	"verified":    verifiedText,
	"bytes":       bytesText,
	"class":       classOf,
	"dayClass":    dayClass,
	"dayText":     dayText,
	"text":        cell,
}

// The template page is of one cluster; fleet is of several, and has the first's part for each.
var (
	htmlPages     = template.Must(template.Must(template.New("page").Funcs(functions).Parse(page)).New("fleet").Parse(fleetPage))
	markdownPages = texttemplate.Must(texttemplate.Must(texttemplate.New("page").Funcs(functions).Parse(markdown)).
			New("fleet").Parse(fleetMarkdown))
)

// Title names the report.
func (r *Report) Title() string {
	return fmt.Sprintf("Backups of cluster %s, %s to %s", r.Cluster, r.From.Format(time.DateOnly), r.Until.Format(time.DateOnly))
}

// Write writes the report in one of Formats. The HTML is one page that needs nothing else: no script, font or picture.
func (r *Report) Write(out io.Writer, format string) error { return write(out, format, "page", r) }

func write(out io.Writer, format, template string, report any) error {
	switch format {
	case "html":
		return htmlPages.ExecuteTemplate(out, template, report)
	case "markdown":
		return markdownPages.ExecuteTemplate(out, template, report)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(report)
}

func goodText(at *time.Time) string {
	if at == nil {
		return "never"
	}
	return at.UTC().Format("2006-01-02 15:04")
}

// bytesText is a size with a binary unit and three digits at most.
func bytesText(size int64) string {
	const unit = 1024
	scaled, exponent := float64(size), 0
	for scaled >= unit && exponent < 5 {
		scaled /= unit
		exponent++
	}
	if exponent == 0 {
		return resource.NewQuantity(size, resource.DecimalSI).String() + " B"
	}
	return fmt.Sprintf("%.3g %ciB", scaled, " KMGTP"[exponent])
}

// classOf is the colour of a protection.
func classOf(p Protection) string {
	return map[Protection]string{Unprotected: "bad", Partly: "bad", Missed: "bad", BackedUp: "warn", Met: "good", Empty: "faint"}[p]
}

func dayClass(day Day) string {
	switch {
	case day.Failed+day.Missed > 0:
		return "bad"
	case day.Skipped > 0:
		return "warn"
	case day.Good > 0:
		return "good"
	}
	return ""
}

// dayText says it without colours, too.
func dayText(day Day) []string {
	var lines []string
	for _, count := range []struct {
		number int64
		what   string
	}{{day.Good, "good"}, {day.Failed, "failed"}, {day.Missed, "missed"}, {day.Skipped, "skipped"}} {
		if count.number > 0 {
			lines = append(lines, fmt.Sprint(count.number, " ", count.what))
		}
	}
	if lines == nil {
		return []string{"none"}
	}
	return lines
}

var markdownText = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "`", "\\`", "<", "&lt;", ">", "&gt;", "[", `\[`, "*", `\*`, "_", `\_`,
)

// cell is text for a cell of a table in Markdown: tenants write some of it.
func cell(text string) string {
	text = terminal.Printable(text)
	return markdownText.Replace(text)
}
