package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// connecting is the only folder whose code starts, signals or updates workflows, or keeps Schedules, by a client.
const connecting = "workflows/connect"

var (
	// starting are the options of what starts a workflow.
	starting = []string{"StartWorkflowOptions", "ScheduleWorkflowAction"}
	// calls are the methods of a client.
	calls = []string{"SignalWithStartWorkflow", "SignalWorkflow", "UpdateWithStartWorkflow", "ExecuteWorkflow", "ScheduleClient"}
)

// Code that starts a workflow gives it a fairness key, the tenant's namespace; it is empty for those that serve all namespaces. A
// child inherits that of its parent.
func TestWorkflowsAreStartedInOnePlaceWithAFairnessKey(t *testing.T) {
	found := map[string]int{}
	for folder, files := range packages(t) {
		if strings.Contains(folder+"/", "test/") {
			continue // an environment of tests has methods of these names
		}
		for _, file := range files {
			name := filepath.Join(folder, file)
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, 0)
			require.NoError(t, err)
			ast.Inspect(parsed, func(node ast.Node) bool {
				if literal, is := node.(*ast.CompositeLit); is {
					if kind, is := literal.Type.(*ast.SelectorExpr); is && slices.Contains(starting, kind.Sel.Name) {
						found[kind.Sel.Name]++
						assert.True(t, hasField(literal, "Priority"), "%s starts a workflow without a Priority, see contract.ObjectRef.Fairness", name)
						assert.Equal(t, connecting, folder, "%s starts a workflow: %s does", name, connecting)
					}
				}
				if call, is := node.(*ast.CallExpr); is {
					if method, is := call.Fun.(*ast.SelectorExpr); is && slices.Contains(calls, method.Sel.Name) {
						found[method.Sel.Name]++
						assert.Equal(t, connecting, folder, "%s calls %s: %s does", name, method.Sel.Name, connecting)
					}
				}
				return true
			})
		}
	}
	for _, name := range slices.Concat(starting, calls) {
		assert.Positive(t, found[name], name)
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
