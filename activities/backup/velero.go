package backup

import (
	"fmt"
	"strconv"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
)

// NewVeleroBackup builds the Velero Backup for a NonAdminBackup. The name is deterministic: a second creation ends in
// AlreadyExists.
func NewVeleroBackup(nab *oadpv1alpha1.NonAdminBackup, name, oadpNamespace string, spec velerov1.BackupSpec) *velerov1.Backup {
	return &velerov1.Backup{ObjectMeta: originMeta(nab, name, name, oadpNamespace), Spec: spec}
}

// NewDeleteRequest builds the DeleteBackupRequest number attempt (from 1) for the Velero Backup of a NonAdminBackup. Velero
// never processes a failed request again, so the next attempt needs the next number.
func NewDeleteRequest(nab *oadpv1alpha1.NonAdminBackup, backup *velerov1.Backup, attempt int) *velerov1.DeleteBackupRequest {
	meta := originMeta(nab, fmt.Sprintf("%s-%d", backup.Name, attempt), backup.Name, backup.Namespace)
	meta.Labels[velerov1.BackupNameLabel] = backup.Name
	meta.Labels[velerov1.BackupUIDLabel] = string(backup.UID)
	return &velerov1.DeleteBackupRequest{
		ObjectMeta: meta,
		Spec:       velerov1.DeleteBackupRequestSpec{BackupName: backup.Name},
	}
}

// NewDownloadRequest builds the request by which Velero signs a URL for a file of the Velero Backup of a NonAdminBackup. The
// name is deterministic, so that a request left by a killed process is found again.
func NewDownloadRequest(
	nab *oadpv1alpha1.NonAdminBackup, backup *velerov1.Backup, file velerov1.DownloadTargetKind,
) *velerov1.DownloadRequest {
	name := fmt.Sprintf("%s-%s", backup.Name, strings.ToLower(string(file)))
	return &velerov1.DownloadRequest{
		ObjectMeta: originMeta(nab, name, backup.Name, backup.Namespace),
		Spec:       velerov1.DownloadRequestSpec{Target: velerov1.DownloadTarget{Kind: file, Name: backup.Name}},
	}
}

// requestAttempt is the number in the name of a request that NewDeleteRequest built, or 0.
func requestAttempt(backupName, requestName string) int {
	number, found := strings.CutPrefix(requestName, backupName+"-")
	if !found {
		return 0
	}
	attempt, err := strconv.Atoi(number)
	if err != nil || attempt < 1 {
		return 0
	}
	return attempt
}

// Undeletable reports whether Velero has failed to delete a backup: it is asked again, a few seconds later at first.
func Undeletable(nab *oadpv1alpha1.NonAdminBackup) bool {
	request, made := nab.Status.VeleroDeleteBackupRequest, nab.Status.VeleroBackup
	return request != nil && made != nil && requestAttempt(made.Name, request.Name) > 1
}

func originMeta(nab *oadpv1alpha1.NonAdminBackup, name, nacuuid, namespace string) metav1.ObjectMeta {
	return owner.Backup.Meta(nab, nacuuid, namespace, name)
}
