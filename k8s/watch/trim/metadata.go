package trim

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"holdfast.dev/holdfast/activities/location"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
)

// omitted is an annotation, only on trimmed objects, with the size of a spec. seal distinguishes it from one that a tenant
// wrote.
const omitted = "holdfast.dev/omitted-bytes"

var seal = uuid.NewString() + "/"

// OmittedBytes is the size, as JSON, of a trimmed object's spec that was too large to be kept; zero if it was kept, or is not
// used.
func OmittedBytes(object metav1.Object) int {
	value, sealed := strings.CutPrefix(object.GetAnnotations()[omitted], seal)
	size, err := strconv.Atoi(value)
	if !sealed || err != nil {
		return 0
	}
	return size
}

func omit(object metav1.Object, size int) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[omitted] = seal + strconv.Itoa(size)
	object.SetAnnotations(annotations)
}

// knownKeys are the labels and annotations that the watcher reads.
var knownKeys = slices.Concat(owner.Keys(), location.DecisionAnnotations(), []string{
	holdfastv1alpha1.LabelPlan, holdfastv1alpha1.LabelHold, holdfastv1alpha1.LabelUsual, holdfastv1alpha1.LabelDefaultPlan,
	holdfastv1alpha1.AnnotationPlanUID, holdfastv1alpha1.AnnotationRunNow,
	oadpv1alpha1.RegistryLabel, oadpv1alpha1.CopiedFromAnnotation, oadpv1alpha1.CopiedVersionAnnotation,
	velerov1.BackupNameLabel, velerov1.RestoreNameLabel,
	fdbv1alpha1.AnnotationClusterVersion, fdbv1alpha1.LabelBackup, fdbv1alpha1.LabelExpiry,
})

// knownFinalizers are those that the watcher reads.
var knownFinalizers = []string{
	oadpv1alpha1.NabFinalizer, oadpv1alpha1.NarFinalizer, oadpv1alpha1.NabslFinalizer,
	fdbv1alpha1.FinalizerStop, fdbv1alpha1.FinalizerDelete, fdbv1alpha1.FinalizerAbort,
}

// metadata trims an object in place. Labels stay as long as they are few: a change of any label signals its workflow.
func metadata(object metav1.Object) {
	size := OmittedBytes(object)
	object.SetManagedFields(nil)
	object.SetGenerateName("")
	object.SetSelfLink("")
	object.SetAnnotations(known(object.GetAnnotations()))
	if footprint(object.GetLabels()) > keptMapBytes {
		object.SetLabels(known(object.GetLabels()))
	}
	var finalizers []string
	for _, finalizer := range knownFinalizers {
		if slices.Contains(object.GetFinalizers(), finalizer) {
			finalizers = append(finalizers, finalizer)
		}
	}
	object.SetFinalizers(finalizers)
	object.SetOwnerReferences(nil)
	if size > 0 {
		omit(object, size)
	}
}

func known(pairs map[string]string) map[string]string {
	var kept map[string]string
	for _, key := range knownKeys {
		if value, found := pairs[key]; found {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = clip(value, 2*keptName+1) // a namespace and a name
		}
	}
	return kept
}

// owners keeps the FoundationDBBackup that a pod or a Deployment was made for.
func owners(all []metav1.OwnerReference) []metav1.OwnerReference {
	for _, owner := range all {
		version, err := schema.ParseGroupVersion(owner.APIVersion)
		if err == nil && version.Group == fdbv1alpha1.GroupVersion.Group && owner.Kind == fdbv1alpha1.KindFoundationDBBackup &&
			max(len(owner.APIVersion), len(owner.Name), len(owner.UID)) <= keptName {
			return []metav1.OwnerReference{{
				APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID, Controller: owner.Controller,
			}}
		}
	}
	return nil
}

// partial trims objects of which only metadata are watched. Of Secrets, only those made for a storage location have labels. The
// labels of a Namespace choose its quota; they stay as long as they are few.
func partial(object *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	kept := &metav1.PartialObjectMetadata{TypeMeta: object.TypeMeta, ObjectMeta: object.ObjectMeta}
	metadata(kept)
	if kept.Kind != "Namespace" {
		kept.Labels = known(kept.Labels)
	}
	if _, made := owner.Location.Hint(kept); kept.Kind == "Secret" && !made {
		kept.Labels, kept.Annotations = nil, nil
	}
	return kept
}

// marks keeps, beside the known keys, all that say that a storage location was made for a tenant.
func marks(kept, all map[string]string) map[string]string {
	room := keptMapBytes
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if room -= len(key); room < 0 {
			break
		}
		_, has := kept[key]
		if !has && owner.Marks(key) {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = ""
		}
	}
	return kept
}
