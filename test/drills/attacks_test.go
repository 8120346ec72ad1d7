package drills_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// A volume that was made by hand is Released, and of no use to anybody, when a claim that was bound to it is deleted.
func TestADrillUsesUpNoVolumeThatIsThere(t *testing.T) {
	sample.InLong(t, "TestWhatADrillRestoresIsTamedInItsNamespace")
	t.Parallel()
	x := newTenant(t, "heidi")
	class, one := "static-"+x.namespace, corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	volume := func(name string) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: x.namespace + "-" + name},
			Spec: corev1.PersistentVolumeSpec{
				StorageClassName: class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: one,
				PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp/x"}},
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			},
		}
	}
	require.NoError(t, admin.Create(t.Context(), volume("used")))
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: one},
	}}
	x.create(claim, configMap("settings"))
	eventually.IsTrue(t, patience, "the tenant's claim has its volume", func() bool {
		return x.client.Get(context.Background(), client.ObjectKeyFromObject(claim), claim) == nil && claim.Status.Phase == corev1.ClaimBound
	})
	free := volume("free")
	require.NoError(t, admin.Create(t.Context(), free))
	t.Cleanup(func() { _ = admin.Delete(context.Background(), free) })
	x.backUp("nightly")

	ended := x.awaitEnd(x.drill("weekly", "nightly", lasting("150s")))
	assert.Contains(t, findings(ended), `a drill does not restore a claim of storage class "`+class+`", which makes no volumes`)
	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(free), free))
	assert.Equal(t, corev1.VolumeAvailable, free.Status.Phase)
	assert.Nil(t, free.Spec.ClaimRef)
}

// What acts on annotations sees no copy, and Pods have neither a token nor a priority.
func TestWhatADrillRestoresIsTamedInItsNamespace(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "carol")
	announced := map[string]string{
		"external-dns.alpha.kubernetes.io/hostname":               "shop.example.com",
		"reflector.v1.k8s.emberstack.com/reflection-auto-enabled": "true",
		"replicator.v1.mittwald.de/replicate-to":                  "crew", "kept": "x",
	}
	urgent := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent-" + x.namespace}, Value: 1000}
	require.NoError(t, admin.Create(t.Context(), urgent))
	t.Cleanup(func() { _ = admin.Delete(context.Background(), urgent) })
	web, alias, keys := workload("web", running), service("web", corev1.ServiceTypeClusterIP), configMap("settings")
	web.Annotations, web.Spec.Template.Annotations, alias.Annotations, keys.Annotations = announced, announced, announced, announced
	web.Spec.Template.Spec.PriorityClassName, web.Spec.Template.Spec.AutomountServiceAccountToken = urgent.Name, ptr.To(true)
	x.create(web, alias, keys)
	x.backUp("nightly")

	drill := x.drill("weekly", "nightly", withJob(pod(running)), lasting("150s")) // the Job keeps what was restored there
	var pods corev1.PodList
	restored := x.await(drill, "runs the Job", func(s *holdfastv1alpha1.RestoreDrillStatus) bool {
		return s.Ready != nil && admin.List(context.Background(), &pods, client.InNamespace(s.Namespace), client.MatchingLabels(web.Labels)) == nil
	})
	require.NotEmpty(t, pods.Items)
	for i := range pods.Items {
		spec := pods.Items[i].Spec
		assert.Empty(t, spec.PriorityClassName)
		assert.False(t, *spec.AutomountServiceAccountToken)
		for name, limit := range map[corev1.ResourceName]string{corev1.ResourceCPU: "4", corev1.ResourceMemory: "8Gi"} {
			given := spec.Containers[0].Resources.Limits[name]
			assert.Equal(t, limit, given.String(), "its share of the quota")
		}
	}
	for _, object := range []client.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pods.Items[0].Name}},
	} {
		object.SetNamespace(restored.Status.Namespace)
		require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		assert.Equal(t, "x", object.GetAnnotations()["kept"], "%T", object)
		for key := range announced {
			if key != "kept" {
				assert.NotContains(t, object.GetAnnotations(), key, "%T", object)
			}
		}
	}
	require.NoError(t, x.client.Delete(t.Context(), drill))
}
