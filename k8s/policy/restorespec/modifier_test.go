package restorespec

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"holdfast.dev/holdfast/k8s/policy/policytest"
)

// operators are as many kinds as operators bring into a large cluster, in groups of ten, in two versions each.
func operators(kinds int) *Allowlist {
	allowlist := &Allowlist{ClusterRole: "edit"}
	for i := range kinds {
		served := servedAs("")
		served.GroupResource = schema.GroupResource{
			Group: fmt.Sprintf("operator%03d.platform.example.com", i/10), Resource: fmt.Sprintf("virtualmachineinstances%04d", i),
		}
		served.Kind, served.Versions = fmt.Sprintf("VirtualMachineInstance%04d", i), []string{"v1", "v1beta1"}
		allowlist.Resources = append(allowlist.Resources, served)
	}
	return allowlist
}

// A ConfigMap holds 1 MiB. A rule for each kind and version took 0.6 MiB for 600 kinds.
func TestTheModifierOfAClusterWithManyOperatorsFitsAConfigMap(t *testing.T) {
	mark := Mark{Into: policytest.Tenant + "-with-a-long-name-that-is-in-every-rule-of-its-restores", OADPNamespace: "openshift-adp", By: "again"}
	for kinds, most := range map[int]int{600: 360 << 10, 1500: 900 << 10} {
		text, err := mark.Modifier(operators(kinds))
		require.NoError(t, err)
		assert.LessOrEqual(t, len(text), most, "for %d kinds", kinds)
		var read struct {
			Version               string         `json:"version"`
			ResourceModifierRules []modifierRule `json:"resourceModifierRules"`
		}
		require.NoError(t, yaml.UnmarshalStrict([]byte(text), &read), "a reader of YAML limits how much refers to other parts")
		groups := kinds / 10
		assert.Len(t, read.ResourceModifierRules, 4+2*kinds+3*groups+1)
	}
}
