package restore_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/restore"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
	"holdfast.dev/holdfast/workflows/contract"
	restoreworkflow "holdfast.dev/holdfast/workflows/restore"
)

func TestFromATenantsLocationARestoreHasOurModifier(t *testing.T) {
	w := restoring(t, fake.Namespace)
	w.Allowed.Shadowed = []restorespec.Shadowed{{
		Resource: schema.GroupResource{Resource: "services"}, By: schema.GroupResource{Group: "serving.knative.dev", Resource: "services"},
	}}
	steps(t, w, contract.StartRestore.Name)
	made := w.VeleroRestore(restored)
	require.NotNil(t, made.Spec.IncludeClusterResources)
	assert.False(t, *made.Spec.IncludeClusterResources)
	modifier := w.Modifier(made.Spec.ResourceModifier.Name)
	require.NotNil(t, modifier)
	assert.Equal(t, ownModifier(t, w).Data, modifier.Data)
	assert.Equal(t, []string{"configmaps"}, made.Spec.IncludedResources)
	assert.True(t, owner.Restore.Names(modifier, fake.Namespace, again))
	assert.Equal(t, "services=services.serving.knative.dev", made.Annotations[restorespec.ShadowedAnnotation])

	w.Remove(w.ReadRestore(again))
	steps(t, w, contract.DeleteRestore.Name, contract.ReleaseRestore.Name)
	assert.Nil(t, w.Modifier(restored))
	assert.Nil(t, w.ReadRestore(again))
}

// ownModifier is what a restore from a tenant's location has.
func ownModifier(t *testing.T, w *fake.World) *corev1.ConfigMap {
	t.Helper()
	allowlist, err := w.Allowed.Allowlist(t.Context(), policy.RestoreFromTenantsLocations{})
	require.NoError(t, err)
	modifier, err := restore.NewModifier(&restore.Objects{
		NAR: fake.NAR(again, activitytest.Name), RestoreName: restored, Rules: &policy.Policy{},
		Source: restorespec.Source{Allowlist: allowlist},
	}, fake.OADPNamespace)
	require.NoError(t, err)
	return modifier
}

func TestNothingIsRestoredFromATenantsLocationUntilItIsKnownWhatMayBe(t *testing.T) {
	w := restoring(t, fake.Namespace)
	w.Allowed.Err = fake.ErrAway
	_, err := step(t, w, contract.StartRestore.Name)
	require.ErrorContains(t, err, fake.ErrAway.Error(), "to be asked again")
	assert.Empty(t, w.ReadRestore(again).Status.VeleroRestore)

	w.Allowed = fake.Allowlist{Problem: "the API server does not say what it serves in metrics.k8s.io/v1beta1"}
	view := steps(t, w, contract.StartRestore.Name)
	assert.True(t, restoreworkflow.Settled(view))
	assert.Equal(t, "BackingOff", view.Phase)
	assert.Contains(t, acceptedRestore(w).Message, w.Allowed.Problem)
	assert.Nil(t, w.VeleroRestore(restored))
	assert.Nil(t, w.Modifier(restored))

	// The watcher does not know what may come back: to it the restore is not settled, and is looked at again.
	watching := *w.Restores.Gatherer
	watching.Allowlists = nil
	objects, err := watching.Gather(t.Context(), contract.ObjectRef{Namespace: fake.Namespace, Name: again, UID: "uid-" + again})
	require.NoError(t, err)
	assert.False(t, restoreworkflow.Settled(objects.View()))

	w.Allowed = fake.New(t).Allowed
	steps(t, w, contract.RefreshRestore.Name, contract.StartRestore.Name)
	require.NotNil(t, w.VeleroRestore(restored))
}

func TestARestoreOfMoreKindsThanAModifierHoldsSaysSoBeforeAnythingIsMade(t *testing.T) {
	w := restoring(t, fake.Namespace)
	for i := range 4000 {
		w.Allowed.Resources = append(w.Allowed.Resources, restorespec.Served{
			GroupResource: schema.GroupResource{Group: fmt.Sprintf("group-%04d.platform.example.com", i), Resource: "things"}, Kind: "Thing",
			Versions: []string{"v1"},
		})
	}
	view := steps(t, w, contract.StartRestore.Name)
	assert.True(t, restoreworkflow.Settled(view), "nothing is tried again until something changes")
	assert.Equal(t, "BackingOff", view.Phase)
	assert.Equal(t, "InvalidRestoreSpec", acceptedRestore(w).Reason)
	assert.Regexp(t, `selects too many kinds .*: 4001, whose resource modifier has \d{7} bytes, and a ConfigMap holds 1048576; name the `+
		`kinds that you need in includedResources`, acceptedRestore(w).Message)
	assert.Nil(t, w.Modifier(restored))
	assert.Nil(t, w.VeleroRestore(restored))

	w.EditRestore(again, func(spec *velerov1.RestoreSpec) { spec.IncludedResources = []string{"configmaps"} })
	steps(t, w, contract.RefreshRestore.Name, contract.StartRestore.Name)
	require.NotNil(t, w.VeleroRestore(restored))
	text := w.Modifier(restored).Data[restorespec.ModifierKey]
	assert.Contains(t, text, `"configmaps"`)
	assert.NotContains(t, text, "things", "there are rules for what was chosen")
}

func TestAModifierOfAnotherContentIsReplacedAndSomebodyElsesIsNot(t *testing.T) {
	old := ownModifier(t, fake.New(t))
	old.Data = map[string]string{"resourceModifiers.yaml": "version: v1"}
	w := restoring(t, fake.Namespace, old)
	steps(t, w, contract.StartRestore.Name)
	assert.Contains(t, w.Modifier(restored).Data["resourceModifiers.yaml"], "volumeName")

	foreign := old.DeepCopy()
	foreign.ResourceVersion = ""
	foreign.Annotations[oadpv1alpha1.NarOriginNamespaceAnnotation] = "crew"
	w = restoring(t, fake.Namespace, foreign)
	view := steps(t, w, contract.StartRestore.Name)
	assert.True(t, restoreworkflow.Settled(view))
	assert.Equal(t, "BackingOff", view.Phase)
	assert.Equal(t, "VeleroRestoreRefused", acceptedRestore(w).Reason, "it stays so, whatever comes by, until the spec changes")
	assert.Nil(t, w.VeleroRestore(restored))
	w.Remove(w.ReadRestore(again))
	steps(t, w, contract.ReleaseRestore.Name)
	assert.NotNil(t, w.Modifier(restored), "not ours to delete")
}

func TestNoContentOfAModifierReachesATenant(t *testing.T) {
	w := started(t, "", velerov1.RestorePhaseInProgress)
	w.SetRestore(restored, velerov1.RestorePhaseFailedValidation)
	velero := w.VeleroRestore(restored)
	velero.Status.ValidationErrors = []string{"Error in parsing resource modifiers provided in configmap openshift-adp/x: hunter2"}
	require.NoError(t, w.Client.Update(t.Context(), velero))
	steps(t, w, contract.RefreshRestore.Name)
	seen := w.ReadRestore(again).Status.VeleroRestore.Status.ValidationErrors
	events := activitytest.Events(w)
	require.Len(t, seen, 1)
	require.Len(t, events, 1)
	for _, text := range []string{seen[0], events[0]} {
		assert.NotContains(t, text, "hunter2")
		assert.Contains(t, text, "Velero cannot use the ConfigMap")
	}
}
