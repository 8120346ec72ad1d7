package contract

// ScheduleKind is the part of a Schedule's ID that says what it starts.
type ScheduleKind string

// The kinds of periodic work. Each has one Schedule per Kubernetes cluster.
const (
	// ScheduleCollection starts WorkflowCollection every garbageCollectionPeriod of the policy.
	ScheduleCollection ScheduleKind = "garbage-collection"
	// ScheduleSynchronization starts WorkflowSynchronization every backupSyncPeriod of the policy.
	ScheduleSynchronization ScheduleKind = "backup-sync"
)

// ScheduleID returns `<cluster>/<kind>`. It is the ID of the Schedule and, with the time appended by Temporal, of each
// workflow that it starts.
func ScheduleID(cluster string, kind ScheduleKind) string { return cluster + "/" + string(kind) }
