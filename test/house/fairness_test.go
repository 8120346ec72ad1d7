package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// keyless are the files that start workflows without a fairness key, and why.
var keyless = map[string]string{
	"activities/fdb/coordination/activities.go": "coordinators serve all namespaces",
	"activities/fdb/expiry/queue.go":            "the queue serves all namespaces",
	"k8s/watch/queue/temporal.go":               "the queue before Velero serves all namespaces",
	"k8s/watch/schedules/temporal.go":           "what is done for the whole cluster once in a while",
}

// Code that starts a workflow gives it a fairness key, the tenant's namespace. A child inherits that of its parent.
func TestWorkflowsAreStartedWithAFairnessKey(t *testing.T) {
	starting := []string{"StartWorkflowOptions", "ScheduleWorkflowAction"}
	without := map[string]bool{}
	found := 0
	for folder, files := range packages(t) {
		for _, file := range files {
			name := filepath.Join(folder, file)
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, 0)
			require.NoError(t, err)
			ast.Inspect(parsed, func(node ast.Node) bool {
				literal, is := node.(*ast.CompositeLit)
				if !is {
					return true
				}
				if kind, is := literal.Type.(*ast.SelectorExpr); !is || !slices.Contains(starting, kind.Sel.Name) {
					return true
				}
				found++
				if !hasField(literal, "Priority") {
					without[name] = true
					assert.NotEmpty(t, keyless[name], "%s starts a workflow without a Priority, see contract.ObjectRef.Fairness", name)
				}
				return true
			})
		}
	}
	assert.GreaterOrEqual(t, found, len(keyless)+2)
	for name := range keyless {
		assert.True(t, without[name], "%s starts none without a key", name)
	}
}

func hasField(literal *ast.CompositeLit, field string) bool {
	return slices.ContainsFunc(literal.Elts, func(element ast.Expr) bool {
		pair, is := element.(*ast.KeyValueExpr)
		if !is {
			return false
		}
		key, is := pair.Key.(*ast.Ident)
		return is && key.Name == field
	})
}
