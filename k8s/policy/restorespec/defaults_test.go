package restorespec

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// theirs has every field that Velero reads.
const theirs = `
version: v1
resourceModifierRules:
- conditions:
    groupResource: pods
    namespaces: [shop]
    resourceNameRegex: ^web<.*
    labelSelector: {matchLabels: {app: web}}
    matches: [{path: /spec/hostNetwork, value: "true"}]
  mergePatches:
  - patchData: |
      metadata:
        annotations:
          k8s.ovn.org/pod-networks: null
- conditions: {groupResource: "**"}
  patches:
  - {operation: copy, from: /metadata/name, path: /metadata/labels/was}
  - {operation: Remove, path: /metadata/annotations}
- conditions: {groupResource: deployments.apps}
  strategicPatches: [{patchData: '{"spec":{"paused":true}}'}]
`

// Velero applies the rules in order, so ours decide what both write.
func TestTheAdministratorsDefaultsComeBeforeOurs(t *testing.T) {
	defaults, err := ReadDefaults(map[string]string{"any-key.yaml": theirs})
	require.NoError(t, err)
	claims := &Allowlist{Resources: []Served{servedAs("persistentvolumeclaims")}}
	mark := Mark{Into: "shop", OADPNamespace: "openshift-adp", By: "again"}
	ours, err := mark.Modifier(claims)
	require.NoError(t, err)
	claims.Defaults = defaults
	both, err := mark.Modifier(claims)
	require.NoError(t, err)
	rulesOf := func(text string) []any {
		var modifier struct {
			Version               string `json:"version"`
			ResourceModifierRules []any  `json:"resourceModifierRules"`
		}
		require.NoError(t, yaml.UnmarshalStrict([]byte(text), &modifier))
		return modifier.ResourceModifierRules
	}
	assert.Equal(t, append(rulesOf(theirs), rulesOf(ours)...), rulesOf(both))
}

func TestDefaultsThatVeleroWouldRefuse(t *testing.T) {
	rule := func(rest string) string { return "{version: v1, resourceModifierRules: [{" + rest + "}]}" }
	for text, want := range map[string]string{
		"secret: text": "it is not the YAML of a resource modifier",
		"[":            "it is not the YAML of a resource modifier",
		rule("conditions: {groupResource: pods, newer: secret}"): "has fields that are not known here",
		"{version: v2, resourceModifierRules: [{}]}":             "its version is not v1",
		"version: v1":          "it has no rule",
		rule("conditions: {}"): "its rule 1 has no groupResource",
		rule("conditions: {groupResource: a}, patches: [{operation: secret, path: /a}]"):                           "its rule 1 has a patch without a path, or of an unknown",
		rule("conditions: {groupResource: a}, patches: [{operation: add}]"):                                        "its rule 1 has a patch without a path",
		rule("conditions: {groupResource: a}, mergePatches: [{patchData: a}], strategicPatches: [{patchData: a}]"): "its rule 1 has patches of several kinds",
	} {
		_, err := ReadDefaults(map[string]string{"key": text})
		require.ErrorContains(t, err, want, text)
		assert.NotContains(t, err.Error(), "secret", "tenants read it: %s", text)
	}
	_, err := ReadDefaults(map[string]string{"a": theirs, "b": theirs})
	require.EqualError(t, err, "it has 2 keys, and Velero reads one")
	_, err = ReadDefaults(nil)
	require.Error(t, err)
}
