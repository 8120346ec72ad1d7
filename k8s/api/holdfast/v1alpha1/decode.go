package v1alpha1

import (
	"encoding/json"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// UnmarshalJSON implements json.Unmarshaler. A backupSpec that cannot be read leaves BackupSpec nil and says why in Unreadable:
// one such object must not fail the lists and watches of all others.
func (s *BackupTemplateSpec) UnmarshalJSON(data []byte) error {
	var spec oadpv1alpha1.NonAdminBackupSpec
	err := json.Unmarshal(data, &spec)
	s.BackupSpec, s.Unreadable = spec.BackupSpec, spec.Unreadable
	return err
}
