package trim

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// Omit replaces, on a trimmed object, a spec by its size as JSON.
func Omit(object metav1.Object, spec ...any) {
	size := 0
	for _, part := range spec {
		size += jsonSize(part)
	}
	omit(object, size)
}

func omit(object metav1.Object, size int) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[omitted] = seal + strconv.Itoa(size)
	object.SetAnnotations(annotations)
}

// jsonSize is the size by which a spec that is not kept is judged.
func jsonSize(value any) int {
	data, err := json.Marshal(value)
	if err != nil {
		return math.MaxInt32
	}
	return len(data)
}

// Metadata trims an object in place, but for these labels, annotations and finalizers. Labels stay as long as they are few: a
// change of any label signals its workflow.
func Metadata(object metav1.Object, keys, finalizers []string) {
	size := OmittedBytes(object)
	object.SetManagedFields(nil)
	object.SetGenerateName("")
	object.SetSelfLink("")
	object.SetAnnotations(Known(object.GetAnnotations(), keys))
	if Footprint(object.GetLabels()) > MapBytes {
		object.SetLabels(Known(object.GetLabels(), keys))
	}
	var kept []string
	for _, finalizer := range finalizers {
		if slices.Contains(object.GetFinalizers(), finalizer) {
			kept = append(kept, finalizer)
		}
	}
	object.SetFinalizers(kept)
	object.SetOwnerReferences(nil)
	if size > 0 {
		omit(object, size)
	}
}

// origins are the labels and annotations that say whose an object is.
var origins = owner.Keys()

// Known keeps, of labels or annotations, these and those that say whose an object is.
func Known(pairs map[string]string, keys []string) map[string]string {
	var kept map[string]string
	for _, some := range [][]string{origins, keys} {
		for _, key := range some {
			if value, found := pairs[key]; found {
				if kept == nil {
					kept = map[string]string{}
				}
				kept[key] = Clip(value, 2*NameBytes+1) // a namespace and a name
			}
		}
	}
	return kept
}
