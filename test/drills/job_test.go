package drills_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

func pod(image string, args ...string) *corev1.PodTemplateSpec {
	made := workload("check", image).Spec.Template
	made.Spec.Containers[0].Args = args
	return &made
}

func withJob(template *corev1.PodTemplateSpec) func(*holdfastv1alpha1.RestoreDrillSpec) {
	return func(spec *holdfastv1alpha1.RestoreDrillSpec) {
		raw, err := json.Marshal(template)
		if err != nil {
			panic(err)
		}
		spec.Checks.Job = &holdfastv1alpha1.DrillJob{Template: runtime.RawExtension{Raw: raw}}
	}
}

func TestAJobOfTheTenantDecides(t *testing.T) {
	sample.InLong(t, "TestAWorkloadThatDoesNotComeUpFailsItsDrill")
	t.Parallel()
	x := newTenant(t, "alice")
	x.create(configMap("settings"))
	x.backUp("nightly")
	privileged := pod(checking)
	privileged.Spec.Containers[0].SecurityContext.Privileged = ptr.To(true)
	privileged.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil
	for _, test := range []struct {
		name    string
		job     *corev1.PodTemplateSpec
		timeout string
		want    metav1.ConditionStatus
		finding string
	}{
		{"passes", pod(checking), "30m", metav1.ConditionTrue, ""},
		{"fails", pod(checking, "3 rows, want 4"), "30m", metav1.ConditionFalse, "the Job's container main ended with exit code 1\ncontainer main printed: 3 rows, want 4"},
		{"is-refused", privileged, "30m", metav1.ConditionUnknown, `violates PodSecurity "restricted:latest": privileged`},
		{"never-ends", pod(running), "1m", metav1.ConditionFalse, "the Job has not ended within 1m"},
	} {
		ended := x.awaitEnd(x.drill(test.name, "nightly", withJob(test.job), lasting(test.timeout)))
		assert.Equal(t, test.want, verified(t, ended).Status, "%s: %+v", test.name, ended.Status)
		assert.Contains(t, findings(ended), test.finding, test.name)
	}
}
