package deploy_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
)

// What the real API server makes of a FoundationDBDrill: its rules refuse in a sentence, and it cannot be changed.
func TestFoundationDBDrill(t *testing.T) {
	ctx, stack := t.Context(), theJudge(t).stack
	drill := func(name, spec string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(fdbv1alpha1.GroupVersion.WithKind(fdbv1alpha1.KindFoundationDBDrill))
		object.SetNamespace(fdbNamespace)
		object.SetName(name)
		fields := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte("{"+spec+"}"), &fields))
		object.Object["spec"] = fields
		return object
	}
	const least = `"backupName":"ledger","targetClusterName":"spare"`
	object := drill("defaults", least)
	require.NoError(t, stack.Client().Create(ctx, object, client.DryRunAll))
	assert.Equal(t, map[string]any{"backupName": "ledger", "targetClusterName": "spare", "timeout": "1h"}, object.Object["spec"])
	for spec, want := range map[string]string{
		`"backupName":"ledger"`:                                                                     "spec.targetClusterName: Required value",
		`"targetClusterName":"spare"`:                                                               "spec.backupName: Required value",
		least + `,"timeout":"10s"`:                                                                  "timeout must be a duration in hours, minutes and seconds, for example 30m, between 1m and 24h",
		least + `,"timeout":"25h"`:                                                                  "timeout must be a duration in hours, minutes and seconds",
		least + `,"version":0`:                                                                      "spec.version in body should be greater than or equal to 1",
		least + `,"ranges":[{"name":"a","start":"a b","end":"c"}]`:                                  "start must be a printable FoundationDB key",
		least + `,"ranges":[{"name":"a","start":"a","end":"c;clear d"}]`:                            "end must be a printable FoundationDB key",
		least + `,"ranges":[{"name":"a","start":"b","end":"a"}]`:                                    "start must come before end",
		least + `,"ranges":[{"name":"a","start":"a","end":"a"}]`:                                    "start must come before end",
		least + `,"ranges":[{"name":"a","start":"a"}]`:                                              "end: Required value",
		least + `,"ranges":[{"name":"a","start":"a","end":"b"},{"name":"a","start":"c","end":"d"}]`: "Duplicate value",
	} {
		require.ErrorContains(t, stack.Client().Create(ctx, drill("refused", spec), client.DryRunAll), want, spec)
	}
	escaped := drill("escaped", least+`,"ranges":[{"name":"all","start":"a","end":"\\xff"}]`)
	require.NoError(t, stack.Client().Create(ctx, escaped, client.DryRunAll), "the order of the text is not that of the bytes")
	fixed := drill("fixed", least)
	require.NoError(t, stack.Client().Create(ctx, fixed))
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"version":7}}`))
	require.ErrorContains(t, stack.Client().Patch(ctx, fixed, patch), "spec cannot be changed, create another FoundationDBDrill")
}

// What a user copies to drill names the backup of the other sample, and another cluster than it backs up.
func TestTheSampleFoundationDBDrillFitsTheSampleBackup(t *testing.T) {
	samples := readObjects(t, "deploy/samples")
	backup := into[fdbv1alpha1.FoundationDBBackup](t, samples.find(t, "FoundationDBBackup/sample"))
	drill := into[fdbv1alpha1.FoundationDBDrill](t, samples.find(t, "FoundationDBDrill/sample-drill"))
	assert.Empty(t, drill.Namespace, "the user gives it")
	assert.Equal(t, backup.Name, drill.Spec.BackupName)
	assert.NotEqual(t, backup.Spec.ClusterName, drill.Spec.TargetClusterName)
}
