package backupspec

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"

	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/policytest"
)

func TestATenantNamesNoConfigMapOfOurs(t *testing.T) {
	tests := map[string]struct {
		name string
		own  bool
	}{
		"the policy":                      {"holdfast-policy", true},
		"what is kept":                    {"holdfast-released-3", true},
		"the settings":                    {"holdfast-5h7k2tm9fc", true},
		"the settings without a suffix":   {"holdfast", true},
		"the modifier of a restore":       {owner.NACUUID("west", "team", "again", "u-1"), true},
		"one that the administrator made": {"volumes-to-skip", false},
		"one that mentions us":            {"not-holdfast", false},
		"one that is a UUID":              {"5e2d5cb4-6ab7-5b3e-9a0c-5a6d0c1f7e11", false},
		"none":                            {"", false},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			spec := &velerov1.BackupSpec{ResourcePolicy: &corev1.TypedLocalObjectReference{Kind: "configmap", Name: test.name}}
			_, err := Validate(t.Context(), readerOf(t), policytest.OADPNamespace, policytest.BackupOf(spec), policy.Policy{})
			if !test.own {
				require.NoError(t, err)
				return
			}
			var refused *check.InvalidSpecError
			require.ErrorAs(t, err, &refused)
			assert.False(t, refused.External, "another name helps")
			require.EqualError(t, err, "NonAdminBackup spec.backupSpec.resourcePolicy is restricted, must not name a ConfigMap of "+
				`Holdfast, whose name begins with "holdfast" or ends in a UUID`)
		})
	}
}

// The texts are Velero's (1.18.3), of ConfigMaps that hold "hunter2" somewhere.
func TestWhatVeleroQuotesOfAConfigMapIsConcealed(t *testing.T) {
	const read, checked = "invalid resource policies: fail to read the ResourcePolicies from ConfigMap openshift-adp/team-nightly: ",
		"invalid resource policies: fail to validate ResourcePolicies in ConfigMap openshift-adp/team-nightly: "
	quoting := []string{
		read + "failed to decode yaml data into resource policies  yaml: unmarshal errors:\n" +
			"  line 1: cannot unmarshal !!str `hunter2...` into resourcepolicies.ResourcePolicies",
		read + "failed to decode yaml data into resource policies  yaml: unmarshal errors:\n" +
			"  line 1: field hunter2 not found in type resourcepolicies.ResourcePolicies",
		read + "wrong format of Capacity hunter2",
		checked + "incompatible version number hunter2 with supported version v1",
		checked + "invalid action type hunter2",
		"invalid resource policies: fail to read global backup volume policies from ConfigMap openshift-adp/all: hunter2",
		"invalid restore resource policies: fail to validate ResourcePolicies in ConfigMap openshift-adp/x: hunter2",
		"Error in parsing resource modifiers provided in configmap openshift-adp/x: failed to decode yaml: hunter2",
		"Validation error in resource modifiers provided in configmap openshift-adp/x: unsupported resource modifier version hunter2",
	}
	concealed := check.ConcealedAll(quoting)
	for i, text := range concealed {
		assert.NotContains(t, text, "hunter2", quoting[i])
		assert.Contains(t, text, "administrators find it in the status of the Velero object")
	}
	assert.Contains(t, quoting[0], "hunter2", "Velero's own status is left as it is")
	others := []string{
		"Invalid included/excluded resource lists: excludes list cannot contain an item in the includes list: pods",
		"an existing backup storage location was not specified", "backup execution failed: rpc error", "",
	}
	assert.Equal(t, others, check.ConcealedAll(others))
	assert.Nil(t, check.ConcealedAll(nil))
}
