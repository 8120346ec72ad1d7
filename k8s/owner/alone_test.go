package owner_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	// reserved are the constants in k8s/api that name labels and annotations which say whose an object is.
	reserved = regexp.MustCompile(`^((Nab|Nar|Nabsl|Nadr)Origin\w*|NabSyncLabel)$`)
	// written is how they begin.
	written = regexp.MustCompile(`oadp-(nab|nar|nabsl|nadr)-(origin|synced)|holdfast\.dev/nabsl-`)
)

// decidesItself finds in a file what only this package may do: read who an object names, or compare what names follow from it.
func decidesItself(file *ast.File) []ast.Node {
	var found []ast.Node
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.Ident:
			if reserved.MatchString(n.Name) {
				found = append(found, n)
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && written.MatchString(text) {
				found = append(found, n)
			}
		case *ast.BinaryExpr:
			if (n.Op == token.EQL || n.Op == token.NEQ) && (isNACUUID(n.X) || isNACUUID(n.Y)) {
				found = append(found, n)
			}
		}
		return true
	})
	return found
}

func isNACUUID(expression ast.Expr) bool {
	if call, is := expression.(*ast.CallExpr); is {
		expression = call.Fun
	}
	selected, is := expression.(*ast.SelectorExpr)
	return is && selected.Sel.Name == "NACUUID"
}

// All paths ask this package: tests and doubles may write what it reads.
func TestNobodyElseSaysWhoseAnObjectIs(t *testing.T) {
	const root = "../.."
	apart := []string{"test", "k8s/api", "k8s/owner", "k8s/policy/policytest", "activities/fake", "activities/activitytest"}
	read := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains(apart, filepath.ToSlash(inside)) || (inside != "." && strings.HasPrefix(entry.Name(), ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		read++
		for _, node := range decidesItself(file) {
			assert.Fail(t, "a decision that is k8s/owner's", "%s: ask k8s/owner whose the object is", files.Position(node.Pos()))
		}
		return nil
	}))
	assert.Greater(t, read, 200, "the product's files")
}

func TestWhatIsThisPackagesToDecideIsFound(t *testing.T) {
	for statement, want := range map[string]int{
		`_ = made.Annotations[oadpv1alpha1.NabOriginNameAnnotation]`:                  1,
		`_ = made.Labels[oadpv1alpha1.NabslOriginNACUUIDLabel] == name`:               1,
		`_ = nab.Labels[oadpv1alpha1.NabSyncLabel]`:                                   1,
		`_ = made.Labels["openshift.io/oadp-nar-origin-nacuuid"]`:                     1,
		`_ = strings.HasPrefix(key, "holdfast.dev/nabsl-")`:                           1,
		`_ = nab.Status.VeleroBackup.NACUUID == made.Name`:                            1,
		`_ = made.Name != owner.NACUUID(cluster, nab.Namespace, nab.Name, uid)`:       1,
		`_ = owner.Backup.Names(made, nab.Namespace, nab.Name) && made.Name == "abc"`: 0,
		`nab.Status.VeleroBackup.NACUUID = owner.NACUUID(cluster, "a", "b", uid)`:     0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() { "+statement+" }", parser.SkipObjectResolution)
		require.NoError(t, err)
		assert.Len(t, decidesItself(file), want, statement)
	}
}
