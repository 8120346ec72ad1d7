package k8s

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// JustRestored reports whether Velero has restored an object for which nothing was recorded yet: recorded, the UID in its status,
// is another one, or none. Its status, and what it requests, are then of the object in the backup. A UID in the status that is
// not the object's says so even without Velero's label.
func JustRestored(object metav1.Object, recorded types.UID) bool {
	_, restored := object.GetLabels()[velerov1.RestoreNameLabel]
	return recorded != object.GetUID() && (restored || recorded != "")
}
