package caches

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/starter/watch/trim"
)

// Kind is a kind of objects that is cached, and what is kept of each. There is one value of a kind, however many watch it.
type Kind struct {
	// Object is an empty object, see New and Metadata.
	Object client.Object
	// InOADP: only objects of the OADP namespace are cached. Labelled: only those with that label.
	InOADP   bool
	Labelled string
	// Keys are the labels and annotations that are read beside those of package owner, and Finalizers the finalizers.
	Keys, Finalizers []string
	// Phase is the phase of an object.
	Phase func(client.Object) string
	// keep copies what is read of an object into what is kept, which has the metadata.
	keep func(kept, of client.Object)
}

// New completes a kind. keep copies what is read of an object into kept, which has only the trimmed metadata.
func New[T client.Object](kind Kind, keep func(kept, of T)) *Kind {
	kind.Object = reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	kind.keep = func(kept, of client.Object) { keep(kept.(T), of.(T)) }
	return &kind
}

// Metadata completes a kind of which only the metadata are cached, and of the labels only those that are read.
func Metadata(of schema.GroupVersionKind, kind Kind) *Kind {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(of)
	kind.Object = object
	if kind.keep == nil {
		kind.keep = func(kept, _ client.Object) { kept.SetLabels(trim.Known(kept.GetLabels(), kind.Keys)) }
	}
	return &kind
}

// Drills are the keys by which what was made for a drill names it.
var Drills = []string{
	holdfastv1alpha1.LabelDrill, holdfastv1alpha1.AnnotationDrillNamespace, holdfastv1alpha1.AnnotationDrillName,
}

// Namespaces and Secrets are watched by several kinds. The labels of a Namespace choose its quota; they stay as long as they are
// few. Of Secrets, only those made for a storage location have labels and annotations.
var (
	Namespaces = Metadata(corev1.SchemeGroupVersion.WithKind("Namespace"), Kind{
		Keys: Drills, keep: func(client.Object, client.Object) {},
	})
	Secrets = Metadata(corev1.SchemeGroupVersion.WithKind("Secret"), Kind{
		Keys: []string{oadpv1alpha1.CopiedFromAnnotation, oadpv1alpha1.CopiedVersionAnnotation},
		keep: func(kept, _ client.Object) {
			kept.SetLabels(trim.Known(kept.GetLabels(), nil))
			if _, made := owner.Location.Hint(kept); !made {
				kept.SetLabels(nil)
				kept.SetAnnotations(nil)
			}
		},
	})
)

// Trimmed returns the parts of an object of the kind that are kept.
func (k *Kind) Trimmed(of client.Object) client.Object {
	kept := reflect.New(reflect.TypeOf(of).Elem()).Interface().(client.Object)
	*kept.GetObjectKind().(*metav1.TypeMeta) = *of.GetObjectKind().(*metav1.TypeMeta)
	*metadataOf(kept) = *metadataOf(of)
	trim.Metadata(metadataOf(kept), k.Keys, k.Finalizers)
	k.keep(kept, of)
	return kept
}

func metadataOf(object client.Object) *metav1.ObjectMeta {
	return object.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
}

// identity distinguishes kinds; only metadata say themselves of which kind they are.
type identity struct {
	of       reflect.Type
	metadata schema.GroupVersionKind
}

func identityOf(object client.Object) identity {
	is := identity{of: reflect.TypeOf(object)}
	if metadata, only := object.(*metav1.PartialObjectMetadata); only {
		is.metadata = metadata.GroupVersionKind()
	}
	return is
}

// Transform is a cache's transform: it returns the parts of an object that are kept. Of objects of other kinds, only metadata
// are trimmed.
func Transform(kinds []*Kind) toolscache.TransformFunc {
	known := map[identity]*Kind{}
	for _, kind := range kinds {
		known[identityOf(kind.Object)] = kind
	}
	return func(stored any) (any, error) {
		object, is := stored.(client.Object)
		if !is {
			return stored, nil // a tombstone
		}
		if kind := known[identityOf(object)]; kind != nil {
			return kind.Trimmed(object), nil
		}
		trim.Metadata(object, nil, nil)
		return object, nil
	}
}

// Options are the options of a cache: of each kind the objects that concern ours, and of every object only what is kept, from the
// first list on. refusals records what the API server refuses.
func Options(kinds []*Kind, oadpNamespace string, refusals *Refusals) cache.Options {
	transform, selected := Transform(kinds), map[client.Object]cache.ByObject{}
	for _, kind := range kinds {
		if kind.InOADP {
			selected[kind.Object] = cache.ByObject{Namespaces: map[string]cache.Config{oadpNamespace: {}}}
		}
		if kind.Labelled != "" {
			labelled, err := labels.NewRequirement(kind.Labelled, selection.Exists, nil)
			utilruntime.Must(err) // the label's name is a constant
			selected[kind.Object] = cache.ByObject{Label: labels.NewSelector().Add(*labelled)}
		}
	}
	return cache.Options{DefaultTransform: transform, NewInformer: newInformer(transform, refusals.Take), ByObject: selected}
}
