package workflows_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows"
)

func TestEveryActivityIsOneKindsAndCalled(t *testing.T) {
	declared := declaredActivities(t)
	require.NotEmpty(t, declared)
	called, madeFor := namedInWorkflows(t), map[string][]string{}
	for _, kind := range workflows.Kinds() {
		for _, wire := range kind.Activities {
			madeFor[wire] = append(madeFor[wire], kind.Workflow)
		}
	}
	for name, wire := range declared {
		assert.Len(t, madeFor[wire], 1, "contract.%s (%s) is one kind's", name, wire)
		assert.Contains(t, called, name, "contract.%s is called by a workflow", name)
	}
}

// declaredActivities are the activities of package contract: the names of the variables, and on the wire.
func declaredActivities(t *testing.T) map[string]string {
	t.Helper()
	declared := map[string]string{}
	eachFile(t, "contract", func(file *ast.File) {
		ast.Inspect(file, func(node ast.Node) bool {
			spec, is := node.(*ast.ValueSpec)
			if !is || len(spec.Values) != 1 {
				return true
			}
			literal, is := spec.Values[0].(*ast.CompositeLit)
			if !is || !ofActivity(literal.Type) {
				return true
			}
			value := literal.Elts[0]
			if keyed, is := value.(*ast.KeyValueExpr); is {
				value = keyed.Value
			}
			wire, err := strconv.Unquote(value.(*ast.BasicLit).Value)
			require.NoError(t, err)
			declared[spec.Names[0].Name] = wire
			return true
		})
	})
	return declared
}

// ofActivity: a type is Activity[In, Out], or a kind's alias of that.
func ofActivity(of ast.Expr) bool {
	if generic, is := of.(*ast.IndexListExpr); is {
		of = generic.X
	}
	name, is := of.(*ast.Ident)
	return is && strings.HasSuffix(name.Name, "Activity")
}

// namedInWorkflows are what the workflows name of package contract.
func namedInWorkflows(t *testing.T) map[string]bool {
	t.Helper()
	named := map[string]bool{}
	eachFile(t, ".", func(file *ast.File) {
		ast.Inspect(file, func(node ast.Node) bool {
			if listed, is := node.(*ast.KeyValueExpr); is && fmt.Sprint(listed.Key) == "Activities" {
				return false // what a Kind lists is not called by that
			}
			if selector, is := node.(*ast.SelectorExpr); is {
				if from, is := selector.X.(*ast.Ident); is && from.Name == "contract" {
					named[selector.Sel.Name] = true
				}
			}
			return true
		})
	})
	return named
}

func eachFile(t *testing.T, root string, visit func(*ast.File)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil {
			visit(file)
		}
		return err
	}))
}
