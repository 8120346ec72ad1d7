package browser_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/starter/report"
	"holdfast.dev/holdfast/starter/velero"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// weakest is the lowest contrast of any text with what is behind it, by https://www.w3.org/TR/WCAG21/#dfn-contrast-ratio.
const weakest = `(() => {
	const numbers = (color) => color.match(/[\d.]+/g).map(Number);
	const luminance = (rgb) => {
		const [r, g, b] = rgb.slice(0, 3).map((v) => (v /= 255, v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const ground = (element) => {
		for (; element; element = element.parentElement) {
			const color = numbers(getComputedStyle(element).backgroundColor);
			if (color.length < 4 || color[3] > 0) return color;
		}
		return [255, 255, 255];
	};
	let least = 21;
	for (const element of document.body.querySelectorAll("*")) {
		if (![...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim())) continue;
		const [a, b] = [luminance(numbers(getComputedStyle(element).color)), luminance(ground(element))];
		least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
	}
	return least;
})()`

// shown is what a reader of the report sees.
var shown = []string{"Backups of cluster west", "Namespaces by protection", "unprotected", "20 good", "shop"}

// A report tells the same without a browser, and without scripts.
func TestAReportNeedsNoScript(t *testing.T) {
	page, err := os.ReadFile(writeReport(t, sampleReport()))
	require.NoError(t, err)
	for _, text := range shown {
		assert.Contains(t, string(page), text)
	}
	assert.NotContains(t, string(page), "<script")
}

// sampleReport has names and numbers that are hard to lay out.
func sampleReport() report.Objects {
	good := time.Now().Add(-time.Hour)
	objects := report.Objects{Cluster: "west", Plans: []holdfastv1alpha1.BackupPlan{{}}}
	for _, namespace := range []string{"shop", "a-namespace-with-a-name-as-long-as-kubernetes-allows-it-to-be-63"} {
		objects.Holdings = append(objects.Holdings, velero.Holding{Namespace: namespace, Workloads: 3, LastGood: &good}, velero.Holding{Namespace: "bare", Data: 1})
	}
	objects.Plans[0].Status.Days = []holdfastv1alpha1.Day{{Date: good.UTC().Format(time.DateOnly), Good: 20, Failed: 1, Missed: 2, Skipped: 3}}
	return objects
}

// pictured is the report of the README: what it says is made up, how it looks is not.
func pictured() report.Objects {
	const days = 30
	now := time.Now()
	objects := report.Objects{Cluster: "west"}
	for i, namespace := range []string{"atelier", "bakery", "depot", "orders", "shop"} {
		good := now.Add(time.Duration(-i*5-1) * time.Hour)
		holding := velero.Holding{Namespace: namespace, Workloads: 2 + i*3, Claims: 4 - i, Data: 7 + i, Plans: 1, LastGood: &good}
		plan := holdfastv1alpha1.BackupPlan{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "nightly"}}
		met := metav1.Condition{Type: holdfastv1alpha1.ConditionObjectiveMet, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(good)}
		switch namespace {
		case "depot":
			holding.LastGood, holding.Plans = nil, 0
			objects.Holdings = append(objects.Holdings, holding)
			continue
		case "orders":
			met.Status, met.Reason = metav1.ConditionFalse, "Stale"
		}
		for day := range days {
			plan.Status.Days = append(plan.Status.Days, holdfastv1alpha1.Day{
				Date: now.AddDate(0, 0, 1-days+day).UTC().Format(time.DateOnly),
				Good: 6, Failed: int64((day + i) % 17 / 16), Missed: int64((day + i) % 23 / 22 * 2),
			})
		}
		plan.Status.LastGood = &holdfastv1alpha1.GoodRun{Time: metav1.NewTime(good)}
		plan.Status.Conditions = []metav1.Condition{met}
		objects.Holdings, objects.Plans = append(objects.Holdings, holding), append(objects.Plans, plan)
	}
	return objects
}

// writeReport returns the path of a report.
func writeReport(t *testing.T, objects report.Objects) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	file, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, report.Make(objects, 720*time.Hour, time.Now()).Write(file, "html"))
	require.NoError(t, file.Close())
	return path
}

// A report is read in the light and in the dark, on a screen and on a phone, and without scripts.
func TestAReportIsReadAnywhere(t *testing.T) {
	sample.InLong(t, "TestAReportNeedsNoScript")
	p := openBrowser(t, findChromium(t))
	path := writeReport(t, sampleReport())
	do(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	p.open("file://" + path)
	for _, scheme := range []string{"light", "dark"} {
		p.emulate(scheme)
		for _, width := range []int64{1280, 390} {
			ctx, cancel := context.WithTimeout(p.ctx, glance)
			_, err := chromedp.Run(ctx, chromedp.EmulateViewport(width, 800))
			cancel()
			require.NoError(t, err)
			p.awaitText(shown...)
			contrast, err := ask[float64](p, weakest)
			require.NoError(t, err)
			assert.GreaterOrEqual(t, contrast, 4.5, "%s, %d pixels", scheme, width)
			beyond, err := ask[float64](p, "document.documentElement.scrollWidth - document.documentElement.clientWidth")
			require.NoError(t, err)
			assert.LessOrEqual(t, beyond, 0.0, "%s: wider than %d pixels", scheme, width)
		}
	}
	p.emulate("light")
	p.open("file://" + writeReport(t, pictured()))
	p.awaitText("depot")
	p.picture("report", 1280, 980)
}

// emulate has the browser prefer a color scheme.
func (p *page) emulate(scheme string) {
	p.t.Helper()
	do(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

// do sends a command to the tab.
func do[Params any](p *page, command cdp.Command[Params, cdp.Empty], params Params) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, glance)
	defer cancel()
	_, err := chromedp.Run(ctx, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, command, params)
		return err
	}))
	require.NoError(p.t, err)
}
