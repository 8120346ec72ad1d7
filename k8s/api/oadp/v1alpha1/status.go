package v1alpha1

// QueueInfo estimates when Velero will get to an object.
type QueueInfo struct {
	// estimatedQueuePosition is the position in Velero's queue over all tenants: 1 for the object that Velero processes now or next,
	// 0 for one that is finished.
	EstimatedQueuePosition int `json:"estimatedQueuePosition"`
}

// DataMoverDataUploads counts the DataUploads of a backup by their state.
type DataMoverDataUploads struct {
	// total is the number of DataUploads.
	// +optional
	Total int `json:"total,omitempty"`
	// new is the number of DataUploads not yet processed.
	// +optional
	New int `json:"new,omitempty"`
	// accepted is the number of DataUploads that a node has accepted.
	// +optional
	Accepted int `json:"accepted,omitempty"`
	// prepared is the number of DataUploads whose volume is ready to be read.
	// +optional
	Prepared int `json:"prepared,omitempty"`
	// inProgress is the number of DataUploads that are copying.
	// +optional
	InProgress int `json:"inProgress,omitempty"`
	// canceling is the number of DataUploads that are being cancelled.
	// +optional
	Canceling int `json:"canceling,omitempty"`
	// canceled is the number of DataUploads that were cancelled.
	// +optional
	Canceled int `json:"canceled,omitempty"`
	// failed is the number of DataUploads that failed.
	// +optional
	Failed int `json:"failed,omitempty"`
	// completed is the number of DataUploads that are done.
	// +optional
	Completed int `json:"completed,omitempty"`
}

// FileSystemPodVolumeBackups counts the PodVolumeBackups of a backup by their state.
type FileSystemPodVolumeBackups struct {
	// total is the number of PodVolumeBackups.
	// +optional
	Total int `json:"total,omitempty"`
	// new is the number of PodVolumeBackups not yet started.
	// +optional
	New int `json:"new,omitempty"`
	// inProgress is the number of PodVolumeBackups that are copying.
	// +optional
	InProgress int `json:"inProgress,omitempty"`
	// failed is the number of PodVolumeBackups that failed.
	// +optional
	Failed int `json:"failed,omitempty"`
	// completed is the number of PodVolumeBackups that are done.
	// +optional
	Completed int `json:"completed,omitempty"`
}

// DataMoverDataDownloads counts the DataDownloads of a restore by their state.
type DataMoverDataDownloads struct {
	// total is the number of DataDownloads.
	// +optional
	Total int `json:"total,omitempty"`
	// new is the number of DataDownloads not yet processed.
	// +optional
	New int `json:"new,omitempty"`
	// accepted is the number of DataDownloads that a node has accepted.
	// +optional
	Accepted int `json:"accepted,omitempty"`
	// prepared is the number of DataDownloads whose volume is ready to be written.
	// +optional
	Prepared int `json:"prepared,omitempty"`
	// inProgress is the number of DataDownloads that are copying.
	// +optional
	InProgress int `json:"inProgress,omitempty"`
	// canceling is the number of DataDownloads that are being cancelled.
	// +optional
	Canceling int `json:"canceling,omitempty"`
	// canceled is the number of DataDownloads that were cancelled.
	// +optional
	Canceled int `json:"canceled,omitempty"`
	// failed is the number of DataDownloads that failed.
	// +optional
	Failed int `json:"failed,omitempty"`
	// completed is the number of DataDownloads that are done.
	// +optional
	Completed int `json:"completed,omitempty"`
}

// FileSystemPodVolumeRestores counts the PodVolumeRestores of a restore by their state.
type FileSystemPodVolumeRestores struct {
	// total is the number of PodVolumeRestores.
	// +optional
	Total int `json:"total,omitempty"`
	// new is the number of PodVolumeRestores not yet started.
	// +optional
	New int `json:"new,omitempty"`
	// inProgress is the number of PodVolumeRestores that are copying.
	// +optional
	InProgress int `json:"inProgress,omitempty"`
	// failed is the number of PodVolumeRestores that failed.
	// +optional
	Failed int `json:"failed,omitempty"`
	// completed is the number of PodVolumeRestores that are done.
	// +optional
	Completed int `json:"completed,omitempty"`
}
