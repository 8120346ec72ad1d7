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
	namespace, err := namespaceOf(ctx, reader, name)
	return err == nil && (namespace == nil || !namespace.DeletionTimestamp.IsZero()), err
}

// NamespaceLabels returns the labels of a namespace; none if it is gone.
func NamespaceLabels(ctx context.Context, reader client.Reader, name string) (map[string]string, error) {
	namespace, err := namespaceOf(ctx, reader, name)
	if err != nil || namespace == nil {
		return nil, err
	}
	return namespace.Labels, nil
}

// namespaceOf reads the metadata of a namespace; nil if it is gone.
func namespaceOf(ctx context.Context, reader client.Reader, name string) (*metav1.PartialObjectMetadata, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := reader.Get(ctx, types.NamespacedName{Name: name}, namespace)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // not existing is no error
	}
	if err != nil {
		return nil, fmt.Errorf("get Namespace %s: %w", name, err)
	}
	return namespace, nil
}
