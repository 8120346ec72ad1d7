package watched

import (
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Concerns reports whether a change of an object concerns its workflow. finalizer is ours on such objects.
func Concerns(before, after client.Object, finalizer string) bool {
	return before.GetUID() != after.GetUID() ||
		before.GetGeneration() != after.GetGeneration() ||
		!before.GetDeletionTimestamp().Equal(after.GetDeletionTimestamp()) ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		(controllerutil.ContainsFinalizer(before, finalizer) && !controllerutil.ContainsFinalizer(after, finalizer))
}
