package finalization

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/restored"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
	"holdfast.dev/holdfast/workflows/contract"
)

// held is what a backup in a tenant's bucket holds.
var held = objectstore.ResourceList{
	"v1/ConfigMap": {"team/a"}, "rbac.authorization.k8s.io/v1/RoleBinding": {"team/x", "team/y", "crew/z"}, "v1/ResourceQuota": {"team/q"},
	"discovery.k8s.io/v1/EndpointSlice": {"team/web-2", "team/web-1"}, "v1/Event": {"team/e"}, "v1/Node": {"n"},
}

func TestWhatATenantsLocationDoesNotBringIsNamed(t *testing.T) {
	const bindings, quota, slices = "RoleBinding x, y", "ResourceQuota q", "EndpointSlice web-1, web-2"
	came := objectstore.ResourceList{"v1/ConfigMap": {"team/a(created)"}}
	for title, test := range map[string]struct {
		asked    velerov1.RestoreSpec
		selector *metav1.LabelSelector
		restored objectstore.ResourceList
		objects  []string
		leftOut  int
		derived  []string
	}{
		"of all":                {restored: came, objects: []string{bindings, quota}, leftOut: 3, derived: []string{slices}},
		"of a star":             {asked: velerov1.RestoreSpec{IncludedResources: []string{"*"}}, restored: came, objects: []string{bindings, quota}, leftOut: 3, derived: []string{slices}},
		"of what was asked for": {asked: velerov1.RestoreSpec{IncludedResources: []string{"cm", "quota"}}, restored: came, objects: []string{quota}, leftOut: 1},
		"but for what was not":  {asked: velerov1.RestoreSpec{ExcludedResources: []string{"rolebindings", "endpointslices.discovery.k8s.io"}}, restored: came, objects: []string{quota}, leftOut: 1},
		"but for what came":     {restored: objectstore.ResourceList{"v1/ResourceQuota": {"team/q(created)"}}, objects: []string{bindings}, leftOut: 2, derived: []string{slices}},
		"also of what failed":   {restored: objectstore.ResourceList{"rbac.authorization.k8s.io/v1/RoleBinding": {"team/x(failed)"}}, objects: []string{bindings, quota}, leftOut: 3, derived: []string{slices}},
		"of what is selected":   {selector: &metav1.LabelSelector{}, restored: came, objects: []string{"RoleBinding", "ResourceQuota"}, leftOut: 2, derived: []string{slices}},
	} {
		t.Run(title, func(t *testing.T) {
			found := filtered(comparison{
				Comparison: restored.Comparison{
					Namespace: team, Into: team, Backup: held, Restored: test.restored,
					Spec: &velerov1.RestoreSpec{IncludedResources: []string{"configmaps", "secrets"}, LabelSelector: test.selector},
				},
				asked: &test.asked,
			})
			assert.Equal(t, Filtered{Objects: test.objects, LeftOut: test.leftOut, Derived: test.derived}, found)
		})
	}
}

func TestKindsThatANamesakeKeepsOutAreNamedInTheCondition(t *testing.T) {
	s := newScene(t)
	s.lists(objectstore.ResourceList{
		"v1/ConfigMap": {"team/a"}, "v1/Service": {"team/web", "team/db"}, "postgresql.cnpg.io/v1/Backup": {"team/b"},
		"v1/ResourceQuota": {"team/q"},
	}, objectstore.ResourceList{"v1/ConfigMap": {"team/a(created)"}})
	s.Restore.Spec.IncludedResources = []string{"configmaps"}
	s.Restore.Spec.ResourceModifier = &corev1.TypedLocalObjectReference{Kind: "ConfigMap", Name: s.Restore.Name}
	s.Restore.Annotations[restorespec.ShadowedAnnotation] = "services=services.serving.knative.dev," +
		"backups.postgresql.cnpg.io=backups.velero.io,things=things.example.com"
	found, err := s.run(validationTask{})
	require.NoError(t, err)
	assert.Equal(t, 4, found.LeftOut)
	assert.Equal(t, []string{
		"ResourceQuota q: left out, since the location's owner could not have made it",
		"Backup b: left out with all backups.postgresql.cnpg.io, since the location's owner could not have made backups.velero.io",
		"Service db, web: left out with all services, since the location's owner could not have made services.serving.knative.dev",
	}, found.Warnings.Namespace)

	nar := &oadpv1alpha1.NonAdminRestore{}
	Apply(nar, contract.FinalizationRecord{Phase: "Completed", LeftOut: found.LeftOut, Shadowed: found.Shadowed})
	condition := meta.FindStatusCondition(nar.Status.Conditions, "Filtered")
	require.NotNil(t, condition)
	assert.Contains(t, condition.Message, "namesakes of another API group (ask an administrator to allow it): backups.postgresql.cnpg.io (backups.velero.io), services (services.serving.knative.dev)")

	var many Filtered
	for i := range 9 {
		kind := ShadowedKind{Resource: fmt.Sprintf("things%d", i), Namesake: strings.Repeat("n", 200)}
		many.Shadowed = append(many.Shadowed, kind, kind)
	}
	assert.Len(t, many.shadowedKinds(), 6)
	assert.Equal(t, "4 more", many.shadowedKinds()[5])
	assert.LessOrEqual(t, len(filteredMessage(1, 0, many.shadowedKinds())), maxMessageBytes)
}

func TestThousandsOfNamesAreTold(t *testing.T) {
	var names []string
	for i := range 2000 {
		names = append(names, fmt.Sprintf("binding-%04d", i))
	}
	var found Findings
	Filtered{Objects: inLines("RoleBinding", names)}.describe(&found)
	assert.LessOrEqual(t, len(found.Warnings.Namespace), maxLines)
	var told []string
	for _, line := range found.Warnings.Namespace {
		line, _, _ = strings.Cut(line, ":")
		told = append(told, strings.Split(strings.TrimPrefix(line, "RoleBinding "), ", ")...)
	}
	assert.Equal(t, names, told)
}

func TestWhatTheAPIServerRefusedIsCounted(t *testing.T) {
	const refused = `error restoring pods/team/p: pods "p" is forbidden: ValidatingAdmissionPolicy 'holdfast-restores' with binding ` +
		`'holdfast-restores' denied request: no`
	results := objectstore.Results{
		objectstore.ErrorsKey:   {Namespaces: map[string][]string{team: {refused, "another error"}, "crew": {refused}}, Cluster: []string{refused}},
		objectstore.WarningsKey: {Namespaces: map[string][]string{team: {refused, "holdfast validation: " + refused}}},
	}
	assert.Equal(t, 4, refusals(results))
	assert.Zero(t, refusals(nil))
}

func TestWhatWasFilteredIsToldOnTheObject(t *testing.T) {
	s := newScene(t)
	s.NAR.Spec.RestoreSpec = nil // unreadable, since an edit
	s.lists(held, objectstore.ResourceList{"v1/ConfigMap": {"team/a(created)"}})
	s.Restore.Spec.IncludedResources = []string{"configmaps"}
	s.Restore.Spec.ResourceModifier = &corev1.TypedLocalObjectReference{Kind: "ConfigMap", Name: "the-tenants-own"}
	found, err := s.run(validationTask{})
	require.NoError(t, err)
	assert.Zero(t, found.LeftOut, "from an administrator's location everything comes that is asked for")

	s.Restore.Spec.ResourceModifier.Name = s.Restore.Name
	found, err = s.run(validationTask{})
	require.NoError(t, err)
	assert.Equal(t, 3, found.LeftOut)
	assert.Equal(t, []string{
		"RoleBinding x, y: left out, since the location's owner could not have made it",
		"ResourceQuota q: left out, since the location's owner could not have made it",
		"EndpointSlice web-1, web-2: left out, controllers recreate what they need",
	}, found.Warnings.Namespace)

	nar := &oadpv1alpha1.NonAdminRestore{}
	Apply(nar, contract.FinalizationRecord{Phase: "Finalizing"})
	assert.Nil(t, meta.FindStatusCondition(nar.Status.Conditions, "Filtered"))
	Apply(nar, contract.FinalizationRecord{Phase: "Completed", LeftOut: found.LeftOut, Refused: 1})
	condition := meta.FindStatusCondition(nar.Status.Conditions, "Filtered")
	require.NotNil(t, condition)
	assert.Equal(t, "NotAllowedFromTenantsLocation", condition.Reason)
	assert.Contains(t, condition.Message, "3 left out, 1 refused by the API server")
}
