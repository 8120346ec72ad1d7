package policy

import (
	"cmp"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/k8s/policy/check"
)

// Defaults of periods that the policy does not set.
const (
	DefaultGarbageCollectionPeriod = 24 * time.Hour
	DefaultBackupSyncPeriod        = 2 * time.Minute
)

// Policy is what an administrator allows: the schema of a DataProtectionApplication's spec.nonAdmin, and Holdfast's own
// settings. Its zero value enforces nothing. A Policy is shared and must not be changed.
type Policy struct {
	// EnforceBackupSpec holds values that every NonAdminBackup must have, in the fields that are set.
	EnforceBackupSpec *velerov1.BackupSpec `json:"enforceBackupSpec,omitempty"`
	// EnforceRestoreSpec holds values that every NonAdminRestore must have, in the fields that are set.
	EnforceRestoreSpec *velerov1.RestoreSpec `json:"enforceRestoreSpec,omitempty"`
	// EnforceBSLSpec holds values that every NonAdminBackupStorageLocation must have, in the fields that are set.
	EnforceBSLSpec *StorageLocationSpec `json:"enforceBSLSpec,omitempty"`
	// RequireApprovalForBSL requires approvals; the name in the DataProtectionApplication.
	RequireApprovalForBSL *bool `json:"requireApprovalForBSL,omitempty"`
	// RequireAdminApprovalForBSL is another name for the same.
	RequireAdminApprovalForBSL *bool `json:"requireAdminApprovalForBSL,omitempty"`
	// GarbageCollectionPeriod is the time between two collections; 0 is never.
	GarbageCollectionPeriod *metav1.Duration `json:"garbageCollectionPeriod,omitempty"`
	// BackupSyncPeriod is the time between two synchronizations of backups; 0 is never.
	BackupSyncPeriod *metav1.Duration `json:"backupSyncPeriod,omitempty"`

	Own `json:"-"`
}

// Own is Holdfast's own part of the policy: OADP's schema does not have it.
type Own struct {
	// RestoreFromTenantsLocations says what may be restored from a tenant's storage location.
	RestoreFromTenantsLocations RestoreFromTenantsLocations `json:"restoreFromTenantsLocations,omitempty"`
	// TenantsBuckets says how the buckets of tenants' storage locations are read.
	TenantsBuckets TenantsBuckets `json:"tenantsBuckets,omitempty"`
	// Plans limits what tenants may write in BackupPlans.
	Plans Plans `json:"plans,omitempty"`
	// DefaultPlans are given to namespaces.
	DefaultPlans []DefaultPlan `json:"defaultPlans,omitempty"`
	// Queue has Holdfast give turns before Velero.
	Queue Queue `json:"queue,omitempty"`
	// Quotas limit the backups of namespaces. The first that selects a namespace is its quota.
	Quotas []Quota `json:"quotas,omitempty"`
	// Drills says whether backups may be restored for a drill, and how.
	Drills Drills `json:"drills,omitempty"`
}

// DefaultRestoreClusterRole is the ClusterRole of RestoreFromTenantsLocations if the policy names none.
const DefaultRestoreClusterRole = "edit"

// RestoreFromTenantsLocations says what may be restored from a tenant's storage location, in which the tenant can write
// anything.
type RestoreFromTenantsLocations struct {
	// ClusterRole limits a restore into a namespace to what a holder of that role may create there. The ServiceAccount
	// holdfast-restores, by which the API server judges, must be bound to the same role.
	ClusterRole string `json:"clusterRole,omitempty"`
	// AllowInformerCache allows restores although Velero runs with its informer cache: then a single file in a bucket can block
	// it for ever, and all restores of the cluster with it.
	AllowInformerCache bool `json:"allowInformerCache,omitempty"`
}

// Role returns the name of the ClusterRole.
func (r RestoreFromTenantsLocations) Role() string {
	return cmp.Or(r.ClusterRole, DefaultRestoreClusterRole)
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

// RequireApproval reports whether a storage location needs an administrator's approval.
func (p Policy) RequireApproval() bool {
	return check.IsTrue(p.RequireApprovalForBSL) || check.IsTrue(p.RequireAdminApprovalForBSL)
}

// GarbageCollection returns the time between two collections; 0 is never.
func (p Policy) GarbageCollection() time.Duration {
	return check.PeriodOr(p.GarbageCollectionPeriod, DefaultGarbageCollectionPeriod)
}

// BackupSync returns the time between two synchronizations of backups; 0 is never.
func (p Policy) BackupSync() time.Duration {
	return check.PeriodOr(p.BackupSyncPeriod, DefaultBackupSyncPeriod)
}
