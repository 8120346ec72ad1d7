package contract

import "strings"

// Kind is the part of a workflow ID that says which sort of object the workflow serves.
type Kind string

// The kinds that have a workflow per object.
const (
	// KindBackup is the kind of NonAdminBackup workflows; "nab" is the resource's short name.
	KindBackup Kind = "nab"
	// KindRestore is the kind of NonAdminRestore workflows.
	KindRestore Kind = "nar"
	// KindLocation is the kind of NonAdminBackupStorageLocation workflows.
	KindLocation Kind = "nabsl"
	// KindDownload is the kind of NonAdminDownloadRequest workflows.
	KindDownload Kind = "nadr"
	// KindApproval is the kind of StorageLocationApproval workflows; the object is the NonAdminBackupStorageLocation.
	KindApproval Kind = "approval"
	// KindFDBBackup is the kind of FoundationDBBackup workflows.
	KindFDBBackup Kind = "fdbb"
	// KindFDBExpiry is the kind of FDBExpiry workflows; the object is the FoundationDBBackup.
	KindFDBExpiry Kind = "fdb-expiry"
	// KindFDBRestore is the kind of FoundationDBRestore workflows; "fdbr" is the resource's short name.
	KindFDBRestore Kind = "fdbr"
)

// ObjectRef names one incarnation of a tenant's object: an object deleted and created again under the same name has
// another UID and, to Holdfast, is another object.
type ObjectRef struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// String returns namespace/name, the form in which people write it.
func (r ObjectRef) String() string { return r.Namespace + "/" + r.Name }

// WorkflowID returns `<cluster>/<kind>/<namespace>/<name>/<uid>`, the only ID under which the object is served.
func WorkflowID(cluster string, kind Kind, ref ObjectRef) string {
	return strings.Join([]string{cluster, string(kind), ref.Namespace, ref.Name, ref.UID}, "/")
}

// TaskQueue returns the queue of a Kubernetes cluster's workflows and short activities, those of FoundationDB left out.
func TaskQueue(cluster string) string { return "holdfast-" + cluster }

// TaskQueue returns the queue of the kind's workflows.
func (k Kind) TaskQueue(cluster string) string {
	switch k {
	case KindFDBBackup, KindFDBExpiry, KindFDBRestore:
		return FDBWorkflowTaskQueue(cluster)
	}
	return TaskQueue(cluster)
}
