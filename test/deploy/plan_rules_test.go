package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// What the real API server makes of a BackupPlan: its rules are taken at installation, and refuse in a sentence.
func TestBackupPlan(t *testing.T) {
	ctx, stack := t.Context(), theJudge(t).stack

	t.Run("defaults", func(t *testing.T) { planDefaults(ctx, t, stack) })
	t.Run("specs", func(t *testing.T) { planSpecs(ctx, t, stack) })
	t.Run("columns", func(t *testing.T) { planColumns(ctx, t, stack) })
}

// backupPlan has this schedule, and more fields of its spec, in JSON.
func backupPlan(t *testing.T, name, schedule, fields string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(holdfastv1alpha1.GroupVersion.WithKind(holdfastv1alpha1.KindBackupPlan))
	object.SetNamespace(fdbNamespace)
	object.SetName(name)
	spec := map[string]any{"schedule": schedule, "template": map[string]any{"spec": map[string]any{"backupSpec": map[string]any{}}}}
	require.NoError(t, json.Unmarshal([]byte("{"+fields+"}"), &spec))
	object.Object["spec"] = spec
	return object
}

func planDefaults(ctx context.Context, t *testing.T, stack *env.Env) {
	object := backupPlan(t, "defaults", "@daily", `"keep":{}`)
	require.NoError(t, stack.Client().Create(ctx, object, client.DryRunAll))
	assert.Equal(t, map[string]any{
		"schedule": "@daily", "startingDeadline": "1h", "concurrencyPolicy": "Skip", "keep": map[string]any{"minGood": int64(1), "failed": int64(3)},
		"template": map[string]any{"spec": map[string]any{"backupSpec": map[string]any{}}},
	}, object.Object["spec"])
}

func planSpecs(ctx context.Context, t *testing.T, stack *env.Env) {
	const (
		fields   = "schedule must have five fields (minute, hour, day of month, month, day of week), or be @hourly"
		jitter   = "jitter must be a duration in hours, minutes and seconds"
		deadline = "startingDeadline must be a duration in hours, minutes and seconds"
		point    = "recoveryPoint must be a duration in hours, minutes and seconds"
		labels   = "labels of holdfast.dev and openshift.io are Holdfast's own"
	)
	metadata := func(metadata string) string {
		return `"template":{"metadata":` + metadata + `,"spec":{"backupSpec":{}}}`
	}
	for _, test := range []struct{ schedule, fields, want string }{ // want is what the refusal says; empty: it is taken
		{"0 2 * * *", "", ""},
		{"@weekly", `"timeZone":"Europe/Berlin"`, ""},
		{"0 2 * *", "", fields},
		{"0 2 * * * *", "", fields},
		{"@yearly", "", fields},
		{"@every 1h", "", fields},
		{"TZ=UTC 2 * * *", "", fields},
		{strings.Repeat("1", 129), "", "Too long"},
		{"@daily", `"timeZone":"` + strings.Repeat("z", 65) + `"`, "Too long"},
		{"@daily", `"jitter":"0s"`, ""},
		{"@daily", `"jitter":"24h"`, ""},
		{"@daily", `"jitter":"24h1s"`, jitter},
		{"@daily", `"jitter":"-1s"`, jitter},
		{"@daily", `"jitter":"ten minutes"`, jitter},
		{"@daily", `"startingDeadline":"10s"`, ""},
		{"@daily", `"startingDeadline":"9s"`, deadline},
		{"@daily", `"startingDeadline":"1d"`, deadline},
		{"@daily", `"concurrencyPolicy":"Allow"`, ""},
		{"@daily", `"concurrencyPolicy":"Forbid"`, "supported values"},
		{"@daily", `"objective":{"recoveryPoint":"26h"}`, ""},
		{"@daily", `"objective":{"recoveryPoint":"59s"}`, point},
		{"@daily", `"objective":{}`, "objective must have recoveryPoint or verified, or both"},
		{"@daily", `"keep":{"minGood":0}`, "greater than or equal to 1"},
		{"@daily", `"keep":{"last":1001}`, "less than or equal to 1000"},
		{"@daily", `"keep":{"yearly":31}`, "less than or equal to 30"},
		{"@daily", `"keep":{"daily":-1}`, "greater than or equal to 0"},
		{"@daily", `"template":{"spec":{}}`, "backupSpec: Required value"},
		{"@daily", metadata(`{"labels":{"team":"a"}}`), ""},
		{"@daily", metadata(`{"labels":{"holdfast.dev/hold":"true"}}`), labels},
		{"@daily", metadata(`{"labels":{"velero.openshift.io/a":"b"}}`), labels},
		{"@daily", metadata(`{"annotations":{"holdfast.dev/plan-uid":"u"}}`), "annotations of holdfast.dev and openshift.io are Holdfast's own"},
	} {
		t.Run(fmt.Sprintf("%.40s %.80s", test.schedule, test.fields), func(t *testing.T) {
			requireRefusal(t, stack.Client().Create(ctx, backupPlan(t, "judged", test.schedule, test.fields), client.DryRunAll), test.want)
		})
	}
	require.NoError(t, stack.Client().Create(ctx, backupPlan(t, strings.Repeat("n", 63), "@daily", ""), client.DryRunAll))
	err := stack.Client().Create(ctx, backupPlan(t, strings.Repeat("n", 64), "@daily", ""), client.DryRunAll)
	require.ErrorContains(t, err, "metadata.name may have 63 characters at most, because it is a label of the plan's backups")
}

func planColumns(ctx context.Context, t *testing.T, stack *env.Env) {
	object := backupPlan(t, "columns", "@daily", `"objective":{"recoveryPoint":"26h"}`)
	require.NoError(t, stack.Client().Create(ctx, object))
	defer func() { require.NoError(t, stack.Client().Delete(ctx, object)) }()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"conditions":[
		{"type":"Ready","status":"True","reason":"Scheduled","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"},
		{"type":"ObjectiveMet","status":"False","reason":"Stale","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}],
		"paused":"Operator","nextRun":"2026-01-02T00:00:00Z","lastGood":{"name":"a","time":"2026-01-01T00:00:00Z"}}}`))
	require.NoError(t, stack.Client().Status().Patch(ctx, object.DeepCopy(), patch))
	lines := strings.Split(strings.TrimSpace(mustKubectl(ctx, t, stack, env.Admin, "get", "bplan", "-n", fdbNamespace, "columns")), "\n")
	require.Len(t, lines, 2)
	assert.Equal(t, []string{"NAME", "SCHEDULE", "PAUSED", "LAST-GOOD", "LAST-VERIFIED", "NEXT-RUN", "OBJECTIVE", "READY"}, strings.Fields(lines[0]))
	shown := strings.Fields(lines[1])
	assert.Equal(t, []string{"columns", "@daily", "Operator"}, shown[:3])
	assert.Equal(t, []string{"2026-01-02T00:00:00Z", "Stale", "True"}, shown[4:])
}
