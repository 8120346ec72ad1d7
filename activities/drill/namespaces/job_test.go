package namespaces_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"holdfast.dev/holdfast/activities/drill/namespaces"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

func drillOf(uid, template string) *holdfastv1alpha1.RestoreDrill {
	drill := &holdfastv1alpha1.RestoreDrill{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "weekly", UID: types.UID(uid)}}
	drill.Spec.Timeout = "10m"
	drill.Spec.Checks.Job = &holdfastv1alpha1.DrillJob{Template: runtime.RawExtension{Raw: []byte(template)}}
	return drill
}

const template = `{"metadata":{"finalizers":["example.com/stays"],"labels":{"a":"b"}},"spec":{"restartPolicy":"Always",
	"automountServiceAccountToken":true,"terminationGracePeriodSeconds":100000,"containers":[{"name":"main","image":"check"}]}}`

func TestTheJobIsStartedOnceInTheDrillsNamespace(t *testing.T) {
	in := wanted("u-1")
	a, c := world(t, drillOf("u-1", template))
	view, err := perform(t, a, contract.StartDrillJob.Name, in)
	require.NoError(t, err)
	assert.Equal(t, contract.DrillNamespaceView{}, view, "there is no namespace")
	_, err = perform(t, a, contract.PrepareDrillNamespace.Name, in)
	require.NoError(t, err)
	for range 2 {
		view, err = perform(t, a, contract.StartDrillJob.Name, in)
		require.NoError(t, err)
		assert.Equal(t, contract.DrillNamespaceView{Exists: true}, view)
	}
	var jobs batchv1.JobList
	require.NoError(t, c.List(t.Context(), &jobs))
	require.Len(t, jobs.Items, 1)
	job := jobs.Items[0]
	assert.Equal(t, in.Name, job.Namespace)
	assert.Equal(t, int64(660), *job.Spec.ActiveDeadlineSeconds)
	assert.Equal(t, int32(0), *job.Spec.BackoffLimit)
	pod := job.Spec.Template
	assert.Empty(t, pod.Finalizers)
	assert.Equal(t, corev1.RestartPolicyNever, pod.Spec.RestartPolicy)
	assert.False(t, *pod.Spec.AutomountServiceAccountToken)
	assert.Equal(t, int64(30), *pod.Spec.TerminationGracePeriodSeconds)
	assert.Equal(t, corev1.TerminationMessageFallbackToLogsOnError, pod.Spec.Containers[0].TerminationMessagePolicy)
}

func TestAJobThatTheAPIServerRefuses(t *testing.T) {
	pods := corev1.Resource("pods")
	for title, test := range map[string]struct {
		answer  error
		refused string
		fails   string
	}{
		"Pod Security":            {answer: apierrors.NewForbidden(pods, "p", errors.New("violates PodSecurity")), refused: "violates PodSecurity"},
		"an invalid template":     {answer: apierrors.NewBadRequest("no such volume"), refused: "no such volume"},
		"a right that is missing": {answer: apierrors.NewForbidden(pods, "p", errors.New(`User "x" cannot create resource "pods"`)), fails: "cannot create resource"},
		"no API server":           {answer: errors.New("connection refused"), fails: "connection refused"},
	} {
		t.Run(title, func(t *testing.T) {
			in := wanted("u-1")
			a, c := world(t, drillOf("u-1", template))
			_, err := perform(t, a, contract.PrepareDrillNamespace.Name, in)
			require.NoError(t, err)
			refusing := interceptor.NewClient(c, interceptor.Funcs{
				Create: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.CreateOption) error {
					if _, isPod := object.(*corev1.Pod); isPod {
						return test.answer
					}
					return to.Create(ctx, object, options...)
				},
			})
			view, err := perform(t, &namespaces.Activities{Client: refusing, ClusterID: cluster, Paused: a.Paused}, contract.StartDrillJob.Name, in)
			var jobs batchv1.JobList
			require.NoError(t, c.List(t.Context(), &jobs))
			assert.Empty(t, jobs.Items)
			if test.fails != "" {
				require.ErrorContains(t, err, test.fails)
				return
			}
			require.NoError(t, err)
			assert.Contains(t, view.Refused, test.refused)
		})
	}
}

func TestTheJobOfADrillThatIsGoneIsNotStarted(t *testing.T) {
	in := wanted("u-1")
	a, c := world(t, drillOf("u-2", template))
	_, err := perform(t, a, contract.PrepareDrillNamespace.Name, in)
	require.NoError(t, err)
	_, err = perform(t, a, contract.StartDrillJob.Name, in)
	require.NoError(t, err)
	var jobs batchv1.JobList
	require.NoError(t, c.List(t.Context(), &jobs))
	assert.Empty(t, jobs.Items)
}
