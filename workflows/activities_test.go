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
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"holdfast.dev/holdfast/activities/backup"
	"holdfast.dev/holdfast/activities/collection"
	"holdfast.dev/holdfast/activities/defaultplans"
	"holdfast.dev/holdfast/activities/download"
	fdbbackup "holdfast.dev/holdfast/activities/fdb/backup"
	"holdfast.dev/holdfast/activities/fdb/coordination"
	"holdfast.dev/holdfast/activities/fdb/expiry"
	fdbrestore "holdfast.dev/holdfast/activities/fdb/restore"
	"holdfast.dev/holdfast/activities/fdb/tools"
	"holdfast.dev/holdfast/activities/finalization"
	"holdfast.dev/holdfast/activities/location"
	"holdfast.dev/holdfast/activities/plan"
	"holdfast.dev/holdfast/activities/queue"
	"holdfast.dev/holdfast/activities/restore"
	"holdfast.dev/holdfast/activities/synchronization"
	"holdfast.dev/holdfast/workflows"
)

// registering collects the names of activities, and which struct has registered them.
type registering struct {
	worker.ActivityRegistry
	by    string
	names map[string][]string
}

func (r *registering) RegisterActivityWithOptions(_ any, options activity.RegisterOptions) {
	r.names[options.Name] = append(r.names[options.Name], r.by)
}

func TestEveryActivityIsOneKindsRegisteredOnceAndCalled(t *testing.T) {
	declared := declaredActivities(t)
	require.NotEmpty(t, declared)
	registry := &registering{names: map[string][]string{}}
	for name, register := range map[string]func(worker.ActivityRegistry){
		"Backups": (&backup.Activities{}).Register, "Restores": (&restore.Activities{}).Register,
		"Locations": (&location.Activities{}).Register, "Downloads": (&download.Activities{}).Register,
		"DefaultPlans":  (&defaultplans.Activities{}).Register,
		"Plans":         (&plan.Activities{}).Register,
		"Turns":         (&queue.Activities{}).Register,
		"Finalizations": (&finalization.Activities{}).Register, "Synchronization": (&synchronization.Activities{}).Register,
		"Collection": (&collection.Activities{}).Register, "FDBBackups": (&fdbbackup.Activities{}).Register,
		"FDBTools": (&tools.Tools{}).Register, "FDBRestores": (&fdbrestore.Activities{}).Register,
		"FDBRestoreTools": (&fdbrestore.Tools{}).Register, "FDBExpiries": (&expiry.Activities{}).Register,
		"FDBCoordination":       (&coordination.Activities{}).Register,
		"FDBExpiryCoordination": (&expiry.Coordination{}).Register,
	} {
		registry.by = name
		register(registry)
	}
	called, madeFor := namedInWorkflows(t), map[string][]string{}
	for _, kind := range workflows.Kinds() {
		for _, wire := range kind.Activities {
			madeFor[wire] = append(madeFor[wire], kind.Workflow)
		}
	}
	for name, wire := range declared {
		assert.Len(t, madeFor[wire], 1, "contract.%s (%s) is one kind's", name, wire)
		assert.Len(t, registry.names[wire], 1, "contract.%s (%s) is registered by one struct", name, wire)
		assert.Contains(t, called, name, "contract.%s is called by a workflow", name)
		delete(registry.names, wire)
	}
	assert.Empty(t, registry.names, "registered, and not declared in contract")
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
