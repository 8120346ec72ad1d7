package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// What the real API server makes of a FoundationDBRestore: its rules are taken at installation, refuse in a sentence, and nothing
// of a restore can be changed but that it is stopped.
func TestFoundationDBRestore(t *testing.T) {
	ctx, stack := t.Context(), theJudge(t).stack

	t.Run("defaults", func(t *testing.T) { restoreDefaults(ctx, t, stack) })
	t.Run("specs", func(t *testing.T) { restoreSpecs(ctx, t, stack) })
	t.Run("names", func(t *testing.T) { restoreNames(ctx, t, stack) })
	t.Run("changes", func(t *testing.T) { restoreChanges(ctx, t, stack) })
	t.Run("columns", func(t *testing.T) { restoreColumns(ctx, t, stack) })
}

// fdbRestore has exactly this spec, in JSON. An empty name is made up.
func fdbRestore(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(fdbv1alpha1.GroupVersion.WithKind(fdbv1alpha1.KindFoundationDBRestore))
	object.SetNamespace(fdbNamespace)
	object.SetName(name)
	if name == "" {
		object.SetGenerateName("r-")
	}
	var fields map[string]any
	require.NoError(t, json.Unmarshal([]byte(spec), &fields))
	object.Object["spec"] = fields
	return object
}

const (
	restoreByName = `{"backupName":"lab","destinationClusterName":"copy"}`
	restoreURL    = `"backupURL":"blobstore://lab@s3.example.com/lab-1?bucket=b"`
)

// withField is the spec of a restore by name, with one field more, in JSON.
func withField(field string) string {
	if field == "" {
		return restoreByName
	}
	return strings.TrimSuffix(restoreByName, "}") + "," + field + "}"
}

func restoreDefaults(ctx context.Context, t *testing.T, stack *env.Env) {
	object := fdbRestore(t, "", withField(`"credentials":{"secretName":"store"}`))
	require.NoError(t, stack.Client().Create(ctx, object))
	assert.Equal(t, map[string]any{
		"backupName": "lab", "destinationClusterName": "copy", "restoreState": "Running",
		"credentials": map[string]any{"secretName": "store", "key": "credentials"},
	}, object.Object["spec"])
}

func restoreSpecs(ctx context.Context, t *testing.T, stack *env.Env) {
	const (
		one         = "give one of backupURL and backupName"
		source      = "timestamp needs sourceClusterName: only the cluster that was backed up knows which version it had at a time"
		credentials = "backupURL needs credentials, the Secret with the account of the object store"
		secret      = "backupURL must not hold a secret: it belongs in the credentials file"
	)
	for spec, want := range map[string]string{ // what the refusal says; "" is taken
		restoreByName: "",
		`{` + restoreURL + `,"credentials":{"secretName":"s"},"destinationClusterName":"copy"}`: "",
		`{` + restoreURL + `,"destinationClusterName":"copy"}`:                                  credentials,
		`{"destinationClusterName":"copy"}`:                                                     one,
		withField(restoreURL):                                                                   one,
		`{"backupName":"lab"}`:                                                                  "spec.destinationClusterName: Required value",
		`{"backupName":"","destinationClusterName":"copy"}`:                                     "spec.backupName",
		`{"backupURL":"blobstore://lab:key@h/a?bucket=b","credentials":{"secretName":"s"},"destinationClusterName":"c"}`:      secret,
		`{"backupURL":"blobstore://lab:k/e+y@h/a?bucket=b","credentials":{"secretName":"s"},"destinationClusterName":"c"}`:    secret,
		`{"backupURL":"Blobstore://lab:k@h/a?bucket=b","credentials":{"secretName":"s"},"destinationClusterName":"c"}`:        secret,
		`{"backupURL":"blobstore://lab:k:/token@h/a?bucket=b","credentials":{"secretName":"s"},"destinationClusterName":"c"}`: secret,
		`{"backupURL":"blobstore://lab@h:9000/a?bucket=b","credentials":{"secretName":"s"},"destinationClusterName":"c"}`:     "",
		withField(`"timestamp":"2026-01-01T00:00:00Z"`):                                                                       source,
		withField(`"timestamp":"2026-01-01T00:00:00Z","sourceClusterName":"lab"`):                                             "",
		withField(`"timestamp":"2026-01-01T00:00:00Z","sourceClusterName":"lab","version":5`):                                 "",
		withField(`"timestamp":"yesterday","sourceClusterName":"lab"`):                                                        "date-time",
		withField(`"version":1`):                             "",
		withField(`"version":0`):                             "greater than or equal to 1",
		withField(`"restoreState":"Stopped"`):                "",
		withField(`"restoreState":"Paused"`):                 "supported values",
		withField(`"tag":"Prod_1-x"`):                        "",
		withField(`"tag":"-x"`):                              tagRefused,
		withField(`"tag":"a b"`):                             tagRefused,
		withField(`"tag":"` + strings.Repeat("t", 48) + `"`): "",
		withField(`"tag":"` + strings.Repeat("t", 49) + `"`): "may not be more than 48",
		withField(`"keyRanges":` + rangeOf(`\x00`, `\xff`)):  "",
		withField(`"keyRanges":` + rangeOf(`a b`, `c`)):      "start" + keyRefused,
		withField(`"keyRanges":[` + strings.Repeat(`{"start":"a","end":"b"},`, 100) + `{"start":"a","end":"b"}]`): "at most 100 items",
	} {
		t.Run(fmt.Sprintf("%.120s", spec), func(t *testing.T) {
			requireRefusal(t, stack.Client().Create(ctx, fdbRestore(t, "", spec), client.DryRunAll), want)
		})
	}
}

func requireRefusal(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		require.NoError(t, err)
		return
	}
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, want)
}

func restoreNames(ctx context.Context, t *testing.T, stack *env.Env) {
	require.NoError(t, stack.Client().Create(ctx, fdbRestore(t, strings.Repeat("n", 63), restoreByName), client.DryRunAll))
	err := stack.Client().Create(ctx, fdbRestore(t, strings.Repeat("n", 64), restoreByName), client.DryRunAll)
	require.ErrorContains(t, err, "metadata.name may have 63 characters at most")
	without := fdbRestore(t, "", restoreByName)
	delete(without.Object, "spec")
	require.ErrorContains(t, stack.Client().Create(ctx, without, client.DryRunAll), "spec: Required value")
}

func restoreChanges(ctx context.Context, t *testing.T, stack *env.Env) {
	const again = " cannot be changed: create another FoundationDBRestore"
	for title, tt := range map[string]struct{ before, patch, want string }{
		"it is stopped":          {``, `{"restoreState":"Stopped"}`, ""},
		"it runs again":          {`"restoreState":"Stopped"`, `{"restoreState":"Running"}`, "restoreState can only go from Running to Stopped"},
		"its state is left out":  {`"restoreState":"Stopped"`, `{"restoreState":null}`, "restoreState can only go from Running to Stopped"},
		"another backup":         {``, `{"backupName":"other"}`, "backupName" + again},
		"a URL instead":          {`"credentials":{"secretName":"s"}`, `{"backupName":null,` + restoreURL + `}`, "backupURL" + again},
		"another destination":    {``, `{"destinationClusterName":"other"}`, "destinationClusterName" + again},
		"a source":               {``, `{"sourceClusterName":"lab"}`, "sourceClusterName" + again},
		"no source any more":     {`"sourceClusterName":"lab"`, `{"sourceClusterName":null}`, "sourceClusterName" + again},
		"credentials":            {``, `{"credentials":{"secretName":"s"}}`, "credentials" + again},
		"other credentials":      {`"credentials":{"secretName":"s"}`, `{"credentials":{"secretName":"t"}}`, "credentials" + again},
		"a version":              {``, `{"version":5}`, "version" + again},
		"another version":        {`"version":4`, `{"version":5}`, "version" + again},
		"a time":                 {`"sourceClusterName":"lab"`, `{"timestamp":"2026-01-01T00:00:00Z"}`, "timestamp" + again},
		"a tag":                  {``, `{"tag":"t"}`, "tag" + again},
		"key ranges":             {``, `{"keyRanges":[{"start":"a","end":"b"}]}`, "keyRanges" + again},
		"other key ranges":       {`"keyRanges":[{"start":"a","end":"b"}]`, `{"keyRanges":[{"start":"a","end":"c"}]}`, "keyRanges" + again},
		"nothing, written again": {`"tag":"t"`, `{"tag":"t","restoreState":"Running"}`, ""},
	} {
		t.Run(title, func(t *testing.T) {
			object := fdbRestore(t, "changed", withField(tt.before))
			require.NoError(t, stack.Client().Create(ctx, object))
			defer func() { require.NoError(t, stack.Client().Delete(ctx, object)) }()
			patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":`+tt.patch+`}`))
			requireRefusal(t, stack.Client().Patch(ctx, object.DeepCopy(), patch), tt.want)
		})
	}
}

func restoreColumns(ctx context.Context, t *testing.T, stack *env.Env) {
	object := fdbRestore(t, "columns", restoreByName)
	require.NoError(t, stack.Client().Create(ctx, object))
	patch := client.RawPatch(types.MergePatchType, []byte(
		`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Completed","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}],`+
			`"state":"Completed","restoredVersion":7,"progress":{"percentDone":100,"bytesWritten":5}}}`))
	require.NoError(t, stack.Client().Status().Patch(ctx, object.DeepCopy(), patch))
	lines := strings.Split(strings.TrimSpace(mustKubectl(ctx, t, stack, env.Admin, "get", "fdbr", "-n", fdbNamespace, "columns")), "\n")
	require.Len(t, lines, 2)
	assert.Equal(t, []string{"NAME", "READY", "STATE", "PERCENT", "RESTORED-VERSION", "AGE"}, strings.Fields(lines[0]))
	assert.Equal(t, []string{"columns", "True", "Completed", "100", "7"}, strings.Fields(lines[1])[:5])
}
