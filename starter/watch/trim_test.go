package watch

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/randfill"

	"holdfast.dev/holdfast/activities/fake"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/fdb"
	"holdfast.dev/holdfast/starter/watch/trim"
)

// large is what the largest objects hold.
const large = 900_000

// trimmed is the transform of the watcher's cache.
var trimmed = CacheOptions(fake.OADPNamespace, &caches.Refusals{}).DefaultTransform

var text = strings.Repeat("x", large)

func kept[T client.Object](t *testing.T, object T) T {
	t.Helper()
	return keptBy(t, trimmed, object)
}

func keptBy[T client.Object](t *testing.T, transform toolscache.TransformFunc, object T) T {
	t.Helper()
	once, err := transform(object)
	require.NoError(t, err)
	twice, err := transform(once.(client.Object).DeepCopyObject())
	require.NoError(t, err)
	require.Equal(t, once, twice, "an informer trims twice")
	return once.(T)
}

func size(t *testing.T, object any) int {
	t.Helper()
	data, err := json.Marshal(object)
	require.NoError(t, err)
	return len(data)
}

func secret() client.Object {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return object
}

// Every text of an object, of any kind that is watched, is large: together they are more than an object can hold.
func TestNoFieldOfAnObjectFillsTheCache(t *testing.T) {
	transform := caches.Transform(append(watchedBy(newStation(t).kinds), fdb.Clusters))
	for _, of := range append(watchedBy(newStation(t).kinds), fdb.Clusters) {
		kind := of.Object.GetObjectKind().GroupVersionKind()
		t.Run(fmt.Sprintf("%T %s", of.Object, kind.Kind), func(t *testing.T) {
			object := of.Object.DeepCopyObject().(client.Object)
			randfill.New().NilChance(0).NumElements(1, 1).Funcs(
				func(s *string, _ randfill.Continue) { *s = text[:large/9] },
				func(*metav1.FieldsV1, randfill.Continue) {},
				func(raw *runtime.RawExtension, _ randfill.Continue) { raw.Raw = []byte(`"` + text[:large/9] + `"`) },
			).Fill(object)
			object.GetObjectKind().SetGroupVersionKind(kind)
			object.SetNamespace(fake.Namespace)
			object.SetName("nightly")
			object.SetUID("uid")
			owner := &object.GetOwnerReferences()[0]
			owner.APIVersion, owner.Kind = fdbv1alpha1.GroupVersion.String(), fdbv1alpha1.KindFoundationDBBackup
			object.SetResourceVersion("7")
			require.Greater(t, size(t, object), large)
			after := keptBy(t, transform, object)
			assert.Less(t, size(t, after), 16<<10)
			assert.Equal(t, client.ObjectKeyFromObject(object), client.ObjectKeyFromObject(after))
			assert.Equal(t, object.GetResourceVersion(), after.GetResourceVersion())
			assert.Equal(t, object.GetGeneration(), after.GetGeneration())
			assert.Equal(t, object.GetDeletionTimestamp(), after.GetDeletionTimestamp())
		})
	}
}

func TestManyEntriesDoNotFillTheCacheEither(t *testing.T) {
	nab := fake.NAB("nightly")
	nab.Labels, nab.Annotations = map[string]string{oadpv1alpha1.NabSyncLabel: "x"}, map[string]string{}
	for i := range 10_000 {
		key := fmt.Sprintf("openshift.io/oadp-%d", i)
		nab.Labels[key], nab.Annotations[key] = key, key
		nab.Finalizers = append(nab.Finalizers, key)
		nab.OwnerReferences = append(nab.OwnerReferences, metav1.OwnerReference{Name: key, Kind: key})
		nab.ManagedFields = append(nab.ManagedFields, metav1.ManagedFieldsEntry{Manager: key})
		nab.Status.Conditions = append(nab.Status.Conditions, metav1.Condition{Type: key})
	}
	nab.Finalizers = append(nab.Finalizers, oadpv1alpha1.NabFinalizer)
	after := kept(t, nab)
	assert.Less(t, size(t, after), 2<<10)
	assert.Equal(t, map[string]string{oadpv1alpha1.NabSyncLabel: "x"}, after.Labels, "what is looked at stays")
	assert.Equal(t, []string{oadpv1alpha1.NabFinalizer}, after.Finalizers)

	agents := &fdbv1alpha1.FoundationDBBackup{}
	agents.Status.Backups = make([]fdbv1alpha1.BackupDetails, 10_000)
	agents.Status.Conditions = make([]metav1.Condition, 10_000)
	agents.Status.Backups[9_999].URL = "latest"
	after2 := kept(t, agents)
	assert.Less(t, size(t, after2), 8<<10)
	assert.Equal(t, "latest", after2.Status.Backups[len(after2.Status.Backups)-1].URL)
}

func TestASpecIsKeptOnlyToBeJudged(t *testing.T) {
	nab := fake.NAB("nightly")
	nab.Spec.BackupSpec.StorageLocation = "store"
	nab.Spec.BackupSpec.IncludedResources = []string{"pods"}
	after := kept(t, nab)
	assert.Equal(t, &velerov1.BackupSpec{StorageLocation: "store"}, after.Spec.BackupSpec)
	assert.Zero(t, trim.OmittedBytes(after))

	nab.Status.Phase = oadpv1alpha1.NonAdminPhaseBackingOff
	after = kept(t, nab)
	assert.Equal(t, nab.Spec.BackupSpec, after.Spec.BackupSpec)
	assert.Zero(t, trim.OmittedBytes(after))

	nab.Spec.BackupSpec.IncludedResources = []string{text}
	after = kept(t, nab)
	assert.Equal(t, &velerov1.BackupSpec{StorageLocation: "store"}, after.Spec.BackupSpec)
	assert.Equal(t, size(t, nab.Spec.BackupSpec), trim.OmittedBytes(after))

	nar := fake.NAR("nightly", "nightly")
	nar.Status.Phase = oadpv1alpha1.NonAdminPhaseBackingOff
	nar.Spec.RestoreSpec.IncludedResources = []string{text}
	restore := kept(t, nar)
	assert.Equal(t, &velerov1.RestoreSpec{BackupName: "nightly"}, restore.Spec.RestoreSpec)
	assert.Equal(t, size(t, nar.Spec.RestoreSpec), trim.OmittedBytes(restore))
}

func TestTheSecretThatACopyWasMadeOfIsKeptWhole(t *testing.T) {
	longest := strings.Repeat("n", 253) + "/" + strings.Repeat("s", 253)
	made := &velerov1.BackupStorageLocation{}
	made.Annotations = map[string]string{oadpv1alpha1.CopiedFromAnnotation: longest}
	assert.Equal(t, longest, kept(t, made).Annotations[oadpv1alpha1.CopiedFromAnnotation])
}

// A tenant who says that a spec was left out is not believed.
func TestASizeCannotBeForged(t *testing.T) {
	honest := fake.NAB("nightly")
	honest.Status.Phase = oadpv1alpha1.NonAdminPhaseBackingOff
	honest.Spec.BackupSpec.IncludedResources = []string{text}
	after := kept(t, honest)
	require.NotZero(t, trim.OmittedBytes(after))
	for key, value := range after.Annotations {
		_, number, _ := strings.Cut(value, "/")
		forged := fake.NAB("nightly")
		forged.Annotations = map[string]string{key: number}
		assert.Zero(t, trim.OmittedBytes(forged))
		assert.Empty(t, kept(t, forged).Annotations)
	}
}

func TestOfALargeLocationItIsKnownWhichSecretItNames(t *testing.T) {
	object := fake.NaBSL("store")
	after := kept(t, object)
	assert.Equal(t, object.Spec, after.Spec)
	assert.Zero(t, trim.OmittedBytes(after))
	object.Spec.BackupStorageLocationSpec.Config = map[string]string{"a": text}
	after = kept(t, object)
	assert.Equal(t, object.Spec.BackupStorageLocationSpec.Credential, after.Spec.BackupStorageLocationSpec.Credential)
	assert.Greater(t, trim.OmittedBytes(after), large)
}

// A location from which somebody took a label or an annotation does not become an administrator's.
func TestWhateverSaysThatALocationIsATenantsStays(t *testing.T) {
	made := &velerov1.BackupStorageLocation{}
	made.Labels = map[string]string{"holdfast.dev/nabsl-anything": "x", "team": text}
	made.Annotations = map[string]string{"openshift.io/oadp-nabsl-anything": text, "other": "x"}
	after := kept(t, made)
	assert.Contains(t, after.Labels, "holdfast.dev/nabsl-anything")
	assert.NotContains(t, after.Labels, "team")
	assert.Contains(t, after.Annotations, "openshift.io/oadp-nabsl-anything")
	assert.NotContains(t, after.Annotations, "other")
}

func TestOfASecretLittleIsKept(t *testing.T) {
	tenants := secret()
	tenants.SetNamespace("team")
	tenants.SetName("keys")
	tenants.SetLabels(map[string]string{"a": "b"})
	tenants.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: `{"data":{"cloud":"secret"}}`})
	after := kept(t, tenants)
	assert.Empty(t, after.GetLabels())
	assert.Empty(t, after.GetAnnotations())

	made := secret()
	marks := map[string]string{oadpv1alpha1.NabslOriginNameAnnotation: "store", oadpv1alpha1.NabslOriginNamespaceAnnotation: "team"}
	labels := map[string]string{oadpv1alpha1.OadpLabel: oadpv1alpha1.OadpLabelValue, oadpv1alpha1.NabslOriginNACUUIDLabel: "n"}
	made.SetLabels(labels)
	made.SetAnnotations(marks)
	after = kept(t, made)
	assert.Equal(t, labels, after.GetLabels())
	assert.Equal(t, marks, after.GetAnnotations())
}

func TestOfAPodOnlyThatIsKeptWhichTells(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Labels = map[string]string{fdbv1alpha1.LabelExpiry: "nightly"}
	owner := metav1.OwnerReference{
		APIVersion: fdbv1alpha1.GroupVersion.String(), Kind: fdbv1alpha1.KindFoundationDBBackup, Name: "nightly", UID: "uid", Controller: new(true),
	}
	pod.OwnerReferences = []metav1.OwnerReference{owner}
	pod.Spec.Containers = []corev1.Container{{Name: "fdbbackup"}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "fdbbackup", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
	}}
	after := kept(t, pod)
	assert.Equal(t, pod.Labels, after.Labels)
	assert.Equal(t, pod.OwnerReferences, after.OwnerReferences)
	assert.Equal(t, pod.Status.ContainerStatuses, after.Status.ContainerStatuses)
	assert.Empty(t, after.Spec.Containers)
	assert.Empty(t, after.Status.Conditions)
}

func TestOfOwnersOnlyAFoundationDBBackupIsKept(t *testing.T) {
	owner := metav1.OwnerReference{
		APIVersion: fdbv1alpha1.GroupVersion.String(), Kind: fdbv1alpha1.KindFoundationDBBackup, Name: "nightly", UID: "uid", Controller: new(true),
	}
	for title, forge := range map[string]func(*metav1.OwnerReference){
		"another group's":         func(o *metav1.OwnerReference) { o.APIVersion = "a/v1" },
		"another kind":            func(o *metav1.OwnerReference) { o.Kind = "Other" },
		"a version that none has": func(o *metav1.OwnerReference) { o.APIVersion = fdbv1alpha1.GroupVersion.Group + "/" + text },
		"a name that none has":    func(o *metav1.OwnerReference) { o.Name = text },
		"a UID that none has":     func(o *metav1.OwnerReference) { o.UID = types.UID(text) },
	} {
		t.Run(title, func(t *testing.T) {
			forged := *owner.DeepCopy()
			forge(&forged)
			owners := []metav1.OwnerReference{forged, owner}
			pod, deployment, nab := &corev1.Pod{}, &appsv1.Deployment{}, fake.NAB("nightly")
			pod.OwnerReferences, deployment.OwnerReferences, nab.OwnerReferences = owners, owners, owners
			assert.Equal(t, []metav1.OwnerReference{owner}, kept(t, pod).OwnerReferences)
			assert.Equal(t, []metav1.OwnerReference{owner}, kept(t, deployment).OwnerReferences)
			assert.Empty(t, kept(t, nab).OwnerReferences, "nobody looks at it")
		})
	}
}

func TestATombstoneIsLeftAlone(t *testing.T) {
	gone := toolscache.DeletedFinalStateUnknown{Key: "team/nightly"}
	after, err := trimmed(gone)
	require.NoError(t, err)
	assert.Equal(t, gone, after)
}
