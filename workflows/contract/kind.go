package contract

import (
	"cmp"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
)

// WorkflowTaskTimeout is set at every start of a workflow: it is what the kill of a worker costs one.
const WorkflowTaskTimeout = 5 * time.Second

// Kind is what other packages need to run, start, signal and show the workflows of one kind. A workflow that serves an object
// starts with an ObjectInput and more, receives SignalChanged, and answers QueryState.
type Kind struct {
	// Workflow is the workflow type.
	Workflow string
	// ID is the kind's part of their IDs, see WorkflowID and ScheduleID; empty if their IDs are made in another way.
	ID string
	// Kubernetes is the Kubernetes kind of the object, as AttributeKind shows it; empty for kinds that serve none.
	Kubernetes string
	// Summary is what the Web UI shows of a workflow, followed by the name of its object or cluster.
	Summary string
	// Queue is the task queue of the kind's workflows.
	Queue Queue
	// Pinned: with worker versioning, a workflow stays with the version that it began with. It ends within minutes, or an hour. All
	// other kinds move to the version that is made current.
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
	// QueueEach is each of them: the kind's workflows run where they are started.
	QueueEach
)

// TaskQueue returns the queue of a Kubernetes cluster's workflows and short activities, except those of FoundationDB.
func TaskQueue(cluster string) string { return "holdfast-" + cluster }

// TaskQueue returns the queue of the kind's workflows; of QueueEach the first.
func (k Kind) TaskQueue(cluster string) string {
	switch k.Queue {
	case QueueFDB:
		return FDBWorkflowTaskQueue(cluster)
	case QueueShared:
		return SharedTaskQueue
	}
	return TaskQueue(cluster)
}

// SummaryOf returns the summary of the workflow for an object or cluster of that name.
func (k Kind) SummaryOf(name string) string { return bounded(k.Summary+" "+name, maxSummaryBytes) }

// Attributes returns the search attributes that a workflow has from its first event. Empty ones are left out.
func (k Kind) Attributes(cluster string, ref ObjectRef) temporal.SearchAttributes {
	attributes := []temporal.SearchAttributeUpdate{AttributeKind.ValueSet(cmp.Or(k.Kubernetes, k.Workflow))}
	for _, set := range []struct {
		key   temporal.SearchAttributeKeyKeyword
		value string
	}{{AttributeCluster, cluster}, {AttributeNamespace, ref.Namespace}, {AttributeName, ref.Name}} {
		if set.value != "" {
			attributes = append(attributes, set.key.ValueSet(bounded(set.value, maxAttributeBytes)))
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

// Ref is an ObjectRef that is embedded, as the field Ref: the input of an activity that acts on one object.
type Ref = ObjectRef

// Reference returns the reference itself, and so that of an input that embeds it.
func (r ObjectRef) Reference() ObjectRef { return r }

// String returns namespace/name, the form in which people write it.
func (r ObjectRef) String() string { return r.Namespace + "/" + r.Name }

// Fairness returns the priority of all work for the object: its fairness key is the namespace, at most 63 bytes of 64. Where the
// server has fairness switched on, the namespaces whose tasks wait in a task queue take turns. A workflow that is started with it
// hands it on to its regular activities, its children and its continuation.
func (r ObjectRef) Fairness() temporal.Priority { return temporal.Priority{FairnessKey: r.Namespace} }

// ObjectInput starts the workflow that serves an object, of any kind, and is part of the input that continues it.
type ObjectInput struct {
	Cluster string    `json:"cluster"`
	Ref     ObjectRef `json:"ref"`
	// ShownPhase and ShownVeleroPhase are the values of the search attributes at continue-as-new.
	ShownPhase       string `json:"shownPhase,omitempty"`
	ShownVeleroPhase string `json:"shownVeleroPhase,omitempty"`
}

// ObjectStep is the input of an activity that needs nothing but the object.
type ObjectStep struct {
	Ref `json:"ref"`
}

// Step returns the step for the object.
func (o *ObjectInput) Step() ObjectStep { return ObjectStep{Ref: o.Ref} }

// Object returns the part of an input that all kinds have.
func (o *ObjectInput) Object() *ObjectInput { return o }

// WorkflowID returns `<cluster>/<kind>/<namespace>/<name>/<uid>`, the only ID under which the object is served; if that is longer
// than MaxIDBytes, it ends in a hash.
func WorkflowID(cluster string, kind Kind, ref ObjectRef) string {
	most := MaxIDBytes
	if kind == KindPlan || kind == KindPlanStart { // there is a Schedule of that ID
		most -= scheduleBytes
	}
	return bounded(strings.Join([]string{cluster, kind.ID, ref.Namespace, ref.Name, ref.UID}, "/"), most)
}

// The signal and the query of every workflow that serves an object.
const (
	// SignalChanged says that the workflow's object, or a Velero object behind it, may have changed. It is a hint, never a
	// fact: the workflow reads the present state. Payload: a Hint. Duplicates are harmless.
	SignalChanged = "changed"
	// QueryState returns the last state that the workflow read: a State, or more.
	QueryState = "state"
)

// State answers QueryState. What is awaited, and from whom, is in the workflow's current details.
type State[View any] struct {
	View View `json:"view"`
}

// Changed is the payload of SignalChanged. A kind may have a payload of its own, which embeds it.
type Changed struct {
	// Reason is for the person who reads the history; no code reads it.
	Reason string `json:"reason,omitempty"`
}

// Hint is a Changed, or what a kind has instead.
type Hint interface{ Why() string }

// Why implements Hint.
func (c Changed) Why() string { return c.Reason }
