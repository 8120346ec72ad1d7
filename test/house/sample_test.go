package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What `make test` leaves to `make test-long` has a sample in it: a test of the same package that is not left out itself.
func TestWhatIsLeftToTheLongRunHasItsSample(t *testing.T) {
	found := map[string][]string{}
	for _, top := range []string{"workflows", "test"} {
		addFiles(t, found, top, true)
	}
	count := 0
	for folder := range found {
		samples := samplesOf(t, folder)
		for test, named := range samples {
			count += len(named)
			for _, other := range named {
				found, is := samples[other]
				assert.True(t, is, "%s: %s names %s as its sample, which is not there", folder, test, other)
				assert.Empty(t, found, "%s: %s names %s as its sample, which make test leaves out, too", folder, test, other)
			}
		}
	}
	assert.Greater(t, count, 10)
}

// samplesOf are the tests of a folder, each with the samples that it names if it is left to the long run.
func samplesOf(t *testing.T, folder string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	require.NoError(t, err)
	found := map[string][]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		for _, declared := range parsed.Decls {
			function, is := declared.(*ast.FuncDecl)
			if !is || function.Recv != nil {
				continue
			}
			found[function.Name.Name] = nil
			ast.Inspect(function, func(node ast.Node) bool {
				if call, is := node.(*ast.CallExpr); is && callOf(call) == "sample.InLong" {
					found[function.Name.Name] = stringsOf(call.Args[1:])
					assert.NotEmpty(t, call.Args[1:], "%s: %s names no sample", file, function.Name.Name)
				}
				return true
			})
		}
	}
	return found
}

func callOf(call *ast.CallExpr) string {
	selector, is := call.Fun.(*ast.SelectorExpr)
	if !is {
		return ""
	}
	of, is := selector.X.(*ast.Ident)
	if !is {
		return ""
	}
	return of.Name + "." + selector.Sel.Name
}

func stringsOf(arguments []ast.Expr) (values []string) {
	for _, each := range arguments {
		if literal, is := each.(*ast.BasicLit); is {
			values = append(values, literal.Value[1:len(literal.Value)-1])
		}
	}
	return values
}
