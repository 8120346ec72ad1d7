package restorespec

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"holdfast.dev/holdfast/k8s/policy/policytest"
)

// Velero reads the ConfigMap strictly. A rule that asked for a namespace would miss an object whose file names another.
func TestTheModifierIsWhatVeleroReads(t *testing.T) {
	var read struct {
		Version               string `json:"version"`
		ResourceModifierRules []struct {
			Conditions struct {
				GroupResource string `json:"groupResource"`
				Matches       []struct {
					Path  string `json:"path"`
					Value string `json:"value"`
				} `json:"matches"`
			} `json:"conditions"`
			MergePatches []struct {
				PatchData string `json:"patchData"`
			} `json:"mergePatches"`
		} `json:"resourceModifierRules"`
	}
	claims, scalers := servedAs("persistentvolumeclaims"), servedAs("horizontalpodautoscalers.autoscaling")
	scalers.Versions = []string{"v2", "v1"}
	mark := Mark{Into: policytest.Tenant, OADPNamespace: policytest.OADPNamespace, By: "team-a-again-1"}
	text, err := mark.Modifier(&Allowlist{Resources: []Served{scalers, claims}, Followed: []Served{claims}})
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &read))
	require.Equal(t, "v1", read.Version)
	var rules []string
	for _, rule := range read.ResourceModifierRules {
		of := rule.Conditions.GroupResource
		for _, match := range rule.Conditions.Matches {
			of += " " + match.Path + "=" + match.Value
		}
		require.Len(t, rule.MergePatches, 1)
		rules = append(rules, of+" "+rule.MergePatches[0].PatchData)
	}
	const unnamable = `"metadata":{"name":"Not restored from a storage location of a tenant"}`
	assert.Equal(t, []string{
		`persistentvolumeclaims {"spec":{"volumeName":null}}`,
		`persistentvolumes {"apiVersion":"v1","kind":"PersistentVolume",` + unnamable + `,"spec":null}`,
		`priorityclasses.scheduling.k8s.io {"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass",` + unnamable + `,"value":"none"}`,
		`** {"metadata":{"annotations":{"holdfast.dev/restored-into":"Not.as.its.folder",` +
			`"holdfast.dev/restored-by":"openshift-adp/team-a-again-1","velero.io/restore-status":null,"openshift.io/scc":null}}}`,
		`horizontalpodautoscalers.autoscaling {"apiVersion":"autoscaling/v2","kind":"Kind"}`,
		`horizontalpodautoscalers.autoscaling /apiVersion=autoscaling/v2 /kind=Kind ` +
			`{"apiVersion":"autoscaling/v2","metadata":{"annotations":{"holdfast.dev/restored-into":"team-a"}}}`,
		`horizontalpodautoscalers.autoscaling /apiVersion=autoscaling/v1 /kind=Kind ` +
			`{"apiVersion":"autoscaling/v1","metadata":{"annotations":{"holdfast.dev/restored-into":"team-a"}}}`,
		`persistentvolumeclaims {"apiVersion":"v1","kind":"Kind"}`,
		`persistentvolumeclaims /apiVersion=v1 /kind=Kind {"apiVersion":"v1","metadata":{"annotations":{"holdfast.dev/restored-into":"team-a"}}}`,
	}, rules, "the last rule that matches decides")

	nobody, err := mark.Modifier(nil)
	require.NoError(t, err)
	assert.NotContains(t, nobody, `"holdfast.dev/restored-into":"team-a"`, "nobody has said what may come")
}
