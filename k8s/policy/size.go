package policy

import velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

// BackupSpecFits reports whether a spec is small enough for a NonAdminBackup, whose status repeats it.
func BackupSpecFits(spec *velerov1.BackupSpec) bool { return jsonSize(spec) <= maxSpecBytes }

// CheckBackupSize judges a NonAdminBackup by the size of its spec alone, see ValidateBackup.
func CheckBackupSize(size int) error {
	if size > maxSpecBytes {
		return invalid("NonAdminBackup spec.backupSpec is too large: %d bytes of JSON, %d are allowed", size, maxSpecBytes)
	}
	return nil
}

// CheckRestoreSize judges a NonAdminRestore by the size of its spec alone, see ValidateRestore.
func CheckRestoreSize(size int) error {
	if size > maxSpecBytes {
		return invalid("NonAdminRestore spec.restoreSpec is too large: %d bytes of JSON, %d are allowed", size, maxSpecBytes)
	}
	return nil
}
