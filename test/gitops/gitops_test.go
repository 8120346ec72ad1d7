// Package gitops tests that tools which know none of Holdfast's kinds judge each state of each kind rightly: the library kstatus,
// by which Flux and Helm wait, and Argo CD's script in deploy/gitops.
package gitops

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/k8s/kstatus"
)

func TestToolsJudgeEachStateOfEachKind(t *testing.T) {
	scripts := argoScripts(t)
	for title, s := range states() {
		t.Run(title, func(t *testing.T) {
			object := prepared(t, s.object)
			kstatus.Summarize(object.DeepCopyObject().(client.Object), object)
			u := asServed(t, object)

			found, err := status.Compute(u)
			require.NoError(t, err)
			assert.Equal(t, s.kstatus, found.Status, found.Message)

			gvk := u.GroupVersionKind()
			script, scripted := scripts["resource.customizations.health."+gvk.Group+"_"+gvk.Kind]
			require.True(t, scripted, "%s has no script", gvk)
			health, message := argoHealth(t, script, u)
			assert.Equal(t, s.argo(), health, message)
			assert.NotContains(t, message, "%!")
		})
	}
}

// An object that Holdfast has not seen has the status that the API server gives it by default.
func TestWhatHoldfastHasNotSeenIsInProgress(t *testing.T) {
	scripts := argoScripts(t)
	for name, script := range scripts {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "any/v1", "kind": "Any",
			"metadata": map[string]any{"name": "x", "generation": int64(1)},
			"status":   map[string]any{"observedGeneration": int64(-1)},
		}}
		found, err := status.Compute(u)
		require.NoError(t, err)
		assert.Equal(t, status.InProgressStatus, found.Status)
		health, _ := argoHealth(t, script, u)
		assert.Equal(t, "Progressing", health, name)
	}
}

// An older release has written the status: there is no condition that sums it up.
func TestArgoCDJudgesWhatIsFromBeforeAnUpgrade(t *testing.T) {
	scripts, all := argoScripts(t), states()
	for title, health := range map[string]string{
		"a refused backup":                                     "Degraded",
		"a plan that is scheduled":                             "Healthy",
		"a plan that is not allowed":                           "Progressing",
		"a plan without its Schedule":                          "Progressing",
		"a backup that Velero has in phase Completed":          "Healthy",
		"a FoundationDBRestore with the reason Aborted":        "Progressing",
		"a FoundationDBBackup as its spec says":                "Healthy",
		"a FoundationDBBackup with the reason InitialSnapshot": "Progressing",
	} {
		u := asServed(t, prepared(t, all[title].object))
		gvk := u.GroupVersionKind()
		found, _ := argoHealth(t, scripts["resource.customizations.health."+gvk.Group+"_"+gvk.Kind], u)
		assert.Equal(t, health, found, title)
	}
}

// prepared sets what the API server would.
func prepared(t *testing.T, object client.Object) client.Object {
	t.Helper()
	object.SetNamespace("shop")
	object.SetName("x")
	object.SetGeneration(generation)
	gvk, err := apiutil.GVKForObject(object, k8s.Scheme())
	require.NoError(t, err)
	object.GetObjectKind().SetGroupVersionKind(gvk)
	return object
}

func asServed(t *testing.T, object client.Object) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	require.NoError(t, err)
	return &unstructured.Unstructured{Object: fields}
}

func argoScripts(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/gitops/argocd-cm.yaml")
	require.NoError(t, err)
	var scripts corev1.ConfigMap
	require.NoError(t, yaml.UnmarshalStrict(text, &scripts))
	return scripts.Data
}

// argoHealth runs a script as Argo CD does: the object is the global obj, the result a table with status and message.
func argoHealth(t *testing.T, script string, u *unstructured.Unstructured) (health, message string) {
	t.Helper()
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	lua.OpenBase(state)
	state.SetGlobal("obj", asLua(state, u.Object))
	require.NoError(t, state.DoString(script))
	result, is := state.Get(-1).(*lua.LTable)
	require.True(t, is, "the script returns no table")
	return result.RawGetString("status").String(), result.RawGetString("message").String()
}

func asLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, field := range value {
			table.RawSetString(key, asLua(state, field))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, each := range value {
			table.Append(asLua(state, each))
		}
		return table
	case string:
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	}
	return lua.LNil
}
