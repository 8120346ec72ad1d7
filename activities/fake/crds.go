package fake

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// prune leaves out of what the API server answers the fields that OADP's CRDs do not have, if the world has those.
func (w *World) prune(answer runtime.Object) {
	if !w.OADPsCRDs {
		return
	}
	switch answer := answer.(type) {
	case *oadpv1alpha1.NonAdminBackup:
		answer.Status.ObservedGeneration = 0
	case *oadpv1alpha1.NonAdminRestore:
		answer.Status.ObservedGeneration, answer.Status.Finalization = 0, nil
	case *oadpv1alpha1.NonAdminBackupStorageLocation:
		answer.Status.ObservedGeneration = 0
	case *oadpv1alpha1.NonAdminDownloadRequest:
		answer.Status.ObservedGeneration = 0
	default:
		if meta.IsListType(answer) {
			_ = meta.EachListItem(answer, func(item runtime.Object) error {
				w.prune(item)
				return nil
			})
		}
	}
}
