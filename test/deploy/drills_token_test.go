package deploy_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
)

const podSecurityLevel = "pod-security.kubernetes.io/enforce"

// placeOfDrill is a namespace as the drills' worker makes it, but for its name.
func placeOfDrill(name string, labels map[string]string) *corev1.Namespace {
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		holdfastv1alpha1.LabelDrill: "u", podSecurityLevel: "restricted",
	}}}
	for key, value := range labels {
		made.Labels[key] = value
	}
	return made
}

// drillsWorker acts with the token of the drills' worker, and makes a namespace of a drill.
func drillsWorker(t *testing.T, namespace string) client.Client {
	t.Helper()
	stack := theJudge(t).stack
	drills, err := stack.UserClient(env.HoldfastDrills)
	require.NoError(t, err)
	place := placeOfDrill(namespace, nil)
	eventually.IsTrue(t, time.Minute, "the API server reads what was installed some time after it was written", func() bool {
		return drills.Create(context.Background(), place.DeepCopy()) == nil
	})
	t.Cleanup(func() { require.NoError(t, stack.Client().Delete(context.Background(), place)) })
	return drills
}

// restrictedPod is what Pod Security level restricted allows.
func restrictedPod() corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: ptr.To(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{Name: "main", Image: "i:1", SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}}},
	}
}

func jobIn(namespace, name string, changes ...func(*corev1.PodSpec)) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	job.Spec.Template.Spec = restrictedPod()
	for _, change := range changes {
		change(&job.Spec.Template.Spec)
	}
	return job
}

// A token of the drills' worker makes no namespace in which a Pod may have the node: the level is one that the administrator allows.
func TestAStolenTokenOfTheDrillsWorkerMakesRestrictedNamespacesAlone(t *testing.T) {
	drills := drillsWorker(t, "drill-aaaaaaaaaaaaaaaaaaaa")
	for title, test := range map[string]struct {
		labels  map[string]string
		allowed bool
	}{
		"restricted":              {nil, true},
		"restricted, of now":      {map[string]string{podSecurityLevel + "-version": "latest"}, true},
		"restricted, of long ago": {map[string]string{podSecurityLevel + "-version": "v1.18"}, false},
		"baseline":                {map[string]string{podSecurityLevel: "baseline"}, false},
		"privileged":              {map[string]string{podSecurityLevel: "privileged"}, false},
	} {
		err := drills.Create(t.Context(), placeOfDrill("drill-aaaaaaaaaaaaaaaaaaab", test.labels), client.DryRunAll)
		if test.allowed {
			require.NoError(t, err, title)
			continue
		}
		require.ErrorContains(t, err, "the namespace of a drill must have Pod Security level restricted, version latest", title)
		require.ErrorContains(t, err, "add it to variable podSecurityLevels or podSecurityVersions", title)
	}
	none := placeOfDrill("drill-aaaaaaaaaaaaaaaaaaab", nil)
	delete(none.Labels, podSecurityLevel)
	require.ErrorContains(t, drills.Create(t.Context(), none, client.DryRunAll), "must have Pod Security level restricted")
}

// In a namespace of a drill it creates neither a Pod nor a Job but the drill's, and lets nobody in but those whom a tenant may name.
func TestAStolenTokenOfTheDrillsWorkerRunsNothingOfItsOwn(t *testing.T) {
	const place = "drill-bbbbbbbbbbbbbbbbbbbb"
	drills := drillsWorker(t, place)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: "evil"}, Spec: restrictedPod()}
	require.ErrorContains(t, drills.Create(t.Context(), pod.DeepCopy()), "may only try to create Pods")
	require.NoError(t, drills.Create(t.Context(), pod.DeepCopy(), client.DryRunAll))

	const ofItsOwn = "may create a Job only under the name of the drill's namespace, and with automountServiceAccountToken false"
	for title, job := range map[string]*batchv1.Job{
		"another name":   jobIn(place, "evil"),
		"with a token":   jobIn(place, place, func(spec *corev1.PodSpec) { spec.AutomountServiceAccountToken = ptr.To(true) }),
		"with a default": jobIn(place, place, func(spec *corev1.PodSpec) { spec.AutomountServiceAccountToken = nil }),
	} {
		require.ErrorContains(t, drills.Create(t.Context(), job, client.DryRunAll), ofItsOwn, title)
	}
	require.NoError(t, drills.Create(t.Context(), jobIn(place, place), client.DryRunAll))

	const one = "may create limits and bindings only under the name holdfast-drill"
	meta := metav1.ObjectMeta{Namespace: place, Name: "evil"}
	open := networkingv1.NetworkPolicySpec{
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}, Egress: []networkingv1.NetworkPolicyEgressRule{{}},
	}
	require.ErrorContains(t, drills.Create(t.Context(), &networkingv1.NetworkPolicy{ObjectMeta: meta, Spec: open}, client.DryRunAll), one)
	require.ErrorContains(t, drills.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: meta}, client.DryRunAll), one)
	meta.Name = "holdfast-drill"
	require.NoError(t, drills.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: meta}, client.DryRunAll))
}

func TestAStolenTokenOfTheDrillsWorkerLetsNotEverybodyLook(t *testing.T) {
	const place = "drill-cccccccccccccccccccc"
	drills := drillsWorker(t, place)
	bind := func(role string, subjects ...rbacv1.Subject) error {
		return drills.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: "holdfast-drill"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: subjects,
		}, client.DryRunAll)
	}
	named := func(kind, name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	require.NoError(t, bind("view", named(rbacv1.UserKind, "alice"), named(rbacv1.GroupKind, "team"),
		rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "shop", Name: "ci"}))
	for _, subject := range []rbacv1.Subject{
		named(rbacv1.GroupKind, "system:authenticated"), named(rbacv1.GroupKind, "system:unauthenticated"),
		named(rbacv1.GroupKind, "system:serviceaccounts"), named(rbacv1.GroupKind, "system:serviceaccounts:shop"),
		named(rbacv1.GroupKind, "system:masters"), named(rbacv1.UserKind, "system:anonymous"),
	} {
		require.ErrorContains(t, bind("view", named(rbacv1.UserKind, "alice"), subject), "may bind only ClusterRole view", subject.Name)
	}
	assert.Error(t, bind("edit", named(rbacv1.UserKind, "alice")), "RBAC refuses it already")
}

// A tenant may give an account of its own the name of the drills' worker's: what counts is the right to delete every Namespace.
func TestAnAccountOfThatNameElsewhereIsNotTheDrillsWorker(t *testing.T) {
	stack := theJudge(t).stack
	rules := []rbacv1.PolicyRule{
		{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"namespaces", "pods", "resourcequotas"}},
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "makes-namespaces"}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "elsewhere", Name: env.HoldfastDrills}},
	}
	for _, made := range []client.Object{role, binding} {
		require.NoError(t, stack.Client().Create(t.Context(), made))
		t.Cleanup(func() { require.NoError(t, stack.Client().Delete(context.Background(), made)) })
	}
	config, err := stack.RESTConfig(env.Admin)
	require.NoError(t, err)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:elsewhere:" + env.HoldfastDrills}
	namesake, err := client.New(config, client.Options{Scheme: k8s.Scheme()})
	require.NoError(t, err)

	var refused error
	eventually.IsTrue(t, time.Minute, "the authorizer reads bindings some time after they are written", func() bool {
		refused = namesake.Create(context.Background(), placeOfDrill("drill-dddddddddddddddddddd", nil), client.DryRunAll)
		return refused != nil && !strings.Contains(refused.Error(), "cannot create resource")
	})
	require.ErrorContains(t, refused, "are for namespaces that Holdfast makes for drills", "it takes no name of a drill")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fdbNamespace, Name: "own"}, Spec: restrictedPod()}
	require.NoError(t, namesake.Create(t.Context(), pod, client.DryRunAll), "and is not limited to drills either")
}
