package restore

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
)

func TestWhetherVeleroRunsWithoutItsInformerCache(t *testing.T) {
	for title, test := range map[string]struct {
		command, args []string
		want          bool
	}{
		"as it comes":             {args: []string{"server"}},
		"as asked for":            {args: []string{"server", "--disable-informer-cache"}, want: true},
		"as OADP writes it":       {args: []string{"server", "--disable-informer-cache=true"}, want: true},
		"by the command":          {command: []string{"/velero", "server", "--disable-informer-cache=true"}, want: true},
		"not":                     {args: []string{"server", "--disable-informer-cache=false"}},
		"not any more":            {args: []string{"--disable-informer-cache", "--disable-informer-cache=false"}},
		"by nothing that is read": {args: []string{"--disable-informer-cache-too"}},
	} {
		velero := &appsv1.Deployment{}
		velero.Spec.Template.Spec.Containers = []corev1.Container{{Command: test.command, Args: test.args}}
		assert.Equal(t, test.want, withoutInformerCache(velero), title)
	}
	assert.False(t, withoutInformerCache(&appsv1.Deployment{}))
}

func TestWhatTheAPIServerServesIsPutTogetherByResource(t *testing.T) {
	verbs := metav1.Verbs{"create", "get", "list", "watch"}
	served := servedIn([]*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: verbs}, {Name: "pods/log", Kind: "Pod", Namespaced: true},
		}},
		{GroupVersion: "autoscaling/v2", APIResources: []metav1.APIResource{{Name: "scalers", Kind: "Scaler", Namespaced: true, Verbs: verbs}}},
		{GroupVersion: "autoscaling/v1", APIResources: []metav1.APIResource{{Name: "scalers", Kind: "Scaler", Namespaced: true, Verbs: verbs}}},
		{GroupVersion: "no/such/version", APIResources: []metav1.APIResource{{Name: "things"}}},
	})
	assert.Equal(t, []restorespec.Served{
		{GroupResource: schema.GroupResource{Resource: "pods"}, Kind: "Pod", Versions: []string{"v1"}, Namespaced: true, Verbs: verbs},
		{
			GroupResource: schema.GroupResource{Group: "autoscaling", Resource: "scalers"}, Kind: "Scaler", Versions: []string{"v2", "v1"},
			Namespaced: true, Verbs: verbs,
		},
	}, served)
}

// Nothing is restored from a tenant's location while the API server does not judge it, or while it can hold up Velero.
func TestWhatAnAdministratorHasToDoFirst(t *testing.T) {
	const namespace = "openshift-adp"
	velero := func(args ...string) *appsv1.Deployment {
		made := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "velero"}}
		made.Spec.Template.Spec.Containers = []corev1.Container{{Args: args}}
		return made
	}
	forbidden := func(by string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "probe", errors.New(by))
	}
	judged := forbidden("ValidatingAdmissionPolicy 'holdfast-restores' with binding 'holdfast-restores' denied request")
	for title, test := range map[string]struct {
		answer     error
		deployment *appsv1.Deployment
		rules      policy.RestoreFromTenantsLocations
		want, err  string
	}{
		"the policy is missing":        {deployment: velero("--disable-informer-cache"), want: "is not in force"},
		"somebody else refuses":        {answer: forbidden("another policy"), err: "another policy"},
		"Velero has its cache":         {answer: judged, deployment: velero("server"), want: "start it with --disable-informer-cache"},
		"nobody knows how Velero runs": {answer: judged, want: "start it with --disable-informer-cache"},
		"the cache is allowed":         {answer: judged, deployment: velero("server"), rules: policy.RestoreFromTenantsLocations{AllowInformerCache: true}},
		"nothing":                      {answer: judged, deployment: velero("server", "--disable-informer-cache")},
	} {
		t.Run(title, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithScheme(k8s.Scheme())
			if test.deployment != nil {
				builder.WithObjects(test.deployment)
			}
			tried := 0
			asked := interceptor.NewClient(builder.Build(), interceptor.Funcs{Create: func(
				_ context.Context, _ client.WithWatch, probe client.Object, options ...client.CreateOption,
			) error {
				tried++
				assert.Equal(t, namespace, probe.GetNamespace())
				assert.Contains(t, options, client.DryRunAll, "nothing may come of it")
				return test.answer
			}})
			allowlists := &Allowlists{Client: asked, OADPNamespace: namespace}
			read, err := allowlists.velero(t.Context())
			require.NoError(t, err)
			problem, err := allowlists.unprepared(t.Context(), test.rules, read)
			assert.Equal(t, 1, tried)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			if test.want == "" {
				assert.Empty(t, problem)
				return
			}
			assert.Contains(t, problem, test.want)
		})
	}
}
