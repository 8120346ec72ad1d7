package contract

import "time"

// KindFinalization finalizes one NonAdminRestore. Input: ObjectInput, result: FinalizationResult. It is a child of the
// NonAdminRestore's workflow, which waits for it. While it runs it alone writes the object's status. It receives no signals:
// watchers wake the parent. It answers QueryState with FinalizationState.
var KindFinalization = Kind{
	Workflow: "RestoreFinalization", ID: "finalization", Kubernetes: "NonAdminRestore", Summary: "Finalization of restore",
	Pinned: true,
}

// Activities of the RestoreFinalization workflow. Each may be repeated at any time.
var (
	// PlanFinalization returns the tasks to run.
	PlanFinalization = Activity[ObjectStep, FinalizationPlan]{
		"plan-finalization", "Determine what is due after the restore",
	}
	// RunFinalizationTask runs one task.
	RunFinalizationTask = Activity[FinalizationTaskStep, FinalizationOutcome]{Name: "run-finalization-task"}
	// PublishFinalization adds what the tasks found to the results in the object store.
	PublishFinalization = Activity[FinalizationPublication, FinalizationPublished]{
		"publish-finalization", "Add what was found to the restore's results",
	}
	// RecordFinalization writes the status.
	RecordFinalization = Activity[FinalizationRecord, FinalizationResult]{Name: "record-finalization"}
)

// Types of application errors of these activities.
const (
	// ErrorNotYet: the task waits for something to become ready, and is retried. Retryable, and no fault.
	ErrorNotYet = "NotYet"
	// ErrorObjectStore: the object store refused or did not answer. Retryable.
	ErrorObjectStore = "ObjectStoreUnavailable"
)

// FinalizationResult is how a finalization ended.
type FinalizationResult struct {
	// Phase is status.finalization.phase: Completed or PartiallyFailed. It is empty if there was nothing to finalize: the
	// object is gone or about to go, or Velero has not restored anything.
	Phase string `json:"phase,omitempty"`
	// Warnings and Errors count those of all tasks.
	Warnings int `json:"warnings,omitempty"`
	Errors   int `json:"errors,omitempty"`
}

// FinalizationPlan is what is to be done. The worker that plans decides on the tasks: a longer list in a newer worker does not
// change a finalization under way.
type FinalizationPlan struct {
	// Due: Velero has restored what it could, and the object stays. Without it there is nothing to do.
	Due bool `json:"due,omitempty"`
	// Ended is the phase in which an earlier run has ended, with what it counted; there is nothing left to do.
	Ended FinalizationResult `json:"ended"`
	// VeleroFailed: Velero ended the restore as PartiallyFailed.
	VeleroFailed bool `json:"veleroFailed,omitempty"`
	// Tasks are in the order in which they run.
	Tasks []PlannedTask `json:"tasks,omitempty"`
}

// PlannedTask is one task to be run.
type PlannedTask struct {
	Name string `json:"name"`
	// Summary says what it does, for people.
	Summary string `json:"summary,omitempty"`
	// Timeout limits one attempt.
	Timeout time.Duration `json:"timeout"`
}

// FinalizationTaskStep is the input of RunFinalizationTask.
type FinalizationTaskStep struct {
	Ref  ObjectRef `json:"ref"`
	Task string    `json:"task"`
	// Deadline is when to stop waiting: what is not ready then is reported as it is.
	Deadline time.Time `json:"deadline"`
}

// FinalizationLines are messages by what they concern: Velero and its object store, cluster-scoped objects, or the tenant's
// objects. They name objects and hold no data.
type FinalizationLines struct {
	Velero    []string `json:"velero,omitempty"`
	Cluster   []string `json:"cluster,omitempty"`
	Namespace []string `json:"namespace,omitempty"`
}

// All returns the messages in one list.
func (l FinalizationLines) All() []string {
	all := make([]string, 0, len(l.Velero)+len(l.Cluster)+len(l.Namespace))
	return append(append(append(all, l.Namespace...), l.Cluster...), l.Velero...)
}

// Count is the number of messages.
func (l FinalizationLines) Count() int { return len(l.Velero) + len(l.Cluster) + len(l.Namespace) }

// FinalizationOutcome is what a task found.
type FinalizationOutcome struct {
	// Gone: the object is gone or about to go; nothing more is to be done.
	Gone     bool              `json:"gone,omitempty"`
	Warnings FinalizationLines `json:"warnings"`
	Errors   FinalizationLines `json:"errors"`
	// LeftOut counts the objects that a restore from a tenant's storage location must not bring back, Refused those that the API
	// server refused.
	LeftOut int `json:"leftOut,omitempty"`
	Refused int `json:"refused,omitempty"`
	// Shadowed names kinds among those left out that only a namesake of another API group keeps out.
	Shadowed []string `json:"shadowed,omitempty"`
}

// FinalizationPublication is the input of PublishFinalization.
type FinalizationPublication struct {
	Ref   ObjectRef        `json:"ref"`
	Tasks []PublishedLines `json:"tasks,omitempty"`
	// Deadline is when to give up on an object store that does not answer.
	Deadline time.Time `json:"deadline"`
}

// PublishedLines are the lines of one task.
type PublishedLines struct {
	Task     string            `json:"task"`
	Warnings FinalizationLines `json:"warnings"`
	Errors   FinalizationLines `json:"errors"`
}

// FinalizationPublished is what PublishFinalization found in the object store.
type FinalizationPublished struct {
	// VeleroErrors are the first errors that Velero had with objects of the namespace.
	VeleroErrors []string `json:"veleroErrors,omitempty"`
	// Problem says why the results could not be updated; empty if they hold what they should.
	Problem string `json:"problem,omitempty"`
}

// FinalizationRecord is the whole of status.finalization, so that writing it again changes nothing.
type FinalizationRecord struct {
	Ref ObjectRef `json:"ref"`
	// Phase is the whole finalization's, one of v1alpha1.FinalizationPhase.
	Phase        string         `json:"phase"`
	StartedAt    time.Time      `json:"startedAt"`
	EndedAt      time.Time      `json:"endedAt,omitzero"`
	Warnings     int            `json:"warnings,omitempty"`
	Errors       int            `json:"errors,omitempty"`
	Tasks        []RecordedTask `json:"tasks,omitempty"`
	VeleroErrors []string       `json:"veleroErrors,omitempty"`
	// Problem says why the results in the object store do not hold what the tasks found.
	Problem string `json:"problem,omitempty"`
	// LeftOut and Refused are the sums of the tasks', Shadowed are all of theirs.
	LeftOut  int      `json:"leftOut,omitempty"`
	Refused  int      `json:"refused,omitempty"`
	Shadowed []string `json:"shadowed,omitempty"`
}

// RecordedTask is one task of a FinalizationRecord. Of many messages it holds the first.
type RecordedTask struct {
	Name      string    `json:"name"`
	Phase     string    `json:"phase"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	Warnings  []string  `json:"warnings,omitempty"`
	Errors    []string  `json:"errors,omitempty"`
}

// FinalizationState answers QueryState.
type FinalizationState struct {
	Record FinalizationRecord `json:"record"`
}
