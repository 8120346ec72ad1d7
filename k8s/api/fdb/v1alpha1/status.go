package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FoundationDBBackupStatus is the last observed state of a FoundationDBBackup.
type FoundationDBBackupStatus struct {
	// uid is the UID of the FoundationDBBackup that the status is of. A restore may bring the status of another one, which is
	// dropped.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// observedGeneration is the metadata.generation that the status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the latest observations of the backup. Ready is True if everything is as the spec says. IncorrectDeployment,
	// DeploymentRollingOut, IncorrectBackupState and MisconfiguredBackup are present, with status True, only while they hold.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// backups lists the backups in the object store that were written for this FoundationDBBackup, oldest first.
	// +optional
	// +listType=atomic
	Backups []BackupDetails `json:"backups,omitempty"`

	// expiry is the result of the last expiration or deletion of data.
	// +optional
	Expiry *BackupExpiryStatus `json:"expiry,omitempty"`

	// reconciled is true if nothing is not as the spec says and observedGeneration is the current one.
	// +optional
	Reconciled bool `json:"reconciled"`
}

// BackupExpiryStatus is the result of the last turn in the queue of expirations.
type BackupExpiryStatus struct {
	// lastTime is the time at which the turn ended.
	LastTime metav1.Time `json:"lastTime"`
	// reason is the result of the turn: Expired, Unsafe, LastSnapshotKept, NothingToExpire, Waiting, Failed, Deleted or
	// KeptForOthers.
	Reason ExpiryReason `json:"reason"`
	// message is a human-readable explanation of the result. At most 1024 bytes.
	// +optional
	Message string `json:"message,omitempty"`
	// lastExpired is the time at which data were last expired.
	// +optional
	LastExpired *metav1.Time `json:"lastExpired,omitempty"`
	// turn identifies the turn by the time at which it began, in seconds since the Unix epoch.
	// +optional
	Turn int64 `json:"turn,omitempty"`
}

// ExpiryReason is the result of a turn in the queue of expirations.
//
// +kubebuilder:validation:Enum=Expired;Unsafe;LastSnapshotKept;NothingToExpire;Waiting;Failed;Deleted;KeptForOthers
type ExpiryReason string

// Results of a turn. Untyped: payloads of workflows and Events hold the same words.
const (
	// ExpiryExpired: data older than the policy were deleted, or there were none.
	ExpiryExpired = "Expired"
	// ExpiryUnsafe: FoundationDB refuses, because too little would remain restorable; the next turn retries.
	ExpiryUnsafe = "Unsafe"
	// ExpiryLastSnapshotKept: the backup is stopped, and what is left of it is the last that can be restored. It is kept beyond its
	// retention.
	ExpiryLastSnapshotKept = "LastSnapshotKept"
	// ExpiryNothing: there is nothing to expire yet.
	ExpiryNothing = "NothingToExpire"
	// ExpiryWaiting: the container is in use, or the database does not answer.
	ExpiryWaiting = "Waiting"
	// ExpiryFailed: the pod failed, was lost or was stopped at its limit.
	ExpiryFailed = "Failed"
	// ExpiryDeleted and ExpiryKept: the data of a deleted backup are gone, or stay because others use them.
	ExpiryDeleted = "Deleted"
	ExpiryKept    = "KeptForOthers"
)

// BackupDetails describes one backup in the object store.
type BackupDetails struct {
	// tag is the FoundationDB backup tag, which names the backup within the database.
	Tag string `json:"tag"`
	// url is the URL of the backup, without a secret.
	URL string `json:"url"`
	// state is the state of the backup as FoundationDB reports it: NeverRan until it is started, then Submitted, Running (the first
	// snapshot), RunningDifferentially (restorable), Completed, Aborted, or another state of a newer FoundationDB.
	// +optional
	State string `json:"state,omitempty"`
	// oldestData is the oldest point that the backup can be restored to.
	// +optional
	OldestData *RestorePoint `json:"oldestData,omitempty"`
	// latestRestorable is the latest point that the backup can be restored to.
	// +optional
	LatestRestorable *RestorePoint `json:"latestRestorable,omitempty"`
	// keyRanges are the key ranges that the backup was started with, each as "start end", or "unknown" for a backup that was not
	// started by Holdfast. Empty for the whole key space.
	// +optional
	// +listType=atomic
	KeyRanges []string `json:"keyRanges,omitempty"`
}

// RestorePoint is a point in time of a database. Only its version is exact.
type RestorePoint struct {
	// version is the version of the database.
	Version int64 `json:"version"`
	// timestamp is FoundationDB's estimate of the time of version.
	// +optional
	Timestamp *metav1.Time `json:"timestamp,omitempty"`
}
