package backupspec

import (
	"context"
	"fmt"
	"slices"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy/check"
)

// backupLocation returns the name of the Velero BackupStorageLocation for the NonAdminBackupStorageLocation that a
// NonAdminBackup names, or "", the administrator's default, if it names none. The location must be available and must have been
// made for that NonAdminBackupStorageLocation; if not, the error is a *check.InvalidSpecError. Any other error means that this
// could not be checked now.
//
// The location that an administrator approved counts, not the NonAdminBackupStorageLocation's phase: while a change of it waits
// for approval, or was rejected, backups go on.
func backupLocation(
	ctx context.Context, reader client.Reader, oadpNamespace string, nab *oadpv1alpha1.NonAdminBackup,
) (string, error) {
	if nab.Spec.BackupSpec == nil || nab.Spec.BackupSpec.StorageLocation == "" {
		return "", nil
	}
	nabsl, err := namedLocation(ctx, reader, nab)
	if err != nil {
		return "", err
	}
	if !nabsl.DeletionTimestamp.IsZero() {
		return "", check.External("NonAdminBackupStorageLocation is being deleted and can not be used for the NonAdminBackup")
	}
	bsl, err := veleroLocation(ctx, reader, oadpNamespace, nabsl)
	if err != nil {
		return "", err
	}
	if bsl == nil {
		return "", whyNoLocation(nabsl)
	}
	if bsl.Status.Phase != velerov1.BackupStorageLocationPhaseAvailable {
		return "", check.External("VeleroBackupStorageLocation with NACUUID %s is not in available state "+
			"and can not be used for the NonAdminBackup", bsl.Name)
	}
	return bsl.Name, nil
}

// SpeaksOfLocation reports whether the message of a verdict on a NonAdminBackup is about the storage location, so that it may
// change with the location alone. It reads the beginning only: the rest may quote a tenant.
func SpeaksOfLocation(message string) bool {
	return slices.ContainsFunc([]string{
		"NonAdminBackupStorageLocation ", "VeleroBackupStorageLocation ", "unable to get VeleroBackupStorageLocation ",
	}, func(beginning string) bool { return strings.HasPrefix(message, beginning) })
}

// whyNoLocation says why there is no Velero BackupStorageLocation for a NonAdminBackupStorageLocation.
func whyNoLocation(nabsl *oadpv1alpha1.NonAdminBackupStorageLocation) error {
	if nabsl.Status.Phase != oadpv1alpha1.NonAdminPhaseCreated {
		const text = "NonAdminBackupStorageLocation is not in created state and can not be used for the NonAdminBackup"
		approval := meta.FindStatusCondition(nabsl.Status.Conditions, string(oadpv1alpha1.NonAdminConditionClusterAdminApproved))
		if approval != nil && approval.Status == metav1.ConditionFalse && approval.Message != "" {
			return check.External("%s: %s", text, approval.Message)
		}
		return check.External(text)
	}
	nacuuid := owner.Written(nabsl)
	if nacuuid == "" {
		return check.External("unable to get VeleroBackupStorageLocation UUID from NonAdminBackupStorageLocation Status")
	}
	return check.External("VeleroBackupStorageLocation with NACUUID %s not found in the OADP namespace", nacuuid)
}

// namedLocation reads the NonAdminBackupStorageLocation that a NonAdminBackup names.
func namedLocation(
	ctx context.Context, reader client.Reader, nab *oadpv1alpha1.NonAdminBackup,
) (*oadpv1alpha1.NonAdminBackupStorageLocation, error) {
	name := nab.Spec.BackupSpec.StorageLocation
	if problems := check.NameProblems(name); len(problems) > 0 {
		return nil, check.Invalid("NonAdminBackup spec.backupSpec.storageLocation is invalid: %s", strings.Join(problems, ", "))
	}
	nabsl := &oadpv1alpha1.NonAdminBackupStorageLocation{}
	err := reader.Get(ctx, types.NamespacedName{Namespace: nab.Namespace, Name: name}, nabsl)
	if apierrors.IsNotFound(err) {
		// Not the reader's own words: a cache and the API server use different ones, and the verdict must be the same.
		return nil, check.External("NonAdminBackupStorageLocation not found in the namespace: %s %q not found",
			oadpv1alpha1.Resource(oadpv1alpha1.ResourceNonAdminBackupStorageLocations), name)
	}
	if err != nil {
		return nil, fmt.Errorf("get NonAdminBackupStorageLocation %s/%s: %w", nab.Namespace, name, err)
	}
	return nabsl, nil
}

// veleroLocation reads the Velero BackupStorageLocation that was made for a NonAdminBackupStorageLocation; nil if there is
// none. The status that names it is in the tenant's namespace and may be forged, so it counts only if the BackupStorageLocation
// names the NonAdminBackupStorageLocation as its origin.
func veleroLocation(
	ctx context.Context, reader client.Reader, oadpNamespace string, nabsl *oadpv1alpha1.NonAdminBackupStorageLocation,
) (*velerov1.BackupStorageLocation, error) {
	nacuuid := owner.Claimed(nabsl)
	if nacuuid == "" {
		return nil, nil
	}
	bsl := &velerov1.BackupStorageLocation{}
	err := reader.Get(ctx, types.NamespacedName{Namespace: oadpNamespace, Name: nacuuid}, bsl)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get Velero BackupStorageLocation %s/%s: %w", oadpNamespace, nacuuid, err)
	}
	if !owner.Location.Called(bsl, nabsl.Namespace, nabsl.Name) {
		return nil, nil
	}
	return bsl, nil
}
