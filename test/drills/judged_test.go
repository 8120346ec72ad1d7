package drills_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// A Service with a node port of its own cannot be restored for a drill: that says nothing about the backup.
func TestAServiceWithANodePortOfItsOwnFailsNoDrill(t *testing.T) {
	sample.InLong(t, "TestAGoodBackupIsVerifiedAndNothingIsLeft")
	t.Parallel()
	x := newTenant(t, "frank")
	web := service("web", corev1.ServiceTypeNodePort)
	web.Spec.Ports[0].NodePort = 30777
	web.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: `{"spec":{"ports":[{"nodePort":30777,"port":80}]}}`}
	x.create(web, configMap("settings"))
	x.backUp("nightly")
	ended := x.awaitEnd(x.drill("weekly", "nightly"))
	condition := verified(t, ended)
	assert.Equal(t, metav1.ConditionTrue, condition.Status, "%+v", ended.Status)
	assert.Equal(t, holdfastv1alpha1.ReasonVerifiedInPart, condition.Reason)
	assert.Contains(t, findings(ended), "a drill does not restore a Service with a node port of its own")
}

// Somebody deletes the namespace during the checks. Nothing is left that could be missing, and that is no verdict.
func TestADrillThatLosesItsNamespaceHasNoVerdict(t *testing.T) {
	sample.InLong(t, "TestAWorkloadThatDoesNotComeUpFailsItsDrill")
	t.Parallel()
	x := newTenant(t, "dave")
	x.create(workload("broken", "example.com/nowhere:1"), configMap("settings"))
	x.backUp("nightly")
	drill := x.drill("weekly", "nightly")
	now := x.await(drill, "checks", func(s *holdfastv1alpha1.RestoreDrillStatus) bool { return s.Phase == holdfastv1alpha1.DrillChecking })
	require.NoError(t, admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: now.Status.Namespace}}))
	ended := x.awaitEnd(drill)
	assert.Equal(t, metav1.ConditionUnknown, verified(t, ended).Status, "%+v", ended.Status)
	assert.Contains(t, verified(t, ended).Message, "was deleted")
}

// A tenant's drill whose object has no room for its status is refused, and one that grows so later holds nothing.
func TestADrillThatIsTooLargeHoldsNothing(t *testing.T) {
	sample.InLong(t, "TestWhatCannotBeRestoredIsNotVerified")
	t.Parallel()
	x := newTenant(t, "erin")
	x.create(workload("broken", "example.com/nowhere:1"))
	x.backUp("nightly")
	large := pod(running)
	large.Spec.Containers[0].Args = []string{strings.Repeat("a", 600<<10)}
	refused := x.awaitEnd(x.drill("large", "nightly", withJob(large)))
	assert.Contains(t, verified(t, refused).Message, "the RestoreDrill has more than 512 KiB")

	drill := x.drill("grows", "nightly")
	now := x.await(drill, "checks", func(s *holdfastv1alpha1.RestoreDrillStatus) bool { return s.Phase == holdfastv1alpha1.DrillChecking })
	name := client.ObjectKey{Name: now.Status.Namespace}
	patched := drill.DeepCopy()
	patched.Labels = map[string]string{}
	for i := range 2000 { // 440 bytes each, with their managed fields
		patched.Labels[fmt.Sprintf("%s.%s.example.com/%s-%04d", strings.Repeat("l", 60), strings.Repeat("m", 60), strings.Repeat("k", 50), i)] = strings.Repeat("v", 63)
	}
	require.NoError(t, x.client.Patch(t.Context(), patched, client.MergeFrom(drill)))
	eventually.IsTrue(t, patience, "the namespace goes", func() bool {
		return apierrors.IsNotFound(admin.Get(t.Context(), name, &corev1.Namespace{}))
	})
}
