package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Periods that hold where the policy names none.
const (
	DefaultGarbageCollectionPeriod = 24 * time.Hour
	DefaultBackupSyncPeriod        = 2 * time.Minute
)

// Policy is what an administrator allows: the schema of a DataProtectionApplication's spec.nonAdmin. Its zero value
// enforces nothing. A Policy is shared and must not be changed.
type Policy struct {
	// EnforceBackupSpec holds values that every NonAdminBackup must have, in the fields that are set.
	EnforceBackupSpec *velerov1.BackupSpec `json:"enforceBackupSpec,omitempty"`
	// EnforceRestoreSpec holds values that every NonAdminRestore must have, in the fields that are set.
	EnforceRestoreSpec *velerov1.RestoreSpec `json:"enforceRestoreSpec,omitempty"`
	// EnforceBSLSpec holds values that every NonAdminBackupStorageLocation must have, in the fields that are set.
	EnforceBSLSpec *StorageLocationSpec `json:"enforceBSLSpec,omitempty"`
	// RequireApprovalForBSL is the switch for approvals as the DataProtectionApplication has it.
	RequireApprovalForBSL *bool `json:"requireApprovalForBSL,omitempty"`
	// RequireAdminApprovalForBSL is another name of the same switch.
	RequireAdminApprovalForBSL *bool `json:"requireAdminApprovalForBSL,omitempty"`
	// GarbageCollectionPeriod is the time between two searches for leftovers; 0 is never.
	GarbageCollectionPeriod *metav1.Duration `json:"garbageCollectionPeriod,omitempty"`
	// BackupSyncPeriod is the time between two searches for backups to offer to their tenants; 0 is never.
	BackupSyncPeriod *metav1.Duration `json:"backupSyncPeriod,omitempty"`
}

// StorageLocationSpec is the part of a BackupStorageLocation's spec that can be enforced.
type StorageLocationSpec struct {
	Provider            string                                   `json:"provider,omitempty"`
	Config              map[string]string                        `json:"config,omitempty"`
	Credential          *corev1.SecretKeySelector                `json:"credential,omitempty"`
	ObjectStorage       *ObjectStorage                           `json:"objectStorage,omitempty"`
	AccessMode          velerov1.BackupStorageLocationAccessMode `json:"accessMode,omitempty"`
	BackupSyncPeriod    *metav1.Duration                         `json:"backupSyncPeriod,omitempty"`
	ValidationFrequency *metav1.Duration                         `json:"validationFrequency,omitempty"`
}

// ObjectStorage is the part of an object store's settings that can be enforced, all of it together.
type ObjectStorage struct {
	Bucket string `json:"bucket,omitempty"`
	Prefix string `json:"prefix,omitempty"`
	CACert []byte `json:"caCert,omitempty"`
}

// RequireApproval tells whether a storage location needs an administrator's approval.
func (p Policy) RequireApproval() bool {
	return isTrue(p.RequireApprovalForBSL) || isTrue(p.RequireAdminApprovalForBSL)
}

// GarbageCollection returns the time between two searches for leftovers; 0 is never.
func (p Policy) GarbageCollection() time.Duration {
	return periodOr(p.GarbageCollectionPeriod, DefaultGarbageCollectionPeriod)
}

// BackupSync returns the time between two searches for backups to offer to their tenants; 0 is never.
func (p Policy) BackupSync() time.Duration {
	return periodOr(p.BackupSyncPeriod, DefaultBackupSyncPeriod)
}

// Revision identifies what the policy says: two policies that say the same have the same revision, wherever and whenever
// they were read.
func (p Policy) Revision() string {
	content, _ := json.Marshal(p) // cannot fail: there is no function, channel or cycle in a Policy
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

func isTrue(b *bool) bool { return b != nil && *b }

func periodOr(period *metav1.Duration, fallback time.Duration) time.Duration {
	if period == nil {
		return fallback
	}
	return period.Duration
}
