package gitops

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The table of states is complete if it has each reason that the kinds' packages declare.
func TestEachReasonHasAState(t *testing.T) {
	shown := map[string]bool{}
	for _, s := range states() {
		conditions, _, err := unstructured.NestedSlice(asServed(t, prepared(t, s.object)).Object, "status", "conditions")
		require.NoError(t, err)
		for _, condition := range conditions {
			shown[condition.(map[string]any)["reason"].(string)] = true
		}
	}
	declared := 0
	for _, group := range []string{"fdb", "holdfast", "oadp"} {
		for name, reason := range reasons(t, group) {
			declared++
			assert.True(t, shown[reason], "%s has no state", name)
		}
	}
	assert.Greater(t, declared, 80)
}

// reasons are the constants Reason… of the package of an API group, with their values.
func reasons(t *testing.T, group string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../k8s/api", group, "v1alpha1/*.go"))
	require.NoError(t, err)
	found := map[string]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(node ast.Node) bool {
			spec, is := node.(*ast.ValueSpec)
			if is && strings.HasPrefix(spec.Names[0].Name, "Reason") && len(spec.Values) == 1 {
				value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				require.NoError(t, err)
				found[group+"."+spec.Names[0].Name] = value
			}
			return true
		})
	}
	return found
}
