package k8s

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ClusterUID returns the UID of namespace kube-system, which identifies a Kubernetes cluster (OpenTelemetry's k8s.cluster.uid). A
// cluster that was made of another one's etcd has the same.
func ClusterUID(ctx context.Context, reader client.Reader) (string, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := reader.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, namespace); err != nil {
		return "", fmt.Errorf("get Namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return string(namespace.GetUID()), nil
}
