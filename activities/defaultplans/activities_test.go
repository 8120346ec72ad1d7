package defaultplans_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/defaultplans"
	"holdfast.dev/holdfast/activities/fake"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/workflows/contract"
)

func keep(t *testing.T, w *fake.World) (contract.DefaultPlansResult, error) {
	t.Helper()
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	(&defaultplans.Activities{
		Cluster: w.Backups.Cluster, Policy: w.Backups.Gatherer.Policy, OADPNamespace: fake.OADPNamespace,
	}).Register(env)
	var result contract.DefaultPlansResult
	answer, err := env.ExecuteActivity(contract.KeepDefaultPlans.Name, contract.ScheduledInput{Cluster: fake.Cluster})
	if err == nil {
		require.NoError(t, answer.Get(&result))
	}
	return result, err
}

func namespace(name, tier string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": tier}}}
}

func nightly() policy.DefaultPlan {
	return policy.DefaultPlan{
		Name: "nightly", NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}},
		Spec: fake.BackupPlan("nightly").Spec,
	}
}

func TestNamespacesGetTheirDefaultPlansAndLoseThem(t *testing.T) {
	own := fake.BackupPlan("own")
	w := fake.New(t, namespace(fake.Namespace, "gold"), namespace("other", "lead"), namespace(fake.OADPNamespace, "gold"), own)
	w.Policy.DefaultPlans = []policy.DefaultPlan{nightly()}
	result, err := keep(t, w)
	require.NoError(t, err)
	assert.Equal(t, contract.DefaultPlansResult{Created: 1}, result, "only where the selector matches, and not where Velero is")
	assert.Equal(t, "true", w.ReadPlan("nightly").Labels[holdfastv1alpha1.LabelDefaultPlan])

	assert.Equal(t, "true", w.ReadPlan("nightly").Labels["velero.io/exclude-from-backup"])

	older := w.ReadPlan("nightly")
	delete(older.Labels, "velero.io/exclude-from-backup")
	require.NoError(t, w.Client.Update(t.Context(), older))
	result, err = keep(t, w)
	require.NoError(t, err)
	assert.Equal(t, contract.DefaultPlansResult{Changed: 1}, result)
	assert.Equal(t, "true", w.ReadPlan("nightly").Labels["velero.io/exclude-from-backup"])

	writes := len(w.Writes())
	result, err = keep(t, w)
	require.NoError(t, err)
	assert.Zero(t, result)
	assert.Len(t, w.Writes(), writes, "nothing has changed")

	changed := w.ReadPlan("nightly")
	changed.Spec.Paused = true
	require.NoError(t, w.Client.Update(t.Context(), changed))
	result, err = keep(t, w)
	require.NoError(t, err)
	assert.Equal(t, contract.DefaultPlansResult{Changed: 1}, result)
	assert.False(t, w.ReadPlan("nightly").Spec.Paused, "put back")

	w.Policy.DefaultPlans = nil
	result, err = keep(t, w)
	require.NoError(t, err)
	assert.Equal(t, contract.DefaultPlansResult{Deleted: 1}, result)
	assert.Nil(t, w.ReadPlan("nightly"))
	assert.NotNil(t, w.ReadPlan("own"), "it bears no mark")
}

func TestATenantsPlanOfTheSameNameIsLeftAlone(t *testing.T) {
	w := fake.New(t, namespace(fake.Namespace, "gold"), fake.BackupPlan("nightly"))
	w.Policy.DefaultPlans = []policy.DefaultPlan{nightly()}
	result, err := keep(t, w)
	require.NoError(t, err)
	assert.Equal(t, contract.DefaultPlansResult{Taken: 1, Problem: "default plan team/nightly: a tenant has a plan of that name"}, result)
	assert.NotContains(t, w.ReadPlan("nightly").Labels, holdfastv1alpha1.LabelDefaultPlan)
	assert.Contains(t, <-w.Events, "DefaultPlanProblem")
}

func TestARefusalConcernsOneNamespaceAlone(t *testing.T) {
	w := fake.New(t, namespace("a", "gold"), namespace(fake.Namespace, "gold"))
	w.Policy.DefaultPlans = []policy.DefaultPlan{nightly()}
	refused := apierrors.NewForbidden(holdfastv1alpha1.GroupVersion.WithResource("backupplans").GroupResource(), "nightly", errors.New("quota"))
	w.Fail(func(_ string, object client.Object) error {
		if object.GetNamespace() == "a" {
			return refused
		}
		return nil
	})
	result, err := keep(t, w)
	require.NoError(t, err)
	assert.Equal(t, 1, result.Created)
	assert.Equal(t, 1, result.Refused)
	assert.Contains(t, result.Problem, "quota")

	w.Fail(func(string, client.Object) error { return errors.New("connection refused") })
	_, err = keep(t, w)
	require.ErrorContains(t, err, "connection refused", "all else is retried")
}
