package policy

import velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

// BackupSpecFits reports whether a spec is small enough for a NonAdminBackup, whose status repeats it.
func BackupSpecFits(spec *velerov1.BackupSpec) bool { return jsonSize(spec) <= maxSpecBytes }
