package contract

// KindDrill serves one RestoreDrill. Input: DrillInput, no result.
var KindDrill = Kind{Workflow: "RestoreDrill", ID: "drill", Kubernetes: "RestoreDrill", Summary: "Restore drill"}

// DrillTaskQueue returns the task queue of the activities that make and delete the namespaces of drills. Only the worker with the
// rights to do so polls it.
func DrillTaskQueue(cluster string) string { return "holdfast-drills-" + cluster }

type drillActivity = Activity[DrillStep, DrillView]

// Activities of the RestoreDrill workflow. Each takes a DrillStep, returns the DrillView after its effect, and may be repeated at
// any time.
var (
	RefreshDrill        = drillActivity{"refresh-drill", "Read the drill and what belongs to it"}
	AdmitDrill          = drillActivity{"admit-drill", "Check the policy and the backup"}
	StartDrillRestore   = drillActivity{"start-drill-restore", "Have Velero restore the backup into the drill's namespace"}
	CheckDrill          = drillActivity{"check-drill", "Check what was restored"}
	ConcludeDrill       = drillActivity{"conclude-drill", "Write the verdict"}
	ReleaseDrillVolumes = drillActivity{"release-drill-volumes", "Have the drill's volumes deleted with their claims"}
	RemoveDrillRestore  = drillActivity{"remove-drill-restore", "Delete the Velero Restore of the drill"}
	EndDrill            = drillActivity{"end-drill", "Record that nothing is left of the drill"}
)

type drillNamespaceActivity = Activity[DrillNamespace, DrillNamespaceView]

// Activities on DrillTaskQueue. Each may be repeated at any time.
var (
	PrepareDrillNamespace = drillNamespaceActivity{"prepare-drill-namespace", "Make the drill's namespace"}
	StartDrillJob         = drillNamespaceActivity{"start-drill-job", "Start the Job that checks what was restored"}
	RemoveDrillNamespace  = drillNamespaceActivity{"remove-drill-namespace", "Delete the drill's namespace"}
)

// DrillInput starts, and continues, the workflow of one RestoreDrill.
type DrillInput struct {
	ObjectInput
	// Turn is the turn before Velero that was given last.
	Turn Turn `json:"turn,omitzero"`
}

// DrillStep is the input of every activity that serves a RestoreDrill.
type DrillStep struct {
	Ref `json:"ref"`
	// Check is the check that is due; empty for other steps.
	Check string `json:"check,omitempty"`
	// Refused is why the Job of the check cannot be started; empty if it was.
	Refused string `json:"refused,omitempty"`
	// GivenUp is why the check that is due was given up; empty if it was not.
	GivenUp string `json:"givenUp,omitempty"`
	// Waits: no namespace was made, since no place is free (DrillNamespaceView.Full). Unserved: no worker that makes namespaces has
	// answered.
	Waits    bool `json:"waits,omitempty"`
	Unserved bool `json:"unserved,omitempty"`
	// Turn is the turn before Velero; without one that is usable no Velero Restore is made while the policy limits them.
	Turn UsableTurn `json:"turn,omitzero"`
}

// DrillNamespace is the namespace that a drill needs, as the administrator's policy describes it.
type DrillNamespace struct {
	Ref  ObjectRef `json:"ref"`
	Name string    `json:"name"`
	// Labels and Annotations are added to it.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Quota limits by resource, as a ResourceQuota's spec.hard.
	Quota map[string]string `json:"quota,omitempty"`
	// DNS are addresses that resolve names, as CIDRs, besides those that every cluster may have.
	DNS []string `json:"dns,omitempty"`
	// TenantsMayLook: people who may see the tenant's namespace may see this one.
	TenantsMayLook bool `json:"tenantsMayLook,omitempty"`
	// MaxActive is how many namespaces of drills there may be.
	MaxActive int `json:"maxActive,omitempty"`
}

// DrillNamespaceView is what has become of it.
type DrillNamespaceView struct {
	// Exists: it exists, and may be terminating. Prepared: it has all that limits it.
	Exists   bool `json:"exists,omitempty"`
	Prepared bool `json:"prepared,omitempty"`
	// Full: no place is free for it: MaxActive others have one, or another drill of the same tenant's namespace has.
	Full bool `json:"full,omitempty"`
	// Refused is why the API server refuses the Job.
	Refused string `json:"refused,omitempty"`
}

// DrillView is what decides the next step for a RestoreDrill: plain facts, read live.
type DrillView struct {
	// Found is false when no object of that UID exists; what was made for it may still be there.
	Found        bool   `json:"found"`
	Phase        string `json:"phase,omitempty"`
	BeingDeleted bool   `json:"beingDeleted,omitempty"`
	// Oversized: the object leaves no room for a status, so that the drill is refused. Unwritable: not even that is written.
	Oversized  bool `json:"oversized,omitempty"`
	Unwritable bool `json:"unwritable,omitempty"`
	// Admitted: the drill was allowed, and has its backup and its checks.
	Admitted bool `json:"admitted,omitempty"`
	// Deadline is when the time for what the drill is at is over, in seconds since 1970; 0 if there is no limit. Late: it is over.
	Deadline int64 `json:"deadline,omitempty"`
	Late     bool  `json:"late,omitempty"`
	// Namespace is what PrepareDrillNamespace needs; its Name is known for every drill. NamespaceExists: there is one of this drill.
	Namespace       DrillNamespace `json:"namespace"`
	NamespaceExists bool           `json:"namespaceExists,omitempty"`
	// NamespaceTerminating: it is being deleted.
	NamespaceTerminating bool `json:"namespaceTerminating,omitempty"`
	// Prepared: in this run of the workflow, the namespace got all that limits it. Full: as in DrillNamespaceView.
	Prepared bool `json:"prepared,omitempty"`
	Full     bool `json:"full,omitempty"`
	// Ahead is how many older drills of the tenant's namespace come first, and Oldest the first of them.
	Ahead  int    `json:"ahead,omitempty"`
	Oldest string `json:"oldest,omitempty"`
	// Unserved: the worker that makes and deletes it has not answered.
	Unserved bool `json:"unserved,omitempty"`
	// AwaitsTurn: Holdfast makes the Velero Restore once the drill has its turn. TurnUsed: the activity that returned this has made
	// it with the turn.
	AwaitsTurn bool `json:"awaitsTurn,omitempty"`
	TurnUsed   bool `json:"turnUsed,omitempty"`
	// StartTried: the restore could not be started since the last wait.
	StartTried bool `json:"startTried,omitempty"`
	// Occupied: something has the name and was not made for this drill.
	Occupied bool            `json:"occupied,omitempty"`
	Velero   VeleroDrillView `json:"velero"`
	// Check is the first check without a result. GivenUp: it was given up.
	Check   string `json:"check,omitempty"`
	GivenUp bool   `json:"givenUp,omitempty"`
	// Concluded: the verdict is written. KeptUntil is until when everything stays, in seconds since 1970; 0 if it does not.
	Concluded bool  `json:"concluded,omitempty"`
	KeptUntil int64 `json:"keptUntil,omitempty"`
	Kept      bool  `json:"kept,omitempty"`
	// Ended: nothing more is done, and the status says so.
	Ended bool `json:"ended,omitempty"`
	// Verified is the status of the condition.
	Verified string `json:"verified,omitempty"`
}

// VeleroDrillView describes the Velero Restore of a drill.
type VeleroDrillView struct {
	Exists bool   `json:"exists,omitempty"`
	Name   string `json:"name,omitempty"`
	Phase  string `json:"phase,omitempty"`
	// Finished: Velero does not change it any more. Restored: it has restored what it could.
	Finished bool `json:"finished,omitempty"`
	Restored bool `json:"restored,omitempty"`
	// BeingDeleted: it has a deletion timestamp.
	BeingDeleted bool `json:"beingDeleted,omitempty"`
	// Begun: the status says that it was made once.
	Begun bool `json:"begun,omitempty"`
}
