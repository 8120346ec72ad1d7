package drills_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

func TestAGoodBackupIsVerifiedAndNothingIsLeft(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "alice")
	x.create(workload("web", running), service("web", corev1.ServiceTypeLoadBalancer), configMap("settings"),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"}, StringData: map[string]string{"password": "secret-of-the-drill"}})
	eventually.IsTrue(t, patience, "the workload runs", func() bool {
		web := workload("web", "")
		err := x.client.Get(context.Background(), client.ObjectKey{Namespace: x.namespace, Name: "web"}, web)
		return err == nil && web.Status.AvailableReplicas == 1
	})
	work := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "work"}, Spec: batchv1.JobSpec{Template: *pod(running)}}
	work.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	x.create(work)
	eventually.IsTrue(t, patience, "a Job works", func() bool {
		err := x.client.Get(context.Background(), client.ObjectKeyFromObject(work), work)
		return err == nil && work.Status.Active == 1
	})
	var slices discoveryv1.EndpointSliceList
	eventually.IsTrue(t, patience, "the Service has the workload as its endpoint", func() bool {
		err := admin.List(context.Background(), &slices, client.InNamespace(x.namespace))
		return err == nil && len(slices.Items) == 1 && len(slices.Items[0].Endpoints) == 1 && ptr.Deref(slices.Items[0].Endpoints[0].Conditions.Ready, false)
	})
	x.backUp("nightly")
	before := x.fingerprint()

	drill := x.drill("weekly", "nightly")
	restoring := x.await(drill, "restores", func(s *holdfastv1alpha1.RestoreDrillStatus) bool { return s.Started != nil })
	place := &corev1.Namespace{}
	require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Name: restoring.Status.Namespace}, place))
	assert.Equal(t, "restricted", place.Labels["pod-security.kubernetes.io/enforce"])
	var limits networkingv1.NetworkPolicyList
	require.NoError(t, admin.List(t.Context(), &limits, client.InNamespace(place.Name)))
	assert.Len(t, limits.Items, 1)

	checked := x.await(drill, "has been restored", func(s *holdfastv1alpha1.RestoreDrillStatus) bool {
		return len(s.Checks) > 0 && s.Checks[0].Ended != nil
	})
	var pods corev1.PodList
	require.NoError(t, admin.List(t.Context(), &pods, client.InNamespace(checked.Status.Namespace), client.HasLabels{batchv1.JobNameLabel}))
	assert.Empty(t, pods.Items, "what a Job does is not done again")
	ended := x.awaitEnd(drill)
	condition := verified(t, ended)
	require.Equal(t, metav1.ConditionTrue, condition.Status, "%+v", ended.Status)
	measured := ended.Status.Measured
	require.NotNil(t, measured)
	assert.GreaterOrEqual(t, measured.Objects, int64(4))
	assert.NotNil(t, ended.Status.Ready)
	assert.Equal(t, holdfastv1alpha1.ReasonVerified, condition.Reason)
	x.awaitVerdict("nightly", metav1.ConditionTrue)
	assert.Empty(t, findings(ended))
	assert.Equal(t, before, x.fingerprint(), "the tenant's namespace has seen nothing")
	t.Logf("verified: %s, ready %d seconds later; %v", condition.Message, measured.ReadySeconds, ended.Status.Findings)
}

func TestAWorkloadThatDoesNotComeUpFailsItsDrill(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "bob")
	x.create(workload("broken", "example.com/nowhere:1"))
	x.backUp("nightly")
	ended := x.awaitEnd(x.drill("weekly", "nightly", lasting("150s")))
	condition := verified(t, ended)
	assert.Equal(t, metav1.ConditionFalse, condition.Status)
	assert.Equal(t, holdfastv1alpha1.ReasonChecksFailed, condition.Reason)
	x.awaitVerdict("nightly", metav1.ConditionFalse)
	all := findings(ended)
	assert.Contains(t, all, "Deployment broken is not ready: 0 of 1 replicas are")
	assert.Regexp(t, `Pod broken-\S+: container main waits: (ErrImagePull|ImagePullBackOff)`, all)
}

func TestADrillThatIsDeletedLeavesNothing(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "carol")
	x.create(workload("broken", "example.com/nowhere:1"), configMap("settings"))
	x.backUp("nightly")
	drill := x.drill("weekly", "nightly")
	checking := x.await(drill, "checks", func(s *holdfastv1alpha1.RestoreDrillStatus) bool { return s.Phase == holdfastv1alpha1.DrillChecking })
	var pods corev1.PodList
	require.NoError(t, x.client.List(t.Context(), &pods, client.InNamespace(checking.Status.Namespace)), "tenantsMayLook")
	err := x.client.List(t.Context(), &corev1.SecretList{}, client.InNamespace(checking.Status.Namespace))
	require.True(t, apierrors.IsForbidden(err), "no Secrets: %v", err)
	x.discard(checking)
}

// A tenant would have its drill hold a place for ever.
func TestNothingHoldsTheNamespaceOfADrill(t *testing.T) {
	sample.InLong(t, "TestADrillThatIsDeletedLeavesNothing")
	t.Parallel()
	x := newTenant(t, "grace")
	stays := workload("stays", running)
	stays.Finalizers = []string{"example.com/stays"}
	stays.Spec.Template.Finalizers = []string{"example.com/stays"}
	stays.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](1 << 30)
	external := service("alias", corev1.ServiceTypeExternalName)
	external.Spec.Ports, external.Spec.Selector, external.Spec.ExternalName = nil, nil, "example.com"
	x.create(stays, external, service("node", corev1.ServiceTypeNodePort))
	x.backUp("nightly")
	ended := x.awaitEnd(x.drill("weekly", "nightly"))
	assert.Equal(t, metav1.ConditionTrue, verified(t, ended).Status, "%+v", ended.Status)
}

func TestWhatCannotBeRestoredIsNotVerified(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "dave")
	ended := x.awaitEnd(x.drill("weekly", "nightly"))
	condition := verified(t, ended)
	assert.Equal(t, metav1.ConditionUnknown, condition.Status)
	assert.Equal(t, holdfastv1alpha1.ReasonNotVerified, condition.Reason)
	assert.Contains(t, condition.Message, `"nightly" not found`)
	assert.Empty(t, ended.Status.Namespace)
}

// The drills' worker makes and deletes the namespaces of drills alone, and nobody else takes their names or their label.
func TestNamespacesOfDrillsAreTheDrillsWorkersAlone(t *testing.T) {
	t.Parallel()
	config, err := stack.RESTConfig(env.HoldfastDrills)
	require.NoError(t, err)
	drills, err := client.New(config, client.Options{})
	require.NoError(t, err)
	named := func(name, mark string) *corev1.Namespace {
		made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if mark != "" {
			made.Labels = map[string]string{holdfastv1alpha1.LabelDrill: mark, "pod-security.kubernetes.io/enforce": "restricted"}
		}
		return made
	}
	const free = "drill-0123456789abcdef0123"
	for title, test := range map[string]struct {
		as      client.Client
		made    *corev1.Namespace
		allowed bool
	}{
		"the worker, another name":     {drills, named("shop", "u"), false},
		"the worker, without the mark": {drills, named(free, ""), false},
		"the worker, a drill's":        {drills, named(free, "u"), true},
		"an administrator, the name":   {admin, named("drill-0123456789abcdef0124", ""), false},
		"an administrator, the mark":   {admin, named("shop-2", "u"), false},
		"an administrator, another":    {admin, named("drill-hall", ""), true},
	} {
		err := test.as.Create(t.Context(), test.made.DeepCopy(), client.DryRunAll)
		if test.allowed {
			require.NoError(t, err, title)
			continue
		}
		assert.True(t, apierrors.IsForbidden(err), "%s: %v", title, err)
	}
	x := newTenant(t, "erin")
	err = drills.Delete(t.Context(), named(x.namespace, ""), client.DryRunAll)
	assert.True(t, apierrors.IsForbidden(err), "a tenant's namespace: %v", err)
	err = drills.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "q"}}, client.DryRunAll)
	assert.True(t, apierrors.IsForbidden(err), "a quota in a tenant's namespace: %v", err)
	marked := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"holdfast.dev/drill":"u"}}}`))
	err = admin.Patch(t.Context(), named(x.namespace, ""), marked, client.DryRunAll)
	assert.True(t, apierrors.IsForbidden(err), "the mark on a tenant's namespace: %v", err)
}

// Killed at every phase, each process in its turn: one Velero Restore, the same verdict, and nothing left.
func TestKilledAtEveryPhaseADrillEndsTheSame(t *testing.T) {
	x := newTenant(t, "frank")
	x.create(workload("web", running), configMap("settings"))
	x.backUp("nightly")
	for _, name := range killed() {
		process := stack.Component(name)
		drill := x.drill("killed-"+name, "nightly", withJob(pod(checking)))
		seen := map[holdfastv1alpha1.DrillPhase]bool{}
		for !seen[holdfastv1alpha1.DrillEnded] {
			now := x.await(drill, "another phase", func(s *holdfastv1alpha1.RestoreDrillStatus) bool { return s.Phase != "" && !seen[s.Phase] })
			seen[now.Status.Phase] = true
			if now.Status.Phase != holdfastv1alpha1.DrillEnded {
				require.NoError(t, process.Kill())
				require.NoError(t, process.Restart(t.Context()))
			}
		}
		ended := x.awaitEnd(drill)
		assert.Equal(t, metav1.ConditionTrue, verified(t, ended).Status, "%s killed: %+v", name, ended.Status)
		assert.Equal(t, 1, madeRestores(t, owner.DrillName(stack.ClusterID(), drill.UID)), "%s killed: Velero Restores", name)
		t.Logf("%s killed in phases %v", name, seen)
	}
}

// killed are the processes that are killed: the workers, and the others in `make test-long`.
func killed() []string {
	if !sample.Whole() {
		return []string{env.Worker, env.DrillWorker}
	}
	return []string{env.Worker, env.DrillWorker, env.Watcher, env.Temporal}
}

// madeRestores counts the Velero Restores of a name that the API server has accepted.
func madeRestores(t *testing.T, name string) (count int) {
	t.Helper()
	requests, err := stack.Audit()
	require.NoError(t, err)
	for _, request := range requests {
		if request.Resource == "restores" && request.Verb == "create" && request.Name == name && request.Wrote() {
			count++
		}
	}
	return count
}
