package trim

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// Limits of what is kept, as its size in memory.
const (
	// keptSpecBytes bounds a spec that is kept to be judged.
	keptSpecBytes = 8 << 10
	// keptLocationBytes bounds a storage location, which may hold certificates: there are few.
	keptLocationBytes = 32 << 10
	// keptMapBytes bounds labels that nothing reads.
	keptMapBytes = 4 << 10
	keptText     = 4 << 10
	keptName     = 253
	// keptEntries bounds a list of our own, because a status may be forged.
	keptEntries = 32
)

// Object is a cache's transform: it returns the parts of an object that the watcher uses. Objects of other kinds only lose
// their managed fields.
func Object(object any) (any, error) {
	switch object := object.(type) {
	case *oadpv1alpha1.NonAdminBackup:
		return nonAdminBackup(object), nil
	case *oadpv1alpha1.NonAdminRestore:
		return nonAdminRestore(object), nil
	case *oadpv1alpha1.NonAdminDownloadRequest:
		return nonAdminDownload(object), nil
	case *oadpv1alpha1.NonAdminBackupStorageLocation:
		return nonAdminLocation(object), nil
	case *oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest:
		return approvalRequest(object), nil
	case *velerov1.Backup:
		return veleroBackup(object), nil
	case *velerov1.Restore:
		return veleroRestore(object), nil
	case *velerov1.DeleteBackupRequest:
		return deleteRequest(object), nil
	case *velerov1.DownloadRequest:
		return downloadRequest(object), nil
	case *velerov1.BackupStorageLocation:
		return veleroLocation(object), nil
	case *holdfastv1alpha1.BackupPlan:
		return backupPlan(object), nil
	case *fdbv1alpha1.FoundationDBBackup:
		return fdbBackup(object), nil
	case *fdbv1alpha1.FoundationDBRestore:
		return fdbRestore(object), nil
	case *foundationdbv1beta2.FoundationDBCluster:
		return fdbCluster(object), nil
	case *corev1.Pod:
		return pod(object), nil
	case *appsv1.Deployment:
		return deployment(object), nil
	case *metav1.PartialObjectMetadata:
		return partial(object), nil
	}
	if accessor, err := meta.Accessor(object); err == nil { // not a tombstone
		metadata(accessor)
	}
	return object, nil
}

// jsonSize is the size by which a spec that is not kept is judged.
func jsonSize(value any) int {
	data, err := json.Marshal(value)
	if err != nil {
		return math.MaxInt32
	}
	return len(data)
}

func text(value string) string { return clip(value, keptText) }

// clip returns the beginning of a text in memory of its own.
func clip(value string, size int) string {
	if len(value) <= size {
		return value
	}
	return strings.Clone(value[:size])
}

// name drops a value that is too long for the name of an object.
func name(value string) string {
	if len(value) > keptName {
		return ""
	}
	return value
}

// conditions keeps those of the types that are read.
func conditions(all []metav1.Condition, types ...oadpv1alpha1.NonAdminCondition) []metav1.Condition {
	var kept []metav1.Condition
	for _, kind := range types {
		if found := meta.FindStatusCondition(all, string(kind)); found != nil {
			kept = append(kept, condition(*found))
		}
	}
	return kept
}

func condition(of metav1.Condition) metav1.Condition {
	of.Type, of.Reason, of.Message = name(of.Type), name(of.Reason), text(of.Message)
	return of
}

// last copies the last entries of a list.
func last[T any](entries []T) []T { return slices.Clone(entries[max(0, len(entries)-keptEntries):]) }
