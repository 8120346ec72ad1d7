package monitoring_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"sigs.k8s.io/yaml"

	"holdfast.dev/holdfast/k8s/metrics/metricstest"
	"holdfast.dev/holdfast/k8s/process"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows/contract"
)

// foreign are the metrics of others that the rules and the dashboard ask for, and the process on whose page they are.
// TestAnOperatorSeesABackup looks for each there.
var foreign = map[string]string{
	"process_cpu_seconds_total":                                       env.Worker,
	"process_resident_memory_bytes":                                   env.Watcher,
	"rest_client_requests_total":                                      env.Worker,
	"temporal_num_pollers":                                            env.Worker,
	"temporal_request_failure_total":                                  env.Worker,
	"temporal_request_latency_seconds_bucket":                         env.Watcher,
	"temporal_request_total":                                          env.Watcher,
	"temporal_sticky_cache_size":                                      env.Worker,
	"temporal_worker_task_slots_available":                            env.Worker,
	"temporal_workflow_completed_total":                               env.Worker,
	"temporal_workflow_task_execution_failed_total":                   env.Worker,
	"workqueue_adds_total":                                            env.Watcher,
	"workqueue_depth":                                                 env.Watcher,
	"temporal_local_activity_execution_latency_seconds_bucket":        env.Worker,
	"temporal_workflow_task_schedule_to_start_latency_seconds_bucket": env.Worker,
}

type rule struct {
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

func deployed(t *testing.T, elements ...string) string {
	t.Helper()
	root, err := tools.Root()
	require.NoError(t, err)
	return filepath.Join(append([]string{root}, elements...)...)
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return content
}

func rules(t *testing.T) []rule {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	require.NoError(t, yaml.Unmarshal(read(t, deployed(t, "deploy", "monitoring", "alerts.yaml")), &file))
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	require.NotEmpty(t, all)
	return all
}

type target struct{ panel, expr string }

// targets returns every expression of the dashboard.
func targets(t *testing.T) []target {
	t.Helper()
	type datasource struct{ Type, UID string }
	var dashboard struct {
		Panels []struct {
			Title, Type string
			Datasource  datasource
			Targets     []struct {
				Expr       string
				Datasource datasource
			}
		}
		Templating struct {
			List []struct{ Name, Type, Query string }
		}
	}
	require.NoError(t, json.Unmarshal(read(t, deployed(t, "deploy", "monitoring", "dashboard.json")), &dashboard))
	require.Len(t, dashboard.Templating.List, 1)
	assert.Equal(t, "prometheus", dashboard.Templating.List[0].Query)
	chosen := datasource{Type: "prometheus", UID: "${" + dashboard.Templating.List[0].Name + "}"}
	var all []target
	for _, panel := range dashboard.Panels {
		if panel.Type == "row" {
			continue
		}
		assert.Equal(t, chosen, panel.Datasource, "panel %q", panel.Title)
		assert.NotEmpty(t, panel.Targets, "panel %q", panel.Title)
		for _, each := range panel.Targets {
			assert.Equal(t, chosen, each.Datasource, "panel %q", panel.Title)
			all = append(all, target{panel: panel.Title, expr: strings.ReplaceAll(each.Expr, "$__rate_interval", "5m")})
		}
	}
	require.NotEmpty(t, all)
	return all
}

func promtool(t *testing.T, args ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs promtool")
	}
	path, err := tools.Path(t.Context(), tools.Promtool)
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestTheRulesAreValidAndFireAsTheirTestsSay(t *testing.T) {
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", deployed(t, "deploy", "monitoring", "alerts.yaml"))
	promtool(t, "test", "rules", deployed(t, "deploy", "monitoring", "alerts_test.yaml"))
}

func TestEveryExpressionOfTheDashboardIsValid(t *testing.T) {
	var recording []map[string]string
	for i, each := range targets(t) {
		recording = append(recording, map[string]string{"record": fmt.Sprintf("panel:%d", i), "expr": each.expr})
	}
	content, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": recording}}})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "dashboard.yaml")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	promtool(t, "check", "rules", path)
}

// Each alert has a severity, says what is the matter, is explained in the documentation, and has a test in which it fires
// and one in which it does not.
func TestEveryAlertIsExplainedAndTested(t *testing.T) {
	var file struct {
		Tests []struct {
			Alerts []struct {
				Name     string `json:"alertname"`
				Expected []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	require.NoError(t, yaml.Unmarshal(read(t, deployed(t, "deploy", "monitoring", "alerts_test.yaml")), &file))
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, alert := range test.Alerts {
			fires[alert.Name] = fires[alert.Name] || len(alert.Expected) > 0
			silent[alert.Name] = silent[alert.Name] || len(alert.Expected) == 0
		}
	}
	explained := string(read(t, deployed(t, "docs", "monitoring.md")))
	for _, rule := range rules(t) {
		t.Run(rule.Alert, func(t *testing.T) {
			assert.Contains(t, []string{"critical", "warning"}, rule.Labels["severity"])
			assert.NotEmpty(t, rule.Annotations["summary"])
			assert.NotEmpty(t, rule.Annotations["description"])
			assert.Equal(t, "https://holdfast.dev/runbooks/"+rule.Alert, rule.Annotations["runbook_url"])
			assert.Contains(t, explained, "["+rule.Alert+"](runbooks/"+rule.Alert+".md)")
			page := string(read(t, deployed(t, "docs", "runbooks", rule.Alert+".md")))
			assert.Regexp(t, "(?s)^# "+rule.Alert+"\n.+\n## Check\n.+\n## Do\n", page)
			assert.True(t, fires[rule.Alert], "no test in which it fires")
			assert.True(t, silent[rule.Alert], "no test in which it does not fire")
		})
	}
	pages, err := filepath.Glob(deployed(t, "docs", "runbooks", "*.md"))
	require.NoError(t, err)
	for _, page := range pages {
		assert.True(t, fires[strings.TrimSuffix(filepath.Base(page), ".md")], "%s is of no alert", page)
	}
}

// sdkMetrics is called once: the registry of this process takes each name once.
var sdkMetrics = sync.OnceValues(func() (client.MetricsHandler, error) {
	handler, _, err := process.Metrics()
	return handler, err
})

// queryable are the names that a query may use: of a histogram its parts.
func queryable(t *testing.T) map[string]bool {
	t.Helper()
	handler, err := sdkMetrics()
	require.NoError(t, err)
	handler.Counter(contract.MetricResourceTimeouts).Inc(1)
	handler.Timer(contract.MetricRestorePhase).Record(time.Second)
	names := map[string]bool{}
	for name, kind := range metricstest.Exposed(t) {
		switch {
		case !strings.HasPrefix(name, "holdfast_"): // others': by the list
		case kind == dto.MetricType_HISTOGRAM:
			names[name+"_bucket"], names[name+"_count"], names[name+"_sum"] = true, true, true
		default:
			names[name] = true
		}
	}
	for name := range foreign {
		names[name] = true
	}
	return names
}

// metricsIn returns the names of the metrics in an expression: what is left of it without strings, selectors, ranges, lists of
// labels, functions, words of the language, and numbers.
func metricsIn(expr string) []string {
	for _, noise := range []string{
		`"[^"]*"`, `\{[^}]*\}`, `\[[^\]]*\]`, `\b(by|without|on|ignoring)\s*\([^)]*\)`, `\boffset\s+\w+`,
		`\b[a-z_]+\s*\(`, `\b(and|or|unless|bool)\b`,
	} {
		expr = regexp.MustCompile(noise).ReplaceAllString(expr, " ")
	}
	return regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`).FindAllString(expr, -1)
}

func TestMetricsAreFoundInAnExpression(t *testing.T) {
	for expr, want := range map[string][]string{
		`up == 1`: {"up"},
		`sum by (cluster, le) (rate(a_bucket{x="b(c)"}[5m])) > 0.1`:                            {"a_bucket"},
		`a unless ignoring (check) b{c="d"} == bool 0 or vector(0)`:                            {"a", "b"},
		`time() - max by (cluster) (a_seconds) < 60`:                                           {"a_seconds"},
		`sum(a_total unless a_total offset 10m) and histogram_quantile(0.95, sum by (le) (b))`: {"a_total", "a_total", "b"},
	} {
		assert.Equal(t, want, metricsIn(expr), expr)
	}
}

// A misspelt name is no error to Prometheus: the alert would never fire.
func TestEveryMetricOfTheRulesAndTheDashboardExists(t *testing.T) {
	names := queryable(t)
	used := map[string]bool{}
	check := func(where, expr string) {
		found := metricsIn(expr)
		assert.NotEmpty(t, found, "%s: %s", where, expr)
		for _, name := range found {
			assert.True(t, names[name], "%s asks for %s, which nobody exposes", where, name)
			used[name] = true
		}
	}
	for _, rule := range rules(t) {
		check("alert "+rule.Alert, rule.Expr)
	}
	for _, each := range targets(t) {
		check("panel "+each.panel, each.expr)
	}
	for name := range foreign {
		assert.True(t, used[name], "%s is in the list of others' metrics, and nobody asks for it", name)
	}
}

// The documentation's table is complete.
func TestEveryMetricIsDocumented(t *testing.T) {
	explained := string(read(t, deployed(t, "docs", "monitoring.md")))
	for name := range metricstest.Exposed(t) {
		if strings.HasPrefix(name, "holdfast_") {
			assert.Contains(t, explained, "`"+name)
		}
	}
	assert.Contains(t, explained, "`"+contract.MetricResourceTimeouts)
	assert.Contains(t, explained, "`"+contract.MetricRestorePhase)
}

// The command that docs/monitoring.md gives makes a PrometheusRule with the same groups.
func TestTheRulesBecomeAPrometheusRule(t *testing.T) {
	documented := regexp.MustCompile("(?s)```sh\n(\\{ printf.*?) \\| kubectl apply -f -\n```").
		FindSubmatch(read(t, deployed(t, "docs", "monitoring.md")))
	require.Len(t, documented, 2)
	command := exec.CommandContext(t.Context(), "sh", "-c", string(documented[1]))
	command.Dir = deployed(t)
	out, err := command.Output()
	require.NoError(t, err)
	var resource struct {
		Kind string
		Spec map[string]any
	}
	require.NoError(t, yaml.Unmarshal(out, &resource))
	assert.Equal(t, "PrometheusRule", resource.Kind)
	var file map[string]any
	require.NoError(t, yaml.Unmarshal(read(t, deployed(t, "deploy", "monitoring", "alerts.yaml")), &file))
	assert.Equal(t, file, resource.Spec)
}
