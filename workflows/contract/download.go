package contract

// KindDownload serves one NonAdminDownloadRequest. Input: ObjectInput, no result.
var KindDownload = Kind{
	Workflow: "NonAdminDownloadRequest", ID: "nadr", Kubernetes: "NonAdminDownloadRequest", Summary: "Download request",
}

type downloadActivity = Activity[ObjectStep, DownloadView]

// Activities of the NonAdminDownloadRequest workflow. Each takes an ObjectStep, returns the DownloadView after its effect,
// and may be repeated at any time.
var (
	RefreshDownload = downloadActivity{"refresh-download", "Read the request and publish Velero's answer"}
	RequestDownload = downloadActivity{"request-velero-download", "Check whose the file is and request a URL from Velero"}
	RemoveDownload  = downloadActivity{"remove-download", "Delete what is over"}
)

// DownloadView is what decides the next step for a NonAdminDownloadRequest: plain facts, read live. The signed URL is not
// among them: it goes from one object's status to the other's within an activity, and nowhere else.
type DownloadView struct {
	// Found is false when no object of that UID exists; a Velero DownloadRequest made for it may still be there.
	Found bool `json:"found"`
	// Phase is the object's status.phase, which Holdfast alone writes: New, BackingOff, Created or Deleting.
	Phase string `json:"phase,omitempty"`
	// BeingDeleted: the object has a deletion timestamp, and somebody's finalizer.
	BeingDeleted bool `json:"beingDeleted,omitempty"`
	// Expired: its time is over, with or without a URL.
	Expired bool `json:"expired,omitempty"`
	// Validated: the condition is of this generation, and validating again would give the same.
	Validated bool `json:"judged,omitempty"`
	// Refused: the tenant does not get the file; the condition says why.
	Refused bool `json:"refused,omitempty"`
	// Answered: the status holds the URL of the file that this generation of the spec asks for.
	Answered bool `json:"answered,omitempty"`
	// Velero describes the Velero DownloadRequest that was made for the object; somebody else's counts as absent.
	Velero VeleroDownloadView `json:"velero"`
}

// VeleroDownloadView describes a Velero DownloadRequest.
type VeleroDownloadView struct {
	Exists bool   `json:"exists,omitempty"`
	Name   string `json:"name,omitempty"`
	Phase  string `json:"phase,omitempty"`
	// Current: it is for the file that the spec asks for now, and its answer, if it has one, has not expired.
	Current bool `json:"current,omitempty"`
	// Signed: it has a URL.
	Signed bool `json:"signed,omitempty"`
}
