package jobs

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// Entry returns the entry that an object needs in the queue, by its spec and status; false if it needs none. A deletion needs
// none before the backup is stopped: its workflow requests the turn later.
func Entry(object *fdbv1alpha1.FoundationDBBackup) (contract.FDBQueueEntry, bool) {
	entry := contract.FDBQueueEntry{Ref: contract.ObjectRef{
		Namespace: object.Namespace, Name: object.Name, UID: string(object.UID),
	}}
	switch {
	case object.DeletionTimestamp.IsZero():
		if object.Spec.Expiry.MaxRetention == "" {
			return entry, false
		}
		entry.Job = contract.FDBJobExpire
	case controllerutil.ContainsFinalizer(object, fdbv1alpha1.FinalizerDelete) &&
		!controllerutil.ContainsFinalizer(object, fdbv1alpha1.FinalizerStop):
		entry.Job = contract.FDBJobDelete
	default:
		return entry, false
	}
	if last := object.Status.Expiry; last != nil {
		entry.Last = last.Turn
	}
	return entry, true
}

// TurnOf returns when the turn of a pod began, in Unix seconds.
func TurnOf(pod *corev1.Pod) (int64, bool) {
	turn, err := strconv.ParseInt(pod.Labels[fdbv1alpha1.LabelTurn], 10, 64)
	return turn, err == nil && turn > 0
}

const (
	// maxUID is longer than any UID of Kubernetes: the UID becomes part of a workflow's ID.
	maxUID = 64
	// maxAhead is how far clocks may differ, in seconds.
	maxAhead = 5 * 60
)

// Turn returns the turn that a pod belongs to, as of now in Unix seconds; false if it belongs to none. Everybody who may create
// pods can forge what is read here: the caller checks that the owner exists.
func Turn(pod *corev1.Pod, now int64) (contract.FDBTurn, bool) {
	owner := metav1.GetControllerOf(pod)
	began, known := TurnOf(pod)
	label := pod.Labels[fdbv1alpha1.LabelExpiry]
	job := contract.FDBJob(pod.Labels[fdbv1alpha1.LabelJob])
	if !known || began > now+maxAhead || !owns(owner) || label != owner.Name ||
		(job != contract.FDBJobExpire && job != contract.FDBJobDelete) {
		return contract.FDBTurn{}, false
	}
	return contract.FDBTurn{
		Ref: contract.ObjectRef{Namespace: pod.Namespace, Name: owner.Name, UID: string(owner.UID)},
		Job: job, Turn: began, Closing: !pod.DeletionTimestamp.IsZero(),
	}, true
}

// owns reports whether an owner reference may be that of a FoundationDBBackup.
func owns(owner *metav1.OwnerReference) bool {
	if owner == nil || owner.Kind != fdbv1alpha1.KindFoundationDBBackup || owner.UID == "" || len(owner.UID) > maxUID {
		return false
	}
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && version.Group == fdbv1alpha1.GroupVersion.Group
}
