package restore

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
)

func TestWhichModifierVeleroAppliesByDefault(t *testing.T) {
	for title, test := range map[string]struct {
		args []string
		want string
	}{
		"as it comes":          {args: []string{"server"}},
		"as velero install":    {args: []string{"server", "--default-resource-modifier-configmap=cni"}, want: "cni"},
		"in two arguments":     {args: []string{"--default-resource-modifier-configmap", "cni", "--features="}, want: "cni"},
		"the last counts":      {args: []string{"--default-resource-modifier-configmap=cni", "--default-resource-modifier-configmap=other"}, want: "other"},
		"none any more":        {args: []string{"--default-resource-modifier-configmap=cni", "--default-resource-modifier-configmap="}},
		"without a value":      {args: []string{"--default-resource-modifier-configmap"}},
		"by a name like it":    {args: []string{"--default-resource-modifier-configmap-too=cni"}},
		"another flag's value": {args: []string{"--resource-modifier-configmap=cni"}},
	} {
		velero := &appsv1.Deployment{}
		velero.Spec.Template.Spec.Containers = []corev1.Container{{Args: test.args}}
		assert.Equal(t, test.want, defaultModifier(velero), title)
	}
}

func TestTheAdministratorsDefaultsAreReadOrMissed(t *testing.T) {
	const namespace = "openshift-adp"
	velero := &appsv1.Deployment{}
	velero.Spec.Template.Spec.Containers = []corev1.Container{{Args: []string{"--default-resource-modifier-configmap=cni"}}}
	for title, test := range map[string]struct {
		velero *appsv1.Deployment
		data   map[string]string
		want   string
		rules  bool
	}{
		"no flag":             {velero: &appsv1.Deployment{}, data: map[string]string{"a": "broken"}},
		"a flag":              {velero: velero, data: map[string]string{"a": "{version: v1, resourceModifierRules: [{conditions: {groupResource: pods}}]}"}, rules: true},
		"no such ConfigMap":   {velero: velero, want: "names a ConfigMap that does not exist"},
		"what Velero refuses": {velero: velero, data: map[string]string{"a": "secret: text"}, want: "is not a resource modifier: it is not the YAML"},
	} {
		t.Run(title, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithScheme(k8s.Scheme())
			if test.data != nil {
				builder.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cni"}, Data: test.data})
			}
			var read client.Client = builder.Build()
			allowlist := &restorespec.Allowlist{}
			problem, err := (&Allowlists{Client: read, OADPNamespace: namespace}).addDefaults(t.Context(), allowlist, test.velero)
			require.NoError(t, err)
			assert.Equal(t, test.rules, !assert.ObjectsAreEqual(restorespec.Defaults{}, allowlist.Defaults))
			if test.want == "" {
				assert.Empty(t, problem)
				return
			}
			assert.Contains(t, problem, test.want)
			assert.NotContains(t, problem, "secret", "tenants read it")
		})
	}
}
