package k8s

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Get reads an object and reports whether it exists. kind is for the error's text.
func Get(ctx context.Context, reader client.Reader, kind, namespace, name string, into client.Object) (bool, error) {
	err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get %s %s/%s: %w", kind, namespace, name, err)
	}
	return true, nil
}

// NamespaceTerminating reports whether a namespace is being deleted, or is gone.
func NamespaceTerminating(ctx context.Context, reader client.Reader, name string) (bool, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := reader.Get(ctx, types.NamespacedName{Name: name}, namespace)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("get Namespace %s: %w", name, err)
	}
	return !namespace.DeletionTimestamp.IsZero(), nil
}
