package contract

import (
	"cmp"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
)

// WorkflowTaskTimeout is set at every start of a workflow: it is what the kill of a worker costs one.
const WorkflowTaskTimeout = 5 * time.Second

// Kind is what everybody knows of the workflows of one kind: who runs them, starts them, signals them and shows them. Those that
// serve an object each take an ObjectInput and more, SignalChanged, and answer QueryState.
type Kind struct {
	// Workflow is the workflow type.
	Workflow string
	// ID is what their IDs say of the kind, see WorkflowID and ScheduleID; empty with those whose IDs are made in another way.
	ID string
	// Kubernetes is the Kubernetes kind of the object, as AttributeKind shows it; empty with those that serve none.
	Kubernetes string
	// Summary and the name of what it is about are what the Web UI shows of a workflow.
	Summary string
	// Queue carries them.
	Queue Queue
	// Pinned: with worker versioning, a workflow stays with the version that it began with. It ends within minutes, or an hour. All
	// others move to the version that is made current.
	Pinned bool
}

// Queue says which task queue carries the workflows of a kind.
type Queue int

// The queues of workflows.
const (
	// QueueVelero is TaskQueue.
	QueueVelero Queue = iota
	// QueueFDB is FDBWorkflowTaskQueue.
	QueueFDB
	// QueueShared is SharedTaskQueue.
	QueueShared
)

// TaskQueue returns the queue of a Kubernetes cluster's workflows and short activities, those of FoundationDB left out.
func TaskQueue(cluster string) string { return "holdfast-" + cluster }

// TaskQueue returns the queue of the kind's workflows.
func (k Kind) TaskQueue(cluster string) string {
	switch k.Queue {
	case QueueFDB:
		return FDBWorkflowTaskQueue(cluster)
	case QueueShared:
		return SharedTaskQueue
	}
	return TaskQueue(cluster)
}

// SummaryOf is what the Web UI shows of the workflow that is about something.
func (k Kind) SummaryOf(name string) string { return k.Summary + " " + name }

// Attributes are the search attributes that a workflow carries from its first event. What is empty is left out.
func (k Kind) Attributes(cluster string, ref ObjectRef) temporal.SearchAttributes {
	attributes := []temporal.SearchAttributeUpdate{AttributeKind.ValueSet(cmp.Or(k.Kubernetes, k.Workflow))}
	for _, set := range []struct {
		key   temporal.SearchAttributeKeyKeyword
		value string
	}{{AttributeCluster, cluster}, {AttributeNamespace, ref.Namespace}, {AttributeName, ref.Name}} {
		if set.value != "" {
			attributes = append(attributes, set.key.ValueSet(set.value))
		}
	}
	return temporal.NewSearchAttributes(attributes...)
}

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
