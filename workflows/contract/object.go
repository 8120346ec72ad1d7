package contract

import "strings"

// ObjectRef names one incarnation of a tenant's object: an object deleted and created again under the same name has
// another UID and, to Holdfast, is another object.
type ObjectRef struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// String returns namespace/name, the form in which people write it.
func (r ObjectRef) String() string { return r.Namespace + "/" + r.Name }

// ObjectInput starts the workflow that serves an object, of whatever kind, and is part of the input that continues it.
type ObjectInput struct {
	Cluster string    `json:"cluster"`
	Ref     ObjectRef `json:"ref"`
	// ShownPhase and ShownVeleroPhase are the values of the search attributes at continue-as-new.
	ShownPhase       string `json:"shownPhase,omitempty"`
	ShownVeleroPhase string `json:"shownVeleroPhase,omitempty"`
}

// WorkflowID returns `<cluster>/<kind>/<namespace>/<name>/<uid>`, the only ID under which the object is served.
func WorkflowID(cluster string, kind Kind, ref ObjectRef) string {
	return strings.Join([]string{cluster, kind.ID, ref.Namespace, ref.Name, ref.UID}, "/")
}

// How the workflow of an object is told and asked.
const (
	// SignalChanged tells a workflow that its object, or a Velero object behind it, may have changed. A hint, never a
	// fact: the workflow reads the present state. Payload: Changed. Duplicates are harmless.
	SignalChanged = "changed"
	// QueryState returns what the workflow saw last: with KindBackup a BackupState.
	QueryState = "state"
)

// Changed is the payload of SignalChanged.
type Changed struct {
	// Reason is for the person who reads the history; no code looks at it.
	Reason string `json:"reason,omitempty"`
	// Volumes: Velero has made PodVolumeBackups or DataUploads for the backup, so it is worth while to list them.
	Volumes bool `json:"volumes,omitempty"`
}
