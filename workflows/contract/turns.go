package contract

// DescribeWorkflows returns those whose workflow does not run. Coordinators look after their members by it.
var DescribeWorkflows = Activity[Workflows, Workflows]{"describe-workflows", "Find out whose workflow does not run"}

// Workflows are workflows by their IDs, never a run's.
type Workflows struct {
	WorkflowIDs []string `json:"workflowIds,omitempty"`
}
