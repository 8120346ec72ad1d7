package namespaces_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"holdfast.dev/holdfast/activities/drill/namespaces"
	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/workflows/contract"
)

const cluster = "west"

func wanted(uid string) contract.DrillNamespace {
	return contract.DrillNamespace{
		Ref: contract.ObjectRef{Namespace: "shop", Name: "weekly", UID: uid}, Name: owner.DrillName(cluster, types.UID(uid)),
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted", holdfastv1alpha1.LabelDrill: "forged"},
		Quota:  map[string]string{"pods": "3"}, MaxActive: 2,
	}
}

func class(name, provisioner string) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner}
}

// world gives each object that is created a later creation time.
func world(t *testing.T, objects ...client.Object) (*namespaces.Activities, client.WithWatch) {
	t.Helper()
	made := 0
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(k8s.Scheme()).WithObjects(objects...).Build(), interceptor.Funcs{
		Create: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.CreateOption) error {
			made++
			object.SetCreationTimestamp(metav1.NewTime(time.Unix(int64(1000+made), 0)))
			object.SetUID(types.UID(fmt.Sprintf("made-%d", made)))
			return to.Create(ctx, object, options...)
		},
		Get: func(ctx context.Context, from client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			err := from.Get(ctx, key, object, options...)
			if quota, is := object.(*corev1.ResourceQuota); is && err == nil { // as the quota controller
				quota.Status.Hard = quota.Spec.Hard
			}
			return err
		},
	})
	return &namespaces.Activities{Client: c, ClusterID: cluster, Paused: func() error { return nil }}, c
}

func perform(t *testing.T, a *namespaces.Activities, name string, in contract.DrillNamespace) (view contract.DrillNamespaceView, err error) {
	t.Helper()
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	a.Register(env)
	answer, err := env.ExecuteActivity(name, in)
	if err == nil {
		require.NoError(t, answer.Get(&view))
	}
	return view, err
}

func TestANamespaceIsMadeWithItsLimitsAndDeleted(t *testing.T) {
	a, c := world(t, class("slow", "csi.example.com"), class("by-hand", "kubernetes.io/no-provisioner"), class("fast", "csi.example.com"))
	in := wanted("u-1")
	in.Annotations = map[string]string{"holdfast.dev/drill-storage-classes": "by-hand"}
	for range 2 {
		view, err := perform(t, a, contract.PrepareDrillNamespace.Name, in)
		require.NoError(t, err)
		assert.Equal(t, contract.DrillNamespaceView{Exists: true, Prepared: true}, view)
	}
	made := &corev1.Namespace{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: in.Name}, made))
	assert.Equal(t, "restricted", made.Labels["pod-security.kubernetes.io/enforce"])
	assert.True(t, owner.ForDrill(cluster, made, "u-1"), "no template takes the mark away")
	assert.Equal(t, "fast,slow", made.Annotations["holdfast.dev/drill-storage-classes"], "claims of others use up volumes that are there")
	var quotas corev1.ResourceQuotaList
	require.NoError(t, c.List(t.Context(), &quotas, client.InNamespace(in.Name)))
	require.Len(t, quotas.Items, 1)
	assert.Equal(t, "3", quotas.Items[0].Spec.Hard.Pods().String())
	var policies networkingv1.NetworkPolicyList
	require.NoError(t, c.List(t.Context(), &policies, client.InNamespace(in.Name)))
	require.Len(t, policies.Items, 1)
	assert.Len(t, policies.Items[0].Spec.PolicyTypes, 2)
	for _, rule := range policies.Items[0].Spec.Egress {
		assert.NotEmpty(t, rule.To, "nowhere else")
	}

	view, err := perform(t, a, contract.RemoveDrillNamespace.Name, in)
	require.NoError(t, err)
	assert.True(t, view.Exists)
	require.True(t, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKey{Name: in.Name}, made)))
	view, err = perform(t, a, contract.RemoveDrillNamespace.Name, in)
	require.NoError(t, err)
	assert.False(t, view.Exists)
}

func TestThereAreNoMoreNamespacesThanPlaces(t *testing.T) {
	a, c := world(t)
	of := func(namespace, uid string) contract.DrillNamespace {
		in := wanted(uid)
		in.Ref.Namespace = namespace
		return in
	}
	for _, in := range []contract.DrillNamespace{of("shop", "u-1"), of("crew", "u-2")} {
		view, err := perform(t, a, contract.PrepareDrillNamespace.Name, in)
		require.NoError(t, err)
		assert.True(t, view.Prepared)
	}
	second := of("shop", "u-9")
	second.MaxActive = 9
	view, err := perform(t, a, contract.PrepareDrillNamespace.Name, second)
	require.NoError(t, err)
	assert.True(t, view.Full, "one of each tenant")
	late := of("team", "u-3")
	view, err = perform(t, a, contract.PrepareDrillNamespace.Name, late)
	require.NoError(t, err)
	assert.Equal(t, contract.DrillNamespaceView{Full: true}, view)
	require.True(t, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKey{Name: late.Name}, &corev1.Namespace{})), "none is made")

	// Two have counted at the same time: neither has limits, and both give their places back.
	drill := &metav1.ObjectMeta{Namespace: late.Ref.Namespace, Name: late.Ref.Name, UID: types.UID(late.Ref.UID)}
	require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: owner.DrillMeta(cluster, drill, "")}))
	view, err = perform(t, a, contract.PrepareDrillNamespace.Name, late)
	require.NoError(t, err)
	assert.Equal(t, contract.DrillNamespaceView{Exists: true, Full: true}, view)
	require.True(t, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKey{Name: late.Name}, &corev1.Namespace{})))

	first := wanted("u-1")
	first.MaxActive = 1
	view, err = perform(t, a, contract.PrepareDrillNamespace.Name, first)
	require.NoError(t, err)
	assert.True(t, view.Prepared, "one that has its limits keeps its place")
}

// Until the quota is in force nothing is limited.
func TestANamespaceIsNotPreparedWithoutItsQuotaInForce(t *testing.T) {
	a, c := world(t)
	a.Client = interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, from client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			err := from.Get(ctx, key, object, options...)
			if quota, is := object.(*corev1.ResourceQuota); is {
				quota.Status.Hard = nil
			}
			return err
		},
	})
	_, err := perform(t, a, contract.PrepareDrillNamespace.Name, wanted("u-1"))
	require.ErrorContains(t, err, "is not in force yet")
}

func TestOnlyTheDrillsOwnNamespaceIsTouched(t *testing.T) {
	in := wanted("u-1")
	foreign := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in.Name}}
	victim := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	a, c := world(t, foreign, victim)
	for _, activity := range []string{contract.PrepareDrillNamespace.Name, contract.RemoveDrillNamespace.Name} {
		_, err := perform(t, a, activity, in)
		require.ErrorContains(t, err, "was not made for drill shop/weekly")
		aimed := in
		aimed.Name = "shop"
		_, err = perform(t, a, activity, aimed)
		require.ErrorContains(t, err, `namespace "shop" is not that of drill shop/weekly`)
	}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "shop"}, &corev1.Namespace{}))
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: in.Name}, &corev1.Namespace{}))
}
