package fake

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	kubetesting "k8s.io/client-go/testing"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// generations is a store that keeps metadata.generation of storage locations and approval requests as the API server does:
// it grows with every change of the spec, whatever the writer says. The fake client leaves it to the writer.
type generations struct{ kubetesting.ObjectTracker }

func newGenerations() generations {
	return generations{kubetesting.NewObjectTracker(scheme(), serializer.NewCodecFactory(scheme()).UniversalDecoder())}
}

// Update implements testing.ObjectTracker.
func (g generations) Update(
	gvr schema.GroupVersionResource, object runtime.Object, ns string, opts ...metav1.UpdateOptions,
) error {
	if err := g.keep(gvr, object, ns); err != nil {
		return err
	}
	return g.ObjectTracker.Update(gvr, object, ns, opts...)
}

// Patch implements testing.ObjectTracker. The object is the patched one.
func (g generations) Patch(gvr schema.GroupVersionResource, object runtime.Object, ns string, opts ...metav1.PatchOptions) error {
	if err := g.keep(gvr, object, ns); err != nil {
		return err
	}
	return g.ObjectTracker.Patch(gvr, object, ns, opts...)
}

func (g generations) keep(gvr schema.GroupVersionResource, object runtime.Object, ns string) error {
	after, specAfter := generationOf(object)
	if after == nil {
		return nil
	}
	stored, err := g.Get(gvr, ns, after.Name)
	if err != nil {
		return fmt.Errorf("get what is stored: %w", err)
	}
	before, specBefore := generationOf(stored)
	after.Generation = before.Generation
	if !equality.Semantic.DeepEqual(specBefore, specAfter) {
		after.Generation++
	}
	return nil
}

func generationOf(object runtime.Object) (*metav1.ObjectMeta, any) {
	switch object := object.(type) {
	case *oadpv1alpha1.NonAdminBackupStorageLocation:
		return &object.ObjectMeta, object.Spec
	case *oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest:
		return &object.ObjectMeta, object.Spec
	}
	return nil, nil
}
