package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FoundationDBBackupStatus is what is known about a backup. An empty list of conditions means that all is as the spec says.
type FoundationDBBackupStatus struct {
	// observedGeneration is the generation of the spec that the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are what is not as the spec says; one is there only while it holds.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// backups are the backups in the store that were made for this object, the oldest first.
	// +optional
	// +listType=atomic
	Backups []BackupDetails `json:"backups,omitempty"`

	// expiry is what became of the last turn in the queue of expirations.
	// +optional
	Expiry *BackupExpiryStatus `json:"expiry,omitempty"`

	// reconciled repeats, for lists, that there is no condition for the present generation.
	// +optional
	Reconciled bool `json:"reconciled"`
}

// BackupExpiryStatus is what became of the last turn in the queue of expirations.
type BackupExpiryStatus struct {
	// lastTime is when that turn ended.
	LastTime metav1.Time `json:"lastTime"`
	// reason says in a word how it ended.
	Reason string `json:"reason"`
	// message says more.
	// +optional
	Message string `json:"message,omitempty"`
	// lastExpired is when data were last expired.
	// +optional
	LastExpired *metav1.Time `json:"lastExpired,omitempty"`
	// turn is when that turn began, in Unix seconds: a result that is told again is known by it.
	// +optional
	Turn int64 `json:"turn,omitempty"`
}

// Reasons of status.expiry.
const (
	// ExpiryExpired: data older than the policy were deleted, or there were none.
	ExpiryExpired = "Expired"
	// ExpiryUnsafe: FoundationDB refuses, because too little would remain restorable; tried again in the next turn.
	ExpiryUnsafe = "Unsafe"
	// ExpiryLastSnapshotKept: the backup is stopped, and what is left of it is the last that can be restored: it outlives its
	// retention.
	ExpiryLastSnapshotKept = "LastSnapshotKept"
	// ExpiryNothing: there is nothing to expire yet.
	ExpiryNothing = "NothingToExpire"
	// ExpiryWaiting: the container is in use, or the database does not answer.
	ExpiryWaiting = "Waiting"
	// ExpiryFailed: the pod failed, was lost or was cut at its limit.
	ExpiryFailed = "Failed"
	// ExpiryDeleted and ExpiryKept: the data of a deleted backup are gone, or stay because others use them.
	ExpiryDeleted = "Deleted"
	ExpiryKept    = "KeptForOthers"
)

// BackupDetails describes one backup in the object store.
type BackupDetails struct {
	// tag is the backup's name in the database.
	Tag string `json:"tag"`
	// url is where its data are. It holds no secret.
	URL string `json:"url"`
	// state is FoundationDB's name of the backup's state; NeverRan until it has been started.
	// +optional
	State string `json:"state,omitempty"`
	// oldestData is from where on it can be restored.
	// +optional
	OldestData *RestorePoint `json:"oldestData,omitempty"`
	// latestRestorable is up to where it can be restored.
	// +optional
	LatestRestorable *RestorePoint `json:"latestRestorable,omitempty"`
	// keyRanges are those with which it was started, each as "start end": FoundationDB does not tell them. "unknown" stands for
	// those of a backup that somebody else has started. +optional +listType=atomic
	KeyRanges []string `json:"keyRanges,omitempty"`
}

// RestorePoint is a moment of a database. FoundationDB estimates the time of a version: only versions compare exactly.
type RestorePoint struct {
	// version is the database's version at that moment.
	Version int64 `json:"version"`
	// timestamp is about when it was.
	// +optional
	Timestamp *metav1.Time `json:"timestamp,omitempty"`
}
