package velero

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/shorten"
)

// NewBackup builds the Velero Backup for a NonAdminBackup. The name is deterministic: a second creation ends in AlreadyExists.
func NewBackup(nab *oadpv1alpha1.NonAdminBackup, name, oadpNamespace string, spec velerov1.BackupSpec) *velerov1.Backup {
	return &velerov1.Backup{ObjectMeta: owner.Backup.Meta(nab, name, oadpNamespace, name), Spec: spec}
}

// NewRestore builds the Velero Restore for a NonAdminRestore in the same way.
func NewRestore(nar *oadpv1alpha1.NonAdminRestore, name, oadpNamespace string, spec velerov1.RestoreSpec) *velerov1.Restore {
	return &velerov1.Restore{ObjectMeta: owner.Restore.Meta(nar, name, oadpNamespace, name), Spec: spec}
}

// NewDeleteRequest builds the DeleteBackupRequest number attempt (from 1) for the Velero Backup of a NonAdminBackup. Velero
// never processes a failed request again, so the next attempt needs the next number.
func NewDeleteRequest(nab *oadpv1alpha1.NonAdminBackup, made *velerov1.Backup, attempt int) *velerov1.DeleteBackupRequest {
	meta := owner.Backup.Meta(nab, made.Name, made.Namespace, fmt.Sprintf("%s-%d", made.Name, attempt))
	meta.Labels[velerov1.BackupNameLabel] = made.Name
	meta.Labels[velerov1.BackupUIDLabel] = string(made.UID)
	return &velerov1.DeleteBackupRequest{
		ObjectMeta: meta,
		Spec:       velerov1.DeleteBackupRequestSpec{BackupName: made.Name},
	}
}

// RequestAttempt is the number in the name of a request that NewDeleteRequest built, or 0.
func RequestAttempt(backupName, requestName string) int {
	number, found := strings.CutPrefix(requestName, backupName+"-")
	attempt, err := strconv.Atoi(number)
	if !found || err != nil || attempt < 1 {
		return 0
	}
	return attempt
}

// Undeletable reports whether Velero has failed to delete a backup: it is asked again, a few seconds later at first.
func Undeletable(nab *oadpv1alpha1.NonAdminBackup) bool {
	request, made := nab.Status.VeleroDeleteBackupRequest, nab.Status.VeleroBackup
	return request != nil && made != nil && RequestAttempt(made.Name, request.Name) > 1
}

// NewestDeleteRequest is our request with the highest number, or nil. Requests that an administrator made by hand do not count:
// they end with the Backup gone.
func NewestDeleteRequest(
	requests []velerov1.DeleteBackupRequest, nab *oadpv1alpha1.NonAdminBackup, backupName string,
) (newest *velerov1.DeleteBackupRequest) {
	highest := 0
	for i := range requests {
		attempt := RequestAttempt(backupName, requests[i].Name)
		if attempt > highest && owner.Backup.Names(&requests[i], nab.Namespace, nab.Name) {
			newest, highest = &requests[i], attempt
		}
	}
	return newest
}

// abandonedAfter is the age at which a DeleteBackupRequest that Velero started and has not answered counts as failed: after a
// restart Velero skips requests in progress for ever.
const abandonedAfter = 10 * time.Minute

// DeletionFailed reports whether a request that still exists has failed. A phase that is not known here is of a newer Velero, and
// no answer.
func DeletionFailed(request *velerov1.DeleteBackupRequest, now time.Time) bool {
	switch request.Status.Phase {
	case velerov1.DeleteBackupRequestPhaseProcessed:
		return true
	case "", velerov1.DeleteBackupRequestPhaseNew:
		return false
	}
	return now.Sub(request.CreationTimestamp.Time) > abandonedAfter
}

// NewDownloadRequest builds the request by which Velero signs a URL for a file of the Velero Backup or Restore that was made for
// a tenant's object. The name is deterministic, so that a request left by a killed process is found again.
func NewDownloadRequest(of, made client.Object, file velerov1.DownloadTargetKind) *velerov1.DownloadRequest {
	origin := owner.Backup
	if _, is := made.(*velerov1.Restore); is {
		origin = owner.Restore
	}
	name := fmt.Sprintf("%s-%s", made.GetName(), strings.ToLower(string(file)))
	return &velerov1.DownloadRequest{
		ObjectMeta: origin.Meta(of, made.GetName(), made.GetNamespace(), name),
		Spec:       velerov1.DownloadRequestSpec{Target: velerov1.DownloadTarget{Kind: file, Name: made.GetName()}},
	}
}

// DownloadRequestFailed is a phase that Velero is to have after 1.18: status.message says why there is no URL (velero#10232).
const DownloadRequestFailed velerov1.DownloadRequestPhase = "Failed"

// MaxErrorBytes bounds Velero's messages in a workflow's history.
const MaxErrorBytes = 500

// WhyNotSigned is what Velero says about a DownloadRequest in phase Failed. The types of Velero 1.18 have no field for it.
func WhyNotSigned(ctx context.Context, reader client.Reader, request *velerov1.DownloadRequest) (string, error) {
	answered := &unstructured.Unstructured{}
	answered.SetGroupVersionKind(velerov1.SchemeGroupVersion.WithKind("DownloadRequest"))
	_, err := k8s.Get(ctx, reader, "DownloadRequest", request.Namespace, request.Name, answered)
	why, _, _ := unstructured.NestedString(answered.Object, "status", "message")
	return check.Concealed(shorten.Text(cmp.Or(why, "it gives no reason"), MaxErrorBytes)), err
}
