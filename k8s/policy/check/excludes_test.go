package check

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// api is one of Holdfast's API packages, with its lists.
type api struct {
	version                                schema.GroupVersion
	add                                    func(*runtime.Scheme) error
	configuration, requests, administrator []string
}

var apis = []api{
	{version: oadpv1alpha1.GroupVersion, add: oadpv1alpha1.AddToScheme, requests: oadpv1alpha1.Requests, administrator: oadpv1alpha1.AdministratorsOnly},
	{version: holdfastv1alpha1.GroupVersion, add: holdfastv1alpha1.AddToScheme, configuration: holdfastv1alpha1.Configuration, requests: holdfastv1alpha1.Requests},
	{version: fdbv1alpha1.GroupVersion, add: fdbv1alpha1.AddToScheme, configuration: fdbv1alpha1.Configuration, requests: fdbv1alpha1.Requests},
}

// A new kind states what becomes of it in a tenant's backup.
func TestEveryKindIsARequestOrConfiguration(t *testing.T) {
	for _, api := range apis {
		scheme := runtime.NewScheme()
		require.NoError(t, api.add(scheme))
		var served []string
		for kind, object := range scheme.KnownTypes(api.version) {
			if _, is := reflect.New(object).Interface().(metav1.Object); is {
				plural, _ := meta.UnsafeGuessKindToResource(api.version.WithKind(kind))
				served = append(served, plural.Resource)
			}
		}
		assert.ElementsMatch(t, served, slices.Concat(api.configuration, api.requests, api.administrator), "each once: %s", api.version)
		for _, request := range api.requests {
			qualified := api.version.WithResource(request).GroupResource().String()
			assert.True(t, slices.Contains(ExcludedNamespaceScoped, request) || slices.Contains(ExcludedNamespaceScoped, qualified), qualified)
			assert.NotContains(t, Configuration, qualified)
		}
		for _, kept := range api.configuration {
			assert.Contains(t, Configuration, api.version.WithResource(kept).GroupResource().String())
		}
	}
}

// The roles admin, edit and view have every kind of tenants.
func TestTenantsRolesHaveEveryKind(t *testing.T) {
	var edit, view []rbacv1.PolicyRule
	for _, file := range []string{"../../../deploy/rbac/tenants.yaml", "../../../deploy/components/fdb/rbac/tenants.yaml"} {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			var role rbacv1.ClusterRole
			require.NoError(t, yaml.Unmarshal([]byte(document), &role))
			if strings.HasSuffix(role.Name, "-edit") {
				edit = append(edit, role.Rules...)
			} else {
				view = append(view, role.Rules...)
			}
		}
	}
	grants := func(rules []rbacv1.PolicyRule, group, resource, verb string) bool {
		return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource) && slices.Contains(rule.Verbs, verb)
		})
	}
	for _, api := range apis {
		for _, resource := range slices.Concat(api.configuration, api.requests) {
			for _, verb := range []string{"create", "delete", "get", "list", "patch", "update", "watch"} {
				assert.True(t, grants(edit, api.version.Group, resource, verb), "edit may %s %s", verb, resource)
			}
			readable := resource != oadpv1alpha1.ResourceNonAdminDownloadRequests // their status opens a backup
			assert.Equal(t, readable, grants(view, api.version.Group, resource, "get"), "view may get %s", resource)
			assert.False(t, grants(view, api.version.Group, resource, "patch"))
		}
		for _, resource := range api.administrator {
			assert.False(t, grants(slices.Concat(edit, view), api.version.Group, resource, "get"), resource)
		}
	}
}
