package fleet

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/duration"

	"holdfast.dev/holdfast/k8s/process"
	"holdfast.dev/holdfast/k8s/shorten"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/terminal"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// SilentAfter is how old a heartbeat may be: two are missed, and the next is late.
	SilentAfter = 3 * contract.HeartbeatInterval
	// counts is how many clusters' workflows are counted at a time.
	counts = 8
	// maxCell is how long what a heartbeat says may be in the table, in bytes: a tenant's names may have 253.
	maxCell = 60
)

// Clusters are those of a Temporal namespace, sorted by their IDs.
type Clusters struct {
	Clusters []Cluster `json:"clusters"`
}

// Cluster is one Kubernetes cluster.
type Cluster struct {
	ID string `json:"id"`
	// Heartbeat is the newest one; nil if it cannot be read, or none came yet.
	Heartbeat *contract.Heartbeat `json:"heartbeat,omitempty"`
	// Silent: the newest heartbeat is older than SilentAfter.
	Silent bool `json:"silent"`
	// Open counts workflows that run, but for the heartbeat's; nil if Temporal did not count them.
	Open *int64 `json:"openWorkflows,omitempty"`
	// Problem says what is wrong with it; empty if nothing is known.
	Problem string `json:"problem,omitempty"`
}

// Read lists the clusters' heartbeats, and counts their workflows.
func Read(ctx context.Context, temporal client.Client, memo converter.DataConverter, now time.Time) (*Clusters, error) {
	found := runs{}
	request := &workflowservice.ListWorkflowExecutionsRequest{
		Query: fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running'", contract.KindHeartbeat.Workflow),
	}
	for {
		answer, err := temporal.ListWorkflow(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("list the heartbeats in Temporal: %w", err)
		}
		for _, execution := range answer.Executions {
			found.add(execution)
		}
		if request.NextPageToken = answer.NextPageToken; len(request.NextPageToken) == 0 {
			break
		}
	}
	fleet := &Clusters{Clusters: []Cluster{}}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		fleet.Clusters = append(fleet.Clusters, clusterOf(id, found[id], memo, now))
	}
	fleet.count(ctx, temporal)
	return fleet, nil
}

// count adds the numbers of open workflows.
func (f *Clusters) count(ctx context.Context, temporal client.Client) {
	var group errgroup.Group
	group.SetLimit(counts)
	for i := range f.Clusters {
		cluster := &f.Clusters[i]
		group.Go(func() error {
			answer, err := temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
				Query: fmt.Sprintf("%s = '%s' AND ExecutionStatus = 'Running' AND WorkflowType != '%s'",
					contract.AttributeCluster.GetName(), cluster.ID, contract.KindHeartbeat.Workflow),
			})
			if err != nil {
				if cluster.Problem != "" {
					cluster.Problem += "; "
				}
				cluster.Problem += "its workflows are not counted: " + err.Error()
				return nil
			}
			cluster.Open = &answer.Count
			return nil
		})
	}
	_ = group.Wait() // each cluster has its own
}

// runs are the runs of heartbeats by their clusters' IDs. Of two runs, which visibility may list where one continues the other,
// the later one counts. A workflow with another ID is somebody else's.
type runs map[string]*workflowpb.WorkflowExecutionInfo

func (r runs) add(run *workflowpb.WorkflowExecutionInfo) {
	id, is := strings.CutSuffix(run.GetExecution().GetWorkflowId(), "/"+contract.KindHeartbeat.ID)
	if !is || !process.ValidClusterID(id) {
		return
	}
	if known := r[id]; known == nil || known.GetStartTime().AsTime().Before(run.GetStartTime().AsTime()) {
		r[id] = run
	}
}

func clusterOf(id string, execution *workflowpb.WorkflowExecutionInfo, memo converter.DataConverter, now time.Time) Cluster {
	cluster := Cluster{ID: id}
	payload, there := execution.GetMemo().GetFields()[contract.MemoHeartbeat]
	if !there {
		cluster.Silent = now.Sub(execution.GetStartTime().AsTime()) > SilentAfter
		cluster.Problem = "no heartbeat was recorded yet: does its holdfast-worker run?"
		return cluster
	}
	heartbeat := &contract.Heartbeat{}
	if err := memo.FromPayload(payload, heartbeat); err != nil {
		cluster.Problem = "the heartbeat cannot be read: " + err.Error()
		return cluster
	}
	cluster.Heartbeat = heartbeat
	if age := now.Sub(heartbeat.At); age > SilentAfter {
		cluster.Silent = true
		cluster.Problem = fmt.Sprintf("silent for %s: its API server does not answer, or its watcher or worker does not run or "+
			"reach Temporal", duration.HumanDuration(age))
		return cluster
	}
	var problems []string
	if age := heartbeat.At.Sub(now); age > SilentAfter {
		problems = append(problems, fmt.Sprintf("the clocks differ: its heartbeat is of %s from now", duration.HumanDuration(age)))
	}
	for _, problem := range []string{heartbeat.Watcher.Problem, heartbeat.Worker.Problem} {
		if problem != "" {
			problems = append(problems, problem)
		}
	}
	cluster.Problem = strings.Join(problems, "; ")
	return cluster
}

// Print writes the clusters as a table.
func (f *Clusters) Print(out io.Writer) error {
	if len(f.Clusters) == 0 {
		_, err := fmt.Fprintln(out,
			"No cluster has sent a heartbeat to this Temporal namespace: a holdfast watch of this release sends one a minute.")
		return err
	}
	now := time.Now()
	of := func(title string, value func(*contract.Heartbeat) string) operator.Column[Cluster] {
		return operator.NewColumn(title, func(c Cluster) string {
			if c.Heartbeat == nil {
				return "unknown"
			}
			return terminal.Printable(shorten.Text(value(c.Heartbeat), maxCell))
		})
	}
	return operator.PrintRows(out, []operator.Column[Cluster]{
		operator.NewColumn("CLUSTER", func(c Cluster) string { return terminal.Printable(c.ID) }),
		of("HEARTBEAT", func(h *contract.Heartbeat) string { return duration.HumanDuration(max(0, now.Sub(h.At))) }),
		of("WATCHER", func(h *contract.Heartbeat) string { return h.Watcher.Version }),
		of("WORKER", func(h *contract.Heartbeat) string {
			if h.Worker.Build != "" {
				return h.Worker.Version + " (" + h.Worker.Build + ")"
			}
			return h.Worker.Version
		}),
		of("KUBERNETES", func(h *contract.Heartbeat) string { return h.Worker.Kubernetes }),
		operator.NewColumn("OPEN", func(c Cluster) string {
			if c.Open == nil {
				return "unknown"
			}
			return strconv.FormatInt(*c.Open, 10)
		}),
		of("UNFINISHED", func(h *contract.Heartbeat) string { return strconv.Itoa(h.Watcher.Unfinished) }),
		of("OLDEST", func(h *contract.Heartbeat) string { return oldest(h.Watcher.Oldest, now) }),
		of("MISSED", func(h *contract.Heartbeat) string {
			return strconv.Itoa(h.Watcher.ObjectivesMissed + h.Watcher.VerificationsMissed)
		}),
		operator.NewColumn("PROBLEM", func(c Cluster) string { return terminal.Printable(c.Problem) }),
	}, f.Clusters)
}

func oldest(object *contract.UnfinishedObject, now time.Time) string {
	if object == nil {
		return ""
	}
	return fmt.Sprintf("%s %s/%s", duration.HumanDuration(now.Sub(object.Created)), object.Namespace, object.Name)
}
