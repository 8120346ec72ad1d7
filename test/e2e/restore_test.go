package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// What a tenant deletes by mistake comes back as it was, object by object.
func TestRestoreBringsBackWhatWasDeleted(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "alice")
	volume := newVolume(t, x.namespace)
	things := x.populate()
	awaitBound(t, volume)
	before := contentOf(t, x.namespace)
	require.Len(t, before, 3+len(things))
	nab := x.completed("nightly")
	for _, thing := range things {
		require.NoError(t, x.client.Delete(t.Context(), thing))
	}
	require.NoError(t, x.client.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(x.namespace),
		client.MatchingLabels{"app": "seed"}))
	require.NoError(t, admin.Delete(t.Context(), volume.DeepCopy())) // with its claim gone, no other claim can have it
	awaitContent(t, x.namespace, 0)
	awaitAllGone(t, volume)

	nar := x.awaitFinalizedAs(x.restore("back", nab.Name), oadpv1alpha1.FinalizationPhaseCompleted)

	awaitBound(t, volume)
	assert.Equal(t, before, contentOf(t, x.namespace))
	assert.Zero(t, nar.Status.Finalization.Warnings+nar.Status.Finalization.Errors, "%+v", nar.Status.Finalization)
	checkRestored(t, nar, nab)
	recordRestore(t, nar)
	x.removeRestore(nar)
	assert.Equal(t, before, contentOf(t, x.namespace), "what was restored stays")
	recordRestore(t, nar)
}

// checkRestored compares a completed restore with what docs/tenants.md states.
func checkRestored(t *testing.T, nar *restoring, nab *oadpv1alpha1.NonAdminBackup) {
	t.Helper()
	assert.Equal(t, oadpv1alpha1.NonAdminPhaseCreated, nar.Status.Phase)
	assert.Equal(t, "RestoreAccepted", restoreCondition(nar, oadpv1alpha1.NonAdminConditionAccepted).Reason)
	assert.Equal(t, "Created Velero Restore object", restoreCondition(nar, oadpv1alpha1.NonAdminConditionQueued).Message)
	finalized := restoreCondition(nar, oadpv1alpha1.NonAdminConditionFinalized)
	assert.Equal(t, metav1.ConditionTrue, finalized.Status)
	assert.Equal(t, oadpv1alpha1.ReasonFinalizationCompleted, finalized.Reason)
	require.NotNil(t, nar.Status.QueueInfo)
	assert.Zero(t, nar.Status.QueueInfo.EstimatedQueuePosition)
	assert.Equal(t, velerov1.RestorePhaseCompleted, restorePhase(nar))
	assert.Contains(t, nar.Finalizers, oadpv1alpha1.NarFinalizer)
	made := veleroRestore(t, nar.Status.VeleroRestore.Name)
	require.NotNil(t, made)
	assert.Equal(t, made.Name, nar.Status.VeleroRestore.NACUUID)
	assert.Equal(t, env.OADPNamespace, nar.Status.VeleroRestore.Namespace)
	assert.Equal(t, nab.Status.VeleroBackup.Name, made.Spec.BackupName)
	assert.Equal(t, []string{nar.Namespace}, made.Spec.IncludedNamespaces)
	assert.Nil(t, made.Spec.IncludeClusterResources, "the volumes of claims come back from an administrator's location")
	assert.Nil(t, made.Spec.ResourceModifier)
	assert.Equal(t, made.Name, made.Labels[oadpv1alpha1.NarOriginNACUUIDLabel])
	assert.Equal(t, nar.Namespace, made.Annotations[oadpv1alpha1.NarOriginNamespaceAnnotation])
	assert.Equal(t, nar.Name, made.Annotations[oadpv1alpha1.NarOriginNameAnnotation])
	for _, kept := range []string{"volumesnapshotclasses", "nonadminbackups", "nonadminrestores", "clusterrolebindings"} {
		assert.Contains(t, made.Spec.ExcludedResources, kept)
	}
	var names []string
	for _, task := range nar.Status.Finalization.Tasks {
		names = append(names, task.Name)
		assert.Equal(t, oadpv1alpha1.FinalizationPhaseCompleted, task.Phase)
		assert.False(t, task.StartTimestamp.IsZero() || task.CompletionTimestamp.IsZero(), "%s has no times", task.Name)
	}
	assert.Equal(t, []string{"volumes", "cleanup", "validation"}, names)
}

// newVolume is a volume that an administrator has made, for claim "data" of the namespace.
func newVolume(t *testing.T, namespace string) *corev1.PersistentVolume {
	t.Helper()
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-data", Labels: map[string]string{"tier": "gold"}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/" + namespace},
			},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: namespace, Name: "data"},
		},
	}
	require.NoError(t, admin.Create(t.Context(), volume))
	t.Cleanup(func() { deleteAtEnd(t, volume) })
	return volume
}

// claim is a claim "data" for the volume of that name.
func (x *tenant) claim(volume string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "data", Labels: map[string]string{"team": "blue"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: ptr.To(""),
			VolumeName:       volume,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}
}

// populate makes an object of every kind that a tenant uses, as the tenant, with labels and annotations.
func (x *tenant) populate() []client.Object {
	x.t.Helper()
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: x.namespace, Name: name, Labels: map[string]string{"team": "blue", "example.com/owner": "x"},
			Annotations: map[string]string{"example.com/note": "kept as it is: {\"a\": 1}"},
		}
	}
	pods := map[string]string{"app": "web"}
	made := []client.Object{
		&corev1.ConfigMap{
			ObjectMeta: named("settings"), Data: map[string]string{"key": "value\n"}, BinaryData: map[string][]byte{"raw": {0, 1, 255}},
		},
		&corev1.Secret{ObjectMeta: named("password"), Type: "example.com/login", Data: map[string][]byte{"p": []byte("hidden")}},
		&corev1.ServiceAccount{ObjectMeta: named("robot")},
		&corev1.Service{ObjectMeta: named("web"), Spec: corev1.ServiceSpec{
			Selector: pods, Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}},
		}},
		&appsv1.Deployment{ObjectMeta: named("web"), Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: pods},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: pods},
				Spec: corev1.PodSpec{
					ServiceAccountName: "robot", Containers: []corev1.Container{{Name: "web", Image: "web:1", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}},
				},
			},
		}},
		x.claim(x.namespace + "-data"),
	}
	for _, object := range made {
		require.NoError(x.t, x.client.Create(x.t.Context(), object))
	}
	return made
}

// compared are the kinds whose objects are compared.
var compared = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("Secret"),
	corev1.SchemeGroupVersion.WithKind("ServiceAccount"), corev1.SchemeGroupVersion.WithKind("Service"),
	appsv1.SchemeGroupVersion.WithKind("Deployment"), corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
}

// contentOf returns what users have written of a namespace's objects, by kind and name: all but the status, what the API server
// adds, the labels of Velero's own, the mark of a restore from a tenant's location, and the address of a Service, which Kubernetes gives again.
func contentOf(t *testing.T, namespace string) map[string]map[string]any {
	t.Helper()
	found, err := readContent(t.Context(), namespace)
	require.NoError(t, err)
	return found
}

// awaitContent waits until that many objects of these kinds are in a namespace.
func awaitContent(t *testing.T, namespace string, count int) {
	t.Helper()
	awaitSuccess(t, func(ctx context.Context) error {
		found, err := readContent(ctx, namespace)
		if err == nil && len(found) != count {
			err = fmt.Errorf("%d objects are in namespace %s, not %d: %q", len(found), namespace, count, slices.Sorted(maps.Keys(found)))
		}
		return err
	})
}

func readContent(ctx context.Context, namespace string) (map[string]map[string]any, error) {
	found := map[string]map[string]any{}
	for _, kind := range compared {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := admin.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		for _, item := range list.Items {
			if item.GetName() == "kube-root-ca.crt" {
				continue
			}
			labels, annotations := item.GetLabels(), item.GetAnnotations()
			for prefix, of := range map[string]map[string]string{
				"velero.io/": labels, "pv.kubernetes.io/": annotations, "holdfast.dev/restored-": annotations,
			} {
				maps.DeleteFunc(of, func(key, _ string) bool { return strings.HasPrefix(key, prefix) })
			}
			content := item.Object
			delete(content, "status")
			content["metadata"] = map[string]any{
				"name": item.GetName(), "labels": fmt.Sprint(labels), "annotations": fmt.Sprint(annotations), // none or empty
			}
			if spec, is := content["spec"].(map[string]any); is && kind.Kind == "Service" {
				delete(spec, "clusterIP")
				delete(spec, "clusterIPs")
			}
			found[kind.Kind+" "+item.GetName()] = content
		}
	}
	return found, nil
}

// configMaps returns the data of a namespace's ConfigMaps by their names, but for the one that Kubernetes puts there.
func configMaps(t *testing.T, namespace string) map[string]map[string]string {
	t.Helper()
	found, err := readConfigMaps(t.Context(), namespace)
	require.NoError(t, err)
	return found
}

func readConfigMaps(ctx context.Context, namespace string) (map[string]map[string]string, error) {
	var list corev1.ConfigMapList
	if err := admin.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	found := map[string]map[string]string{}
	for _, item := range list.Items {
		if item.Name != "kube-root-ca.crt" {
			found[item.Name] = item.Data
		}
	}
	return found, nil
}
