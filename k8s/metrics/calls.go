package metrics

// Used as an activity type by the watcher.
const (
	// StepQueuePosition: writing a queue position.
	StepQueuePosition = "write-queue-position"
	// StepWatch: listing or watching.
	StepWatch = "watch"
)

var (
	conflicts = registered(newCounter("holdfast_patch_conflicts_total",
		"Patches that conflicted with another writer's and were retried, by resource.", "resource"))
	retries = registered(newCounter("holdfast_activity_retries_total",
		"Attempts of an activity after its first.", "activity_type"))
	denied = registered(newCounter("holdfast_access_denied_total",
		"Calls that the API server refused for missing rights.", "activity_type"))
	policyProblem = registered(newGauge("holdfast_policy_problem",
		"1 while the policy in force is not the one in the cluster, else 0.")).WithLabelValues()
	dependency = registered(newGauge("holdfast_dependency_up",
		"1 if the readiness check of this name passed last, else 0.", "check"))
)

// PatchConflict counts a patch that failed because of another writer. resource is the plural, such as nonadminbackups.
func PatchConflict(resource string) { conflicts.WithLabelValues(resource).Inc() }

// ActivityRetried counts an attempt of an activity after its first.
func ActivityRetried(activityType string) { retries.WithLabelValues(activityType).Inc() }

// AccessDenied counts a call that the API server refused for missing rights.
func AccessDenied(activityType string) { denied.WithLabelValues(activityType).Inc() }

// SetPolicyProblem says whether the policy in force is not the one in the cluster.
func SetPolicyProblem(problem bool) { policyProblem.Set(number(problem)) }

// SetDependencyUp says whether a readiness check passed. Before its first answer a check has no series.
func SetDependencyUp(check string, up bool) { dependency.WithLabelValues(check).Set(number(up)) }
