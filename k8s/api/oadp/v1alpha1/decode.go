package v1alpha1

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	kjson "sigs.k8s.io/json"
)

// The API server accepts values that Go cannot decode: `ttl: banana` is a string, as the CRD requires, but no duration. One such
// object in one tenant's namespace would fail every list and watch of its kind, for all tenants. So an object that cannot be
// decoded as a whole is decoded field by field: an unreadable spec is marked as such and reported on its object, an unreadable
// copy of a Velero object is dropped.

// UnmarshalJSON implements json.Unmarshaler. A backupSpec that cannot be read leaves BackupSpec nil and says why in
// Unreadable.
func (s *NonAdminBackupSpec) UnmarshalJSON(data []byte) error {
	type plain NonAdminBackupSpec
	unreadable, err := decodeFields(data, (*plain)(s))
	s.Unreadable = whyUnreadable[velerov1.BackupSpec](unreadable["backupSpec"])
	return err
}

// UnmarshalJSON implements json.Unmarshaler. A restoreSpec that cannot be read leaves RestoreSpec nil and says why in
// Unreadable.
func (s *NonAdminRestoreSpec) UnmarshalJSON(data []byte) error {
	type plain NonAdminRestoreSpec
	unreadable, err := decodeFields(data, (*plain)(s))
	s.Unreadable = whyUnreadable[velerov1.RestoreSpec](unreadable["restoreSpec"])
	return err
}

// UnmarshalJSON implements json.Unmarshaler. A backupStorageLocationSpec that cannot be read leaves
// BackupStorageLocationSpec nil and says why in Unreadable.
func (s *NonAdminBackupStorageLocationSpec) UnmarshalJSON(data []byte) error {
	type plain NonAdminBackupStorageLocationSpec
	unreadable, err := decodeFields(data, (*plain)(s))
	s.Unreadable = whyUnreadable[velerov1.BackupStorageLocationSpec](unreadable["backupStorageLocationSpec"])
	return err
}

// UnmarshalJSON implements json.Unmarshaler. Fields that cannot be read are left empty.
func (s *NonAdminBackupStatus) UnmarshalJSON(data []byte) error {
	type plain NonAdminBackupStatus
	return decodeReadable(data, (*plain)(s))
}

// UnmarshalJSON implements json.Unmarshaler. Fields that cannot be read are left empty.
func (s *NonAdminRestoreStatus) UnmarshalJSON(data []byte) error {
	type plain NonAdminRestoreStatus
	return decodeReadable(data, (*plain)(s))
}

// UnmarshalJSON implements json.Unmarshaler. Fields that cannot be read are left empty.
func (s *NonAdminBackupStorageLocationStatus) UnmarshalJSON(data []byte) error {
	type plain NonAdminBackupStorageLocationStatus
	return decodeReadable(data, (*plain)(s))
}

// UnmarshalJSON implements json.Unmarshaler. Fields that cannot be read are left empty.
func (s *NonAdminDownloadRequestStatus) UnmarshalJSON(data []byte) error {
	type plain NonAdminDownloadRequestStatus
	return decodeReadable(data, (*plain)(s))
}

// UnmarshalJSON implements json.Unmarshaler. Fields that cannot be read are left empty.
func (v *VeleroBackup) UnmarshalJSON(data []byte) error {
	type plain VeleroBackup
	return decodeReadable(data, (*plain)(v))
}

// UnmarshalJSON implements json.Unmarshaler. Fields that cannot be read are left empty.
func (v *VeleroDeleteBackupRequest) UnmarshalJSON(data []byte) error {
	type plain VeleroDeleteBackupRequest
	return decodeReadable(data, (*plain)(v))
}

// UnmarshalJSON implements json.Unmarshaler. Fields that cannot be read are left empty.
func (v *VeleroRestore) UnmarshalJSON(data []byte) error {
	type plain VeleroRestore
	return decodeReadable(data, (*plain)(v))
}

// UnmarshalJSON implements json.Unmarshaler. Fields that cannot be read are left empty.
func (v *VeleroBackupStorageLocation) UnmarshalJSON(data []byte) error {
	type plain VeleroBackupStorageLocation
	return decodeReadable(data, (*plain)(v))
}

// UnmarshalJSON implements json.Unmarshaler. Fields that cannot be read are left empty.
func (v *VeleroDownloadRequest) UnmarshalJSON(data []byte) error {
	type plain VeleroDownloadRequest
	return decodeReadable(data, (*plain)(v))
}

// decodeReadable decodes an object's fields, and leaves those empty that cannot be read.
func decodeReadable[T any](data []byte, into *T) error {
	_, err := decodeFields(data, into)
	return err
}

// decodeFields replaces into by the object in data. It returns the fields that could not be decoded and were left empty; an error
// only if data is no object.
func decodeFields[T any](data []byte, into *T) (unreadable map[string]json.RawMessage, err error) {
	var whole T
	if kjson.UnmarshalCaseSensitivePreserveInts(data, &whole) == nil {
		*into = whole
		return nil, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("decode fields: %w", err)
	}
	var zero T
	*into = zero
	unreadable = map[string]json.RawMessage{}
	for name, value := range fields {
		if decodeField(name, value, new(T)) != nil { // into a copy: a failure leaves its target half filled
			unreadable[name] = value
		} else if err := decodeField(name, value, into); err != nil {
			return nil, err
		}
	}
	return unreadable, nil
}

func decodeField(name string, value json.RawMessage, into any) error {
	object, err := json.Marshal(map[string]json.RawMessage{name: value})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	err = kjson.UnmarshalCaseSensitivePreserveInts(object, into)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%s must be of type %s, not %s", wrong.Field, wrong.Type, wrong.Value)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// whyUnreadable says which field of a T could not be decoded, and why; empty if there is no data.
func whyUnreadable[T any](data json.RawMessage) string {
	if data == nil {
		return ""
	}
	var spare T
	unreadable, err := decodeFields(data, &spare)
	if err != nil {
		return err.Error()
	}
	names := make([]string, 0, len(unreadable))
	for name := range unreadable {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := decodeField(name, unreadable[name], &spare); err != nil {
			return err.Error()
		}
	}
	return "unknown reason"
}
