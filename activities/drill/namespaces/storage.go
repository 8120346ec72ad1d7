package namespaces

import (
	"context"
	"fmt"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
)

const (
	// storageClassesAnnotation says which storage classes a claim in the namespace may have, with commas between them.
	// ValidatingAdmissionPolicy holdfast-drill-contents reads it.
	storageClassesAnnotation = "holdfast.dev/drill-storage-classes"
	// noProvisioner is what a class has whose volumes somebody makes by hand.
	noProvisioner = "kubernetes.io/no-provisioner"
)

// storageClasses are those that make a volume for a claim. A claim of another class, also of one that does not exist, would be
// bound to a volume that was there before, and use it up.
func (a *Activities) storageClasses(ctx context.Context) (names []string, err error) {
	var classes storagev1.StorageClassList
	if err := a.Client.List(ctx, &classes); err != nil {
		return nil, fmt.Errorf("list StorageClasses: %w", err)
	}
	for i := range classes.Items {
		if class := &classes.Items[i]; class.Provisioner != noProvisioner {
			names = append(names, class.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}
