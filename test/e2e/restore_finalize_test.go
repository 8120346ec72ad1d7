package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// One object is refused by the cluster's rules: the rest comes back, and why the one did not is told in both places.
func TestAnObjectThatCannotBeRestored(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "bob")
	nab := x.completed("nightly")
	require.NoError(t, x.client.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(x.namespace),
		client.MatchingLabels{"app": "seed"}))
	refuseCreation(t, x.namespace, "object-001")

	nar := x.awaitFinalizedAs(x.restore("most", nab.Name), oadpv1alpha1.FinalizationPhasePartiallyFailed)

	assert.Len(t, configMaps(t, x.namespace), 2)
	assert.Equal(t, velerov1.RestorePhasePartiallyFailed, restorePhase(nar))
	finalization := nar.Status.Finalization
	require.Len(t, finalization.VeleroErrors, 1)
	assert.Contains(t, finalization.VeleroErrors[0], "not in this namespace")
	finalized := restoreCondition(nar, oadpv1alpha1.NonAdminConditionFinalized)
	assert.Equal(t, oadpv1alpha1.ReasonFinalizationPartiallyFailed, finalized.Reason)
	assert.Contains(t, finalized.Message, "not in this namespace", "the reason is where people look")
	const missing = "ConfigMap object-001 is in the backup and was not restored"
	warnings, errs := linesOf(nar, "validation")
	assert.Equal(t, []string{missing}, warnings)
	assert.Empty(t, errs)
	stored := resultsOf(t, stack.Storage().Dir, "velero", nar)
	require.Len(t, stored["errors"].Namespaces[x.namespace], 1, "Velero's stay, once")
	assert.Contains(t, stored["errors"].Namespaces[x.namespace][0], "not in this namespace")
	assert.Contains(t, stored["warnings"].Namespaces[x.namespace], "holdfast validation: "+missing)
	recordRestore(t, nar)
	x.removeRestore(nar)
}

// refuseCreation has the API server refuse ConfigMaps of a name in one namespace, from anybody, until the test ends.
func refuseCreation(t *testing.T, namespace, name string) {
	t.Helper()
	of := metav1.ObjectMeta{Name: "refuse-" + namespace}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: of, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}}},
		},
		Validations: []admissionregistrationv1.Validation{{
			Expression: fmt.Sprintf("object.metadata.name != %q", name), Message: "not in this namespace",
		}},
	}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: of, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: of.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}}
	for _, object := range []client.Object{policy, binding} {
		require.NoError(t, admin.Create(t.Context(), object))
		t.Cleanup(func() { deleteAtEnd(t, object) })
	}
	awaitSuccess(t, func(ctx context.Context) error {
		attempt := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if err := admin.Create(ctx, attempt, client.DryRunAll); !apierrors.IsInvalid(err) {
			return fmt.Errorf("the policy is not in force: %w", err)
		}
		return nil
	})
}

// There is no kubelet here: what is restored never becomes ready. The restore ends all the same, and says so.
func TestWhatNeverBecomesReadyIsAWarning(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "carol")
	pods := map[string]string{"app": "web"}
	web := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: pods},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: pods},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	}
	claim := x.claim("")
	for _, object := range []client.Object{web, claim} {
		require.NoError(t, x.client.Create(t.Context(), object))
	}
	nab := x.completed("nightly")
	for _, object := range []client.Object{web, claim} {
		require.NoError(t, x.client.Delete(t.Context(), object.DeepCopyObject().(client.Object)))
	}
	require.NoError(t, x.client.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(x.namespace), client.GracePeriodSeconds(0)))
	awaitAllGone(t, web, claim)

	nar := x.restore("back", nab.Name)
	waiting := x.awaitRestore(nar, "validation waits", func(now *restoring) bool {
		if now.Status.Finalization == nil {
			return false
		}
		last := now.Status.Finalization.Tasks[len(now.Status.Finalization.Tasks)-1]
		return last.Name == "validation" && last.Phase == oadpv1alpha1.FinalizationPhaseInProgress
	})
	assert.Equal(t, oadpv1alpha1.FinalizationPhaseFinalizing, waiting.Status.Finalization.Phase)
	assert.Equal(t, velerov1.RestorePhaseCompleted, restorePhase(waiting), "Velero's comes earlier")
	assert.Equal(t, metav1.ConditionFalse, restoreCondition(waiting, oadpv1alpha1.NonAdminConditionFinalized).Status)

	nar = x.awaitFinalizedAs(nar, oadpv1alpha1.FinalizationPhaseCompleted)
	warnings, errs := linesOf(nar, "validation")
	assert.Equal(t, []string{
		"PersistentVolumeClaim data is not bound", "Deployment web is not ready: 0 of 2 replicas are",
	}, warnings)
	assert.Empty(t, errs)
	took := nar.Status.Finalization.CompletionTimestamp.Sub(nar.Status.Finalization.StartTimestamp.Time)
	assert.GreaterOrEqual(t, took, readyTimeout, "it was waited for")
	checkTook(t, "the finalization", took, readyTimeout+time.Minute)
	stored := resultsOf(t, stack.Storage().Dir, "velero", nar)
	for _, warning := range warnings {
		assert.Equal(t, 1, strings.Count(strings.Join(stored["warnings"].Namespaces[x.namespace], "\n"), warning))
	}
	recordRestore(t, nar)
}
