package contract

// KindGate is the test that a new version of a worker must pass before it gets work: it replays open workflows of its task queue
// with the code of the worker that runs it. Who rolls out starts it on every task queue of workflows, pinned to the new version:
// Temporal's worker controller for Kubernetes, or a person. Input: GateInput, or none; result: GateResult.
var KindGate = Kind{Workflow: "RolloutGate", Summary: "Rollout gate of", Queue: QueueEach, Pinned: true}

// The activities.
var (
	// ReplayOpenWorkflows replays a sample of the open workflows of a task queue. It only reads.
	ReplayOpenWorkflows = Activity[GateRequest, GateResult]{
		"replay-open-workflows", "Replay open workflows with the code of this worker",
	}
)

// GateInput starts one gate.
type GateInput struct {
	// Each is how many of the oldest and of the newest workflows of each type and phase are replayed; 10 if zero, 100 at most.
	Each int `json:"each,omitempty"`
}

// GateRequest is the activity's input.
type GateRequest struct {
	GateInput
	TaskQueue string `json:"taskQueue"`
}

// GateResult counts what a gate has done.
type GateResult struct {
	// Build is the build ID of the worker that replayed; empty without worker versioning. A gate says something of this one alone.
	Build string `json:"build,omitempty"`
	// Types are the types of the open workflows, sorted by name.
	Types []GateType `json:"types,omitempty"`
	// Pinned counts those of the sample that stay with the version that serves them, and need not replay.
	Pinned int `json:"pinned,omitempty"`
	// New counts those of the sample that no worker has served yet, Gone those that were deleted meanwhile.
	New  int `json:"new,omitempty"`
	Gone int `json:"gone,omitempty"`
	// TooLarge counts those of the sample whose history is larger than a gate reads.
	TooLarge int `json:"tooLarge,omitempty"`
	// Unlisted: there are more open workflows than a gate lists.
	Unlisted bool `json:"unlisted,omitempty"`
}

// GateType counts the workflows of one type.
type GateType struct {
	Workflow string `json:"workflow"`
	// Open are those that are open, as far as they were listed; Replayed are those that were replayed.
	Open     int `json:"open"`
	Replayed int `json:"replayed,omitempty"`
}

// ErrorDoesNotReplay is the type of the error of a gate that has found workflows that this build does not replay; its details are
// a []GateFinding. Not retryable.
const ErrorDoesNotReplay = "DoesNotReplay"

// GateFinding is a workflow that does not replay.
type GateFinding struct {
	Workflow string `json:"workflow"`
	ID       string `json:"id"`
	Run      string `json:"run"`
	// Problem says how the code differs from the history: names of events, commands and activities, and no payload.
	Problem string `json:"problem"`
}
