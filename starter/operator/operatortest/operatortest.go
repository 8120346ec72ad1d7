package operatortest

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/workflows/contract"
)

// WorkflowFor describes a workflow, and requires that it is asked for one of that kind.
func WorkflowFor(t *testing.T, wanted contract.Kind) operator.WorkflowDescriber {
	t.Helper()
	return func(kind contract.Kind, object client.Object) operator.DescribedWorkflow {
		assert.Equal(t, wanted, kind)
		return operator.DescribedWorkflow{
			ID: contract.WorkflowID("west", kind, operator.RefOf(object)), Status: "Running", Waiting: "**Pending**\n\n- a\n+ b",
		}
	}
}

// Printed returns what a command prints of a value.
func Printed(t *testing.T, output string, value any, table func(io.Writer) error) string {
	t.Helper()
	flags := operator.Flags{Output: output, ClusterID: "west", OADPNamespace: "openshift-adp"}
	var out bytes.Buffer
	require.NoError(t, flags.Print(&out, value, table))
	return out.String()
}

// Lines are what a person sees, with one space between the columns.
func Lines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		all = append(all, strings.Join(strings.Fields(line), " "))
	}
	return all
}
