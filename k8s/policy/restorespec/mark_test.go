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
			Patches []struct {
				Operation string `json:"operation"`
				Path      string `json:"path"`
				Value     string `json:"value"`
			} `json:"patches"`
			MergePatches []struct {
				PatchData string `json:"patchData"`
			} `json:"mergePatches"`
		} `json:"resourceModifierRules"`
	}
	claims, scalers := servedAs("persistentvolumeclaims"), servedAs("horizontalpodautoscalers.autoscaling")
	scalers.Versions = []string{"v2", "v1"}
	mark := Mark{Into: "1e5", OADPNamespace: policytest.OADPNamespace, By: "team-a-again-1"}
	text, err := mark.Modifier(&Allowlist{Resources: []Served{scalers, servedAs("configmaps"), claims}, Followed: []Served{claims}})
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &read))
	require.Equal(t, "v1", read.Version)
	var rules []string
	for _, rule := range read.ResourceModifierRules {
		of := rule.Conditions.GroupResource
		for _, match := range rule.Conditions.Matches {
			of += " " + match.Path + "=" + match.Value
		}
		for _, patch := range rule.Patches {
			of += " " + patch.Operation + " " + patch.Path + "=" + patch.Value
		}
		require.Equal(t, len(rule.Patches) == 0, len(rule.MergePatches) == 1)
		for _, patch := range rule.MergePatches {
			of += " " + patch.PatchData
		}
		rules = append(rules, of)
	}
	const itsKind = `{"metadata":{"annotations":{"holdfast.dev/restored-into":"Of.the.kind.of.its.folder"}}}`
	const annotation = `/metadata/annotations/holdfast.dev~1restored-into`
	const ifItsKind = `test ` + annotation + `="Of.the.kind.of.its.folder" replace ` + annotation + `=`
	const unnamable = `"metadata":{"name":"Not restored from a storage location of a tenant"}`
	assert.Equal(t, []string{
		`persistentvolumeclaims {"spec":{"volumeName":null}}`,
		`persistentvolumes {"apiVersion":"v1","kind":"PersistentVolume",` + unnamable + `,"spec":null}`,
		`priorityclasses.scheduling.k8s.io {"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass",` + unnamable + `,"value":"none"}`,
		`** {"metadata":{"annotations":{"holdfast.dev/restored-into":"Not.as.its.folder",` +
			`"holdfast.dev/restored-by":"openshift-adp/team-a-again-1","velero.io/restore-status":null,"openshift.io/scc":null}}}`,
		`configmaps {"kind":"Kind"}`, `horizontalpodautoscalers.autoscaling {"kind":"Kind"}`, `persistentvolumeclaims {"kind":"Kind"}`,
		`configmaps /kind=Kind ` + itsKind, `horizontalpodautoscalers.autoscaling /kind=Kind ` + itsKind,
		`persistentvolumeclaims /kind=Kind ` + itsKind,
		`horizontalpodautoscalers.autoscaling {"apiVersion":"autoscaling/v2"}`,
		`{configmaps,persistentvolumeclaims} {"apiVersion":"v1"}`,
		`horizontalpodautoscalers.autoscaling /apiVersion=autoscaling/v1 ` + ifItsKind + `"1e5" replace /apiVersion="autoscaling/v1"`,
		`horizontalpodautoscalers.autoscaling /apiVersion=autoscaling/v2 ` + ifItsKind + `"1e5" replace /apiVersion="autoscaling/v2"`,
		`{configmaps,persistentvolumeclaims} /apiVersion=v1 ` + ifItsKind + `"1e5" replace /apiVersion="v1"`,
		`** ` + ifItsKind + `"Not.as.its.folder"`,
	}, rules, "the last rule that matches decides")

	plans, err := mark.Modifier(allowing("backupplans.holdfast.dev"))
	require.NoError(t, err)
	assert.Contains(t, plans, `{"conditions":{"groupResource":"backupplans.holdfast.dev"},"mergePatches":[{"patchData":`+
		`"{\"metadata\":{\"finalizers\":null,\"labels\":{\"holdfast.dev/default-plan\":null},\"annotations\":{\"holdfast.dev/run-now\":null}}}"}]}`)

	mark.Into = policytest.Tenant
	nobody, err := mark.Modifier(nil)
	require.NoError(t, err)
	assert.NotContains(t, nobody, policytest.Tenant+`\"`, "nobody has said what may come")
}
