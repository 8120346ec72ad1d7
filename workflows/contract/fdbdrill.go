package contract

// KindFDBDrill serves one FoundationDBDrill; "fdbdrill" is the resource's short name. Input: ObjectInput, no result.
var KindFDBDrill = Kind{
	Workflow: "FoundationDBDrill", ID: "fdbdrill", Kubernetes: "FoundationDBDrill", Summary: "FoundationDB drill", Queue: QueueFDB,
}

type fdbDrillActivity = Activity[FDBDrillStep, FDBDrillView]

// Activities of the FoundationDBDrill workflow. Each takes a FDBDrillStep, returns the FDBDrillView after its effect, and may be
// repeated at any time.
var (
	ObserveFDBDrill = fdbDrillActivity{"observe-fdb-drill", "Read the drill, its clusters, its backup and its restore"}
	// AdmitFDBDrill refuses a drill whose target is not fit for it. It changes nothing but the drill.
	AdmitFDBDrill = fdbDrillActivity{"admit-fdb-drill", "Check the backup and the target"}
	// PlanFDBDrill writes down which version is restored, and what the source holds at it.
	PlanFDBDrill          = fdbDrillActivity{"plan-fdb-drill", "Write down what is restored"}
	StartFDBDrillRestore  = fdbDrillActivity{"start-fdb-drill-restore", "Make the FoundationDBRestore of the drill"}
	ConcludeFDBDrill      = fdbDrillActivity{"conclude-fdb-drill", "Write the verdict"}
	RemoveFDBDrillRestore = fdbDrillActivity{"remove-fdb-drill-restore", "Delete the FoundationDBRestore of the drill"}
	// EndFDBDrill removes our finalizer, too.
	EndFDBDrill = fdbDrillActivity{"end-fdb-drill", "Record that nothing is left to do"}
)

// Activities that run FoundationDB's tools, on FDBTaskQueue.
var (
	// SurveyFDBDrill reads the target and the source, and changes nothing.
	SurveyFDBDrill = Activity[FDBDrillStep, FDBDrillSurvey]{
		"survey-fdb-drill", "Check that the target is empty, and record what the source holds",
	}
	// CheckFDBDrill reads all keys of the target.
	CheckFDBDrill = Activity[FDBDrillStep, FDBDrillCheck]{"check-fdb-drill", "Count and compare what came back"}
)

// FDBDrillClear clears the target of a drill, unless its content is not what the drill has restored. The target's owner has it
// run by RunFDBCommand. FDBCommand.Ref is the FoundationDBDrill's, Tag that of its restore.
const FDBDrillClear FDBOperation = "clear-target"

// FDBClassTooMuch is the class of a tool that has printed more than is read of it.
const FDBClassTooMuch FDBClass = "TooMuchOutput"

// FDBDrillStep is the input of every activity that serves a FoundationDBDrill.
type FDBDrillStep struct {
	Ref `json:"ref"`
	// Survey is the result of SurveyFDBDrill, for PlanFDBDrill.
	Survey *FDBDrillSurvey `json:"survey,omitempty"`
	// Check is the result of CheckFDBDrill, for ConcludeFDBDrill; nil if nothing was checked.
	Check *FDBDrillCheck `json:"check,omitempty"`
	// Cleared, for EndFDBDrill: nothing of the drill is left in the target.
	Cleared bool `json:"cleared,omitempty"`
	// Uncleared, for ObserveFDBDrill, says why several attempts to clear the target have failed.
	Uncleared string `json:"uncleared,omitempty"`
}

// FDBDrillSurvey is what a target and its source hold before the restore.
type FDBDrillSurvey struct {
	// Refused says why the target is not fit; empty if it is.
	Refused string `json:"refused,omitempty"`
	// Version is the one at which the source was read; 0 if it was not.
	Version int64 `json:"version,omitempty"`
	// Records are what the source holds in the ranges at Version.
	Records []FDBRangeRecord `json:"records,omitempty"`
	// Unread says why the source was not read; empty if it was, or if nothing is to be recorded.
	Unread string `json:"unread,omitempty"`
}

// FDBRangeRecord is what a database holds in a range of keys.
type FDBRangeRecord struct {
	Name  string `json:"name"`
	Start string `json:"start,omitempty"`
	End   string `json:"end,omitempty"`
	Keys  int64  `json:"keys,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
	// Digest is the sum modulo 2^256 of the SHA-256 of each key and value, in hexadecimal digits; empty if the range was not read.
	Digest string `json:"digest,omitempty"`
	// Unread says why it was not.
	Unread string `json:"unread,omitempty"`
}

// FDBDrillCheck is what the target holds after the restore.
type FDBDrillCheck struct {
	// Records are what it holds in the ranges of status.records.
	Records []FDBRangeRecord `json:"records,omitempty"`
	// Keys and Bytes are what it holds in all. Uncounted says why they are not known.
	Keys      int64  `json:"keys,omitempty"`
	Bytes     int64  `json:"bytes,omitempty"`
	Uncounted string `json:"uncounted,omitempty"`
	// Unmade says why nothing was checked.
	Unmade string `json:"unmade,omitempty"`
}

// FDBDrillView is what decides the next step for a FoundationDBDrill: plain facts, read live.
type FDBDrillView struct {
	// Found is false when no object of that UID exists.
	Found        bool   `json:"found"`
	Phase        string `json:"phase,omitempty"`
	BeingDeleted bool   `json:"beingDeleted,omitempty"`
	// Held: it has our finalizer.
	Held       bool  `json:"held,omitempty"`
	Generation int64 `json:"generation,omitempty"`
	// Admitted: backup and target were found to be fit, as far as their objects show.
	Admitted bool `json:"admitted,omitempty"`
	// Version is the version to restore; 0 before the survey. Reached: the backup holds it, as far as its object shows.
	Version int64 `json:"version,omitempty"`
	Reached bool  `json:"reached,omitempty"`
	// Deadline is when the time for restore and checks is over, in seconds since 1970. Late: it is over.
	Deadline int64               `json:"deadline,omitempty"`
	Late     bool                `json:"late,omitempty"`
	Restore  FDBDrillRestoreView `json:"restore"`
	// Target is the description:id of the database of the drill, Owner that of the target's object now; empty if it is not known.
	Target string `json:"target,omitempty"`
	Owner  string `json:"owner,omitempty"`
	// Unready says why Owner is not known.
	Unready string `json:"unready,omitempty"`
	Tag     string `json:"tag,omitempty"`
	// Lost says why the target cannot be cleared any more; empty if it can.
	Lost string `json:"lost,omitempty"`
	// Checked: the workflow has the result of the checks. Cleared: it knows that nothing of the drill is left in the target.
	Checked bool `json:"checked,omitempty"`
	Cleared bool `json:"cleared,omitempty"`
	// Uncleared says why the last attempt to clear the target has failed; empty if the next one is due.
	Uncleared string `json:"uncleared,omitempty"`
	// Concluded: the verdict is written. Ended: nothing more is done, and the status says so.
	Concluded bool `json:"concluded,omitempty"`
	Ended     bool `json:"ended,omitempty"`
	// Why is the message of the condition Verified.
	Why string `json:"why,omitempty"`
}

// FDBDrillRestoreView describes the FoundationDBRestore of a drill.
type FDBDrillRestoreView struct {
	// Begun: the status says that it was made once.
	Begun  bool   `json:"begun,omitempty"`
	Exists bool   `json:"exists,omitempty"`
	Name   string `json:"name,omitempty"`
	State  string `json:"state,omitempty"`
	// Over: its state is final. Completed: everything is restored.
	Over      bool `json:"over,omitempty"`
	Completed bool `json:"completed,omitempty"`
	// Goes: it is being deleted.
	Goes bool `json:"goes,omitempty"`
	// Awaits is the message of its condition.
	Awaits string `json:"awaits,omitempty"`
}
