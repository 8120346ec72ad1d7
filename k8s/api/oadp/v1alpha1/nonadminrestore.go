package v1alpha1

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NonAdminRestore requests that a NonAdminBackup of its namespace be restored.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=nonadminrestores,shortName=nar,categories=holdfast
// +kubebuilder:printcolumn:name="Request-Phase",type="string",JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Velero-Phase",type="string",JSONPath=".status.veleroRestore.status.phase"
// +kubebuilder:printcolumn:name="Finalization",type="string",JSONPath=".status.finalization.phase"
// +kubebuilder:printcolumn:name="Queue-Position",type="integer",JSONPath=".status.queueInfo.estimatedQueuePosition"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Complete",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Complete')].status"
// +kubebuilder:printcolumn:name="Reason",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Complete')].reason"
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
type NonAdminRestore struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the NonAdminRestore.
	// +optional
	Spec NonAdminRestoreSpec `json:"spec,omitempty"`
	// status is the last observed state of the NonAdminRestore. Read-only.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status NonAdminRestoreStatus `json:"status,omitempty"`
}

// NonAdminRestoreSpec is what a tenant wants restored.
type NonAdminRestoreSpec struct {
	// restoreSpec is the specification of the Velero Restore. Its backupName is the name of a NonAdminBackup.
	// +required
	RestoreSpec *velerov1.RestoreSpec `json:"restoreSpec"`

	// Unreadable says why restoreSpec could not be decoded and is nil, although the API server holds one. It is never
	// written.
	Unreadable string `json:"-"`
}

// NonAdminRestoreStatus is what is known about a restore.
type NonAdminRestoreStatus struct {
	// observedGeneration is the generation of the spec that the conditions are about. It is -1 until the object is observed, and
	// absent where the CRD of another installation drops it; each condition has its own, too.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is the phase of the NonAdminRestore: New, BackingOff (not accepted), Created or Deleting.
	// +optional
	Phase NonAdminPhase `json:"phase,omitempty"`

	// conditions are the latest observations of the NonAdminRestore, each with its reason.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// queueInfo is the position of the restore in Velero's queue.
	// +optional
	QueueInfo *QueueInfo `json:"queueInfo,omitempty"`

	// veleroRestore is the Velero Restore that was created for the NonAdminRestore.
	// +optional
	VeleroRestore *VeleroRestore `json:"veleroRestore,omitempty"`

	// dataMoverDataDownloads counts the volumes that the data mover downloads.
	// +optional
	DataMoverDataDownloads *DataMoverDataDownloads `json:"dataMoverDataDownloads,omitempty"`

	// fileSystemPodVolumeRestores counts the volumes whose file system is restored.
	// +optional
	FileSystemPodVolumeRestores *FileSystemPodVolumeRestores `json:"fileSystemPodVolumeRestores,omitempty"`

	// finalization is the work that follows once Velero has ended the restore. The restore is over when finalization is.
	// +optional
	Finalization *RestoreFinalization `json:"finalization,omitempty"`
}

// FinalizationPhase is how far the finalization of a restore, or one of its tasks, has come.
type FinalizationPhase string

// Phases of a finalization and of its tasks. The first two are a task's alone, the next two a finalization's.
const (
	// FinalizationPhaseNew: the task's turn has not come.
	FinalizationPhaseNew FinalizationPhase = "New"
	// FinalizationPhaseInProgress: the task is at work, or waits for something to become ready.
	FinalizationPhaseInProgress FinalizationPhase = "InProgress"
	// FinalizationPhaseFinalizing: the tasks are at work, and nothing has failed so far.
	FinalizationPhaseFinalizing FinalizationPhase = "Finalizing"
	// FinalizationPhaseFinalizingPartiallyFailed: the tasks are at work; Velero, or a task, had errors.
	FinalizationPhaseFinalizingPartiallyFailed FinalizationPhase = "FinalizingPartiallyFailed"
	// FinalizationPhaseCompleted: over, without errors.
	FinalizationPhaseCompleted FinalizationPhase = "Completed"
	// FinalizationPhasePartiallyFailed: over, with errors; a finalization's may be Velero's.
	FinalizationPhasePartiallyFailed FinalizationPhase = "PartiallyFailed"
)

// Final reports whether the phase is one that does not change any more.
func (p FinalizationPhase) Final() bool {
	return p == FinalizationPhaseCompleted || p == FinalizationPhasePartiallyFailed
}

// RestoreFinalization is the work that follows when Velero has ended a restore.
type RestoreFinalization struct {
	// phase is Finalizing or FinalizingPartiallyFailed, and in the end Completed or PartiallyFailed.
	// +optional
	Phase FinalizationPhase `json:"phase,omitempty"`

	// startTimestamp is the time at which it began.
	// +optional
	StartTimestamp *metav1.Time `json:"startTimestamp,omitempty"`

	// completionTimestamp is the time at which it ended.
	// +optional
	CompletionTimestamp *metav1.Time `json:"completionTimestamp,omitempty"`

	// warnings is the number of all warnings of its tasks.
	// +optional
	Warnings int `json:"warnings,omitempty"`

	// errors is the number of all errors of its tasks.
	// +optional
	Errors int `json:"errors,omitempty"`

	// tasks lists the tasks of the finalization, in the order in which they run.
	// +optional
	Tasks []FinalizationTask `json:"tasks,omitempty"`

	// veleroErrors are the first errors that Velero itself had with objects of the namespace. All are in the restore's results.
	// +optional
	VeleroErrors []string `json:"veleroErrors,omitempty"`
}

// FinalizationTask is one part of a restore's finalization.
type FinalizationTask struct {
	// name is the name of the task.
	// +optional
	Name string `json:"name,omitempty"`

	// phase is New, InProgress, Completed or PartiallyFailed.
	// +optional
	Phase FinalizationPhase `json:"phase,omitempty"`

	// startTimestamp is the time at which it began.
	// +optional
	StartTimestamp *metav1.Time `json:"startTimestamp,omitempty"`

	// completionTimestamp is the time at which it ended.
	// +optional
	CompletionTimestamp *metav1.Time `json:"completionTimestamp,omitempty"`

	// warnings are what the tenant should check. Of many only the first are here; all are in the restore's results.
	// +optional
	Warnings []string `json:"warnings,omitempty"`

	// errors are what could not be done. Of many only the first are here; all are in the restore's results.
	// +optional
	Errors []string `json:"errors,omitempty"`
}

// VeleroRestore names a Velero Restore and mirrors its status.
type VeleroRestore struct {
	// status is a copy of the Velero Restore's status.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Status *velerov1.RestoreStatus `json:"status,omitempty"`

	// nacuuid is the value of the Velero Restore's label openshift.io/oadp-nar-origin-nacuuid.
	// +optional
	NACUUID string `json:"nacuuid,omitempty"`

	// name is the Velero Restore's name.
	// +optional
	Name string `json:"name,omitempty"`

	// namespace is the Velero Restore's namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// NonAdminRestoreList is a list of NonAdminRestores.
//
// +kubebuilder:object:root=true
type NonAdminRestoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NonAdminRestore `json:"items"`
}
