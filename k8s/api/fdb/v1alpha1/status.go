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

	// reconciled repeats, for lists, that there is no condition for the present generation.
	// +optional
	Reconciled bool `json:"reconciled"`
}

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
