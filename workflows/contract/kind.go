package contract

import (
	"cmp"

	"go.temporal.io/sdk/temporal"
)

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
