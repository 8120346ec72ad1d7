package contract

// ScheduleID returns `<cluster>/<kind>`. It is the ID of the Schedule that starts a kind's workflows, one per Kubernetes cluster,
// and, with the time appended by Temporal, of each workflow that it starts.
func ScheduleID(cluster string, kind Kind) string { return cluster + "/" + kind.ID }

// ScheduledInput is what a Schedule gives to whatever workflow it starts.
type ScheduledInput struct {
	Cluster string `json:"cluster"`
}
