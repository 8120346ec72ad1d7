package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
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

const fdbNamespace = "fdb"

// What the real API server makes of a FoundationDBBackup: its rules are taken at installation, refuse in a sentence, and let
// through what FoundationDB takes.
func TestFoundationDBBackup(t *testing.T) {
	j := theJudge(t)
	ctx, stack, sim := t.Context(), j.stack, j.sim
	t.Run("defaults", func(t *testing.T) { fdbDefaults(ctx, t, stack) })
	t.Run("specs", func(t *testing.T) { fdbSpecs(ctx, t, stack) })
	t.Run("names", func(t *testing.T) { fdbNames(ctx, t, stack) })
	t.Run("changes", func(t *testing.T) { fdbChanges(ctx, t, stack) })
	t.Run("a pod template is kept as it is", func(t *testing.T) { fdbKeepsTemplate(ctx, t, stack) })
	t.Run("an empty timestamp format stays", func(t *testing.T) { fdbKeepsEmptyFormat(ctx, t, stack) })
	t.Run("agents", func(t *testing.T) { fdbAgents(ctx, t, stack) })
	t.Run("agents under Pod Security", func(t *testing.T) { fdbAgentsRestricted(ctx, t, stack) })
	t.Run("agents that run", func(t *testing.T) { fdbAgentsRun(ctx, t, stack, sim) })
	t.Run("columns", func(t *testing.T) { fdbColumns(ctx, t, stack) })
	t.Run("the sample is taken", func(t *testing.T) { fdbTakesSample(ctx, t, stack) })
}

// fdbBackup has this spec, in JSON, beside the one field without a default. An empty name is made up.
func fdbBackup(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(fdbv1alpha1.GroupVersion.WithKind(fdbv1alpha1.KindFoundationDBBackup))
	object.SetNamespace(fdbNamespace)
	object.SetName(name)
	if name == "" {
		object.SetGenerateName("b-")
	}
	fields := map[string]any{"credentials": map[string]any{"secretName": "store"}}
	if spec != "" {
		var more map[string]any
		require.NoError(t, json.Unmarshal([]byte(spec), &more))
		maps.Copy(fields, more)
	}
	object.Object["spec"] = fields
	return object
}

func fdbDefaults(ctx context.Context, t *testing.T, stack *env.Env) {
	object := fdbBackup(t, "", "")
	require.NoError(t, stack.Client().Create(ctx, object))
	assert.Equal(t, map[string]any{
		"backupState": "Running", "backupType": "backup_agent", "tag": "default",
		"credentials":           map[string]any{"secretName": "store", "key": "credentials"},
		"destination":           map[string]any{"bucket": "fdb-backups"},
		"snapshotPeriodSeconds": int64(7 * 24 * 3600), "agentCount": int64(3),
		"expiry": map[string]any{"deletionFinalizer": true},
	}, object.Object["spec"])
}

const (
	keyRefused      = ` must be a printable FoundationDB key: spaces and other bytes as \xNN, a backslash twice`
	accountRefused  = "account must be name, name@host, @host, or one of these with :port; its secret belongs in the credentials file"
	bucketRefused   = "bucket must have 3 to 63 lower-case letters, digits, dots and hyphens"
	pathRefused     = "path may hold only letters, digits, _, -, . and /"
	formatRefused   = "timestampFormat may hold only letters, digits, _, ., / and -, and no numeric time zone (-07)"
	tagRefused      = "tag may hold only letters, digits, _ and -"
	paramsRefused   = "each of urlParameters must be name=value without spaces, ?, & and ="
	twiceRefused    = "urlParameters names a parameter twice"
	retainRefused   = "maxRetention must be a duration in hours, minutes and seconds, for example 720h"
	restoreRefused  = "minRestorable must be a duration in hours, minutes and seconds, for example 168h"
	retentionTooLow = "expiry.maxRetention must be longer than snapshotPeriodSeconds plus expiry.minRestorable"
	endpointRefused = "endpoint must be host or host:port"
)

func fdbSpecs(ctx context.Context, t *testing.T, stack *env.Env) {
	for field, tests := range map[string]map[string]string{ // of each value, in JSON, what the refusal says; "" is taken
		"backupState": {`"Running"`: "", `"Stopped"`: "", `"Paused"`: "", `"running"`: "supported values", `""`: "supported values"},
		"backupType":  {`"backup_agent"`: "", `"partitioned_log"`: "supported values"},
		"clusterName": {`"prod"`: "", `""`: "spec.clusterName", quoted(strings.Repeat("c", 254)): "may not be more than 253"},
		"credentials": {
			`{"secretName":"a","key":"b"}`: "", `{}`: "spec.credentials.secretName: Required value",
			`{"secretName":""}`: "at least 1 char", `{"secretName":"a","key":""}`: "at least 1 char",
		},
		"destination": {
			`{}`: "", `{"account":"lab"}`: "", `{"account":"lab@s3.example.com"}`: "", `{"account":"lab@s3.example.com:9000"}`: "",
			`{"account":"@s3.example.com"}`: "", `{"account":"@s3.example.com:9000"}`: "", `{"account":"@"}`: accountRefused,
			`{"account":"@lab@host"}`: accountRefused, `{"account":":secret@host"}`: accountRefused, `{"account":"lab:9000"}`: accountRefused,
			`{"account":"AKIA+x/y"}`: accountRefused, `{"account":"lab:secret@s3.example.com"}`: accountRefused,
			`{"account":"lab@host:port"}`: accountRefused, `{"account":"lab@"}`: accountRefused, `{"account":""}`: accountRefused,
			`{"account":"l b"}`: accountRefused, `{"account":"lab\t"}`: accountRefused, `{"account":"lab@host?bucket=b"}`: accountRefused,
			`{"account":"lab%40host"}`: accountRefused, `{"account":"lab&x"}`: accountRefused, `{"account":"lab\n"}`: accountRefused,
			`{"endpoint":"127.0.0.1:9000"}`: "", `{"endpoint":"s3.example.com"}`: "", `{"endpoint":"https://s3"}`: endpointRefused,
			`{"endpoint":"host:"}`: endpointRefused, `{"endpoint":""}`: endpointRefused, `{"endpoint":"host/path"}`: endpointRefused,
			`{"endpoint":"host?a=b"}`: endpointRefused, `{"endpoint":"a@b"}`: endpointRefused,
			`{"bucket":"abc"}`: "", `{"bucket":"a.b-c"}`: "", quotedIn("bucket", strings.Repeat("b", 63)): "",
			`{"bucket":"ab"}`: bucketRefused, `{"bucket":"Abc"}`: bucketRefused, `{"bucket":"abc-"}`: bucketRefused,
			`{"bucket":""}`: bucketRefused, `{"bucket":"a_c"}`: bucketRefused, quotedIn("bucket", strings.Repeat("b", 64)): "more than 63",
			`{"path":"a"}`: "", `{"path":"team-a/prod_1/x.y"}`: "", `{"path":"a..b/..c"}`: "",
			`{"path":""}`: pathRefused, `{"path":"/a"}`: pathRefused, `{"path":"a/"}`: pathRefused, `{"path":"a//b"}`: pathRefused,
			`{"path":"../a"}`: pathRefused, `{"path":"a/./b"}`: pathRefused, `{"path":"a/.."}`: pathRefused, `{"path":"a b"}`: pathRefused,
			`{"path":"a:b"}`: pathRefused, `{"path":"a?b=c"}`: pathRefused, `{"path":"ä"}`: pathRefused, `{"path":"a\n"}`: pathRefused,
			`{"timestampFormat":""}`: "", `{"timestampFormat":"-2006-01-02T15-04-05Z"}`: "", `{"timestampFormat":"/2006/01/02.150405"}`: "",
			`{"timestampFormat":"-2006-01-02T15:04:05Z"}`: formatRefused, `{"timestampFormat":"-2006-01-02T15-04-05-07"}`: formatRefused,
			`{"timestampFormat":"Z0700"}`: "", `{"timestampFormat":"/../2006"}`: formatRefused, `{"timestampFormat":" 2006"}`: formatRefused,
		},
		"tag": {
			`"a"`: "", `"Prod_1-x"`: "", quoted(strings.Repeat("t", 64)): "",
			`""`: tagRefused, `"a b"`: tagRefused, `"a;b"`: tagRefused, `"é"`: tagRefused, `"a\n"`: tagRefused,
			quoted(strings.Repeat("t", 65)): "may not be more than 64",
		},
		"keyRanges": {
			`[]`: "", rangeOf(`a`, `b`): "", rangeOf(`\x00`, `\xff`): "", rangeOf(`\xAb!~`, `\\`): "", rangeOf(`a\\b`, `c]d[`): "",
			rangeOf(`"'$`, `{}`): "", rangeOf(strings.Repeat("k", 1024), "l"): "",
			rangeOf(`a b`, `c`): "start" + keyRefused, rangeOf(`a`, ` `): "end" + keyRefused, rangeOf(`\`, `c`): "start" + keyRefused,
			rangeOf(`\x0`, `c`): "start" + keyRefused, rangeOf(`\xzz`, `c`): "start" + keyRefused, rangeOf(`a\b`, `c`): "start" + keyRefused,
			rangeOf("a\tb", `c`): "start" + keyRefused, rangeOf(`é`, `z`): "start" + keyRefused, rangeOf("a\n", `z`): "start" + keyRefused,
			rangeOf(`\\\`, `z`): "start" + keyRefused, rangeOf("\u007f", `z`): "start" + keyRefused,
			rangeOf(``, `z`): "start", rangeOf(`a`, ``): "end", `[{"start":"a"}]`: "end: Required value", `[{"end":"a"}]`: "start: Required value",
			rangeOf(strings.Repeat("k", 1025), "l"):                                            "may not be more than 1024",
			"[" + strings.Repeat(`{"start":"a","end":"b"},`, 99) + `{"start":"a","end":"b"}]`:  "",
			"[" + strings.Repeat(`{"start":"a","end":"b"},`, 100) + `{"start":"a","end":"b"}]`: "at most 100 items",
		},
		"snapshotPeriodSeconds": {`1`: "", `315360000`: "", `0`: "should be greater than or equal to 1", `-1`: "greater than", `315360001`: "less than", `1.5`: "int"},
		"agentCount":            {`0`: "", `1000`: "", `-1`: "should be greater than or equal to 0", `1001`: "less than or equal to 1000"},
		"urlParameters": {
			`[]`: "", `["secure_connection=0","region=us-east-1"]`: "", `["header="]`: "", `["a=%20,b:c/d"]`: "",
			`["a"]`: paramsRefused, `["=b"]`: paramsRefused, `["a=b&c=d"]`: paramsRefused, `["a=b c"]`: paramsRefused,
			`["A=b"]`: paramsRefused, `["a=b=c"]`: paramsRefused, `["a=b?c"]`: paramsRefused, `[""]`: paramsRefused, `["a=b\n"]`: paramsRefused,
			`["bucket=x"]`:  "the bucket is set by destination.bucket, not by urlParameters",
			`["a=1","a=2"]`: twiceRefused, `["a=1","b=1","a=1"]`: twiceRefused, `["a=1","ab=1"]`: "",
			`["a=` + strings.Repeat("x", 255) + `"]`: "may not be more than 256",
			numbered(32):                             "", numbered(33): "at most 32 items",
		},
		"expiry": {
			`{}`: "", `{"deletionFinalizer":false}`: "", `{"maxRetention":"720h"}`: "", `{"minRestorable":"168h"}`: "",
			`{"maxRetention":"336h0m1s","minRestorable":"168h"}`: "", `{"maxRetention":"168h1s","minRestorable":"0s"}`: "",
			`{"maxRetention":"336h","minRestorable":"168h"}`: retentionTooLow, `{"maxRetention":"168h"}`: retentionTooLow,
			`{"maxRetention":"30d"}`: retainRefused, `{"maxRetention":"0s"}`: retainRefused, `{"maxRetention":"-1h"}`: retainRefused,
			`{"maxRetention":""}`: retainRefused, `{"maxRetention":"1.5h"}`: retainRefused, `{"maxRetention":"h"}`: retainRefused,
			`{"maxRetention":"720"}`: retainRefused, `{"maxRetention":"999999h9999999m999999999s"}`: "", `{"maxRetention":"1000000h"}`: retainRefused, `{"maxRetention":"1s200h"}`: retainRefused,
			`{"minRestorable":"7d"}`: restoreRefused, `{"minRestorable":""}`: restoreRefused,
		},
		"podTemplateSpec": {`{}`: "", `{"spec":{"containers":[]}}`: "", `[]`: "must be of type object", `"a"`: "must be of type object"},
	} {
		for value, want := range tests {
			t.Run(fmt.Sprintf("%s %.80s", field, value), func(t *testing.T) {
				err := stack.Client().Create(ctx, fdbBackup(t, "", fmt.Sprintf(`{%q:%s}`, field, value)), client.DryRunAll)
				if want == "" {
					require.NoError(t, err)
					return
				}
				require.True(t, apierrors.IsInvalid(err), "%v", err)
				require.ErrorContains(t, err, want)
			})
		}
	}
}

func quoted(text string) string { return `"` + text + `"` }

func quotedIn(field, text string) string { return `{"` + field + `":"` + text + `"}` }

func rangeOf(start, end string) string {
	content, err := json.Marshal([]fdbv1alpha1.KeyRange{{Start: start, End: end}})
	if err != nil {
		return err.Error()
	}
	return string(content)
}

func numbered(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"p%d=1"`, i))
	}
	return "[" + strings.Join(all, ",") + "]"
}

func fdbNames(ctx context.Context, t *testing.T, stack *env.Env) {
	require.NoError(t, stack.Client().Create(ctx, fdbBackup(t, strings.Repeat("n", 63), ""), client.DryRunAll))
	err := stack.Client().Create(ctx, fdbBackup(t, strings.Repeat("n", 64), ""), client.DryRunAll)
	require.ErrorContains(t, err, "metadata.name may have 63 characters at most, because it is a label of the agents' pods")

	without := fdbBackup(t, "", "")
	delete(without.Object, "spec")
	require.ErrorContains(t, stack.Client().Create(ctx, without, client.DryRunAll), "spec: Required value")
}

func fdbChanges(ctx context.Context, t *testing.T, stack *env.Env) {
	const fixed = "spec.clusterName cannot be changed: create another FoundationDBBackup for another cluster"
	for title, tt := range map[string]struct{ before, patch, want string }{
		"another cluster":             {`{"clusterName":"a"}`, `{"spec":{"clusterName":"b"}}`, fixed},
		"no cluster's name any more":  {`{"clusterName":"a"}`, `{"spec":{"clusterName":null}}`, fixed},
		"a cluster's name later":      {``, `{"spec":{"clusterName":"a"}}`, fixed},
		"the own name written out":    {``, `{"spec":{"clusterName":"changed"}}`, ""},
		"the own name no longer":      {`{"clusterName":"changed"}`, `{"spec":{"clusterName":null}}`, ""},
		"everything else":             {``, `{"spec":{"tag":"b","backupState":"Paused","destination":{"path":"p"},"keyRanges":[{"start":"a","end":"b"}]}}`, ""},
		"a label, the cluster stays":  {`{"clusterName":"a"}`, `{"metadata":{"labels":{"a":"b"}}}`, ""},
		"retention that became short": {`{"expiry":{"maxRetention":"200h"}}`, `{"spec":{"snapshotPeriodSeconds":720000}}`, retentionTooLow},
	} {
		t.Run(title, func(t *testing.T) {
			object := fdbBackup(t, "changed", tt.before)
			require.NoError(t, stack.Client().Create(ctx, object))
			defer func() { require.NoError(t, stack.Client().Delete(ctx, object)) }()
			err := stack.Client().Patch(ctx, object.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(tt.patch)))
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.True(t, apierrors.IsInvalid(err), "%v", err)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func fdbKeepsTemplate(ctx context.Context, t *testing.T, stack *env.Env) {
	const template = `{"metadata":{"labels":{"team":"a"}},"spec":{"containers":[{"name":"foundationdb","image":"r/f","unknown":{"a":[1,null]}}]}}`
	object := fdbBackup(t, "", `{"podTemplateSpec":`+template+`}`)
	require.NoError(t, stack.Client().Create(ctx, object))
	typed := fdbStored(ctx, t, stack, object)
	require.NotNil(t, typed.Spec.PodTemplateSpec)
	assert.JSONEq(t, template, string(typed.Spec.PodTemplateSpec.Raw))
}

// fdbStored reads the object as our processes do.
func fdbStored(ctx context.Context, t *testing.T, stack *env.Env, object *unstructured.Unstructured) *fdbv1alpha1.FoundationDBBackup {
	t.Helper()
	current, typed := object.DeepCopy(), &fdbv1alpha1.FoundationDBBackup{}
	require.NoError(t, stack.Client().Get(ctx, client.ObjectKeyFromObject(object), current))
	content, err := current.MarshalJSON()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, typed))
	return typed
}

// Without the default, which would bring the stamp back.
func fdbKeepsEmptyFormat(ctx context.Context, t *testing.T, stack *env.Env) {
	for spec, want := range map[string]*string{`{"destination":{"timestampFormat":""}}`: new(""), `{"destination":{}}`: nil} {
		object := fdbBackup(t, "", spec)
		require.NoError(t, stack.Client().Create(ctx, object))
		assert.Equal(t, want, fdbStored(ctx, t, stack, object).Spec.Destination.TimestampFormat)
	}
}

// The oldest data are those of the first backup, the latest restorable point is that of the last.
func fdbColumns(ctx context.Context, t *testing.T, stack *env.Env) {
	object := fdbBackup(t, "columns", "")
	require.NoError(t, stack.Client().Create(ctx, object))
	get := func() (header, row []string) {
		lines := strings.Split(strings.TrimSpace(mustKubectl(ctx, t, stack, env.Admin, "get", "fdbb", "-n", fdbNamespace, "columns")), "\n")
		require.Len(t, lines, 2)
		return strings.Fields(lines[0]), strings.Fields(lines[1])
	}
	header, row := get()
	assert.Equal(t, []string{"NAME", "GENERATION", "READY", "RECONCILED", "OLDEST-DATA", "LATEST-RESTORABLE", "AGE"}, header)
	assert.Equal(t, []string{"columns", "1"}, row[:2], "and nothing is known")
	require.Len(t, row, 3)

	for _, tt := range []struct{ status, ready, reconciled, oldest, latest string }{
		{
			`{"reconciled":true,"observedGeneration":1,"conditions":[{"type":"Ready","status":"True","reason":"Reconciled","message":"",` +
				`"lastTransitionTime":"2026-01-01T00:00:00Z"}],"backups":[{"tag":"default","url":"blobstore://lab@h/a?bucket=b","state":"RunningDifferentially",` +
				`"oldestData":{"version":1,"timestamp":"2026-01-01T00:00:00Z"},"latestRestorable":{"version":2,"timestamp":"2026-01-02T00:00:00Z"}}]}`,
			"True", "true", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z",
		},
		{
			`{"reconciled":false,"conditions":[{"type":"Ready","status":"Unknown","reason":"StateUnknown","message":"",` +
				`"lastTransitionTime":"2026-01-01T00:00:00Z"}],"backups":[{"tag":"default","url":"u1","oldestData":{"version":1,"timestamp":"2026-01-01T00:00:00Z"},` +
				`"latestRestorable":{"version":2,"timestamp":"2026-01-02T00:00:00Z"}},{"tag":"default","url":"u2",` +
				`"oldestData":{"version":3,"timestamp":"2026-02-01T00:00:00Z"},"latestRestorable":{"version":4,"timestamp":"2026-02-02T00:00:00Z"}}]}`,
			"Unknown", "false", "2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z",
		},
	} {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":`+tt.status+`}`))
		require.NoError(t, stack.Client().Status().Patch(ctx, object.DeepCopy(), patch))
		_, row := get()
		require.Len(t, row, 7, "%v", row)
		assert.Equal(t, []string{"columns", "1", tt.ready, tt.reconciled, tt.oldest, tt.latest}, row[:6])
	}
}
