package restore

import (
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"holdfast.dev/holdfast/k8s/policy"
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
	assert.Equal(t, []policy.Served{
		{GroupResource: schema.GroupResource{Resource: "pods"}, Kind: "Pod", Versions: []string{"v1"}, Namespaced: true, Verbs: verbs},
		{
			GroupResource: schema.GroupResource{Group: "autoscaling", Resource: "scalers"}, Kind: "Scaler", Versions: []string{"v2", "v1"},
			Namespaced: true, Verbs: verbs,
		},
	}, served)
}
