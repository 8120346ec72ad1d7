package gate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"holdfast.dev/holdfast/workflows/contract"
)

// Bounds of a gate: what it lists, and what it replays of that.
const (
	pageSize = 1000
	// maxListed are the newest open workflows: visibility gives no other order.
	maxListed   = 200_000
	defaultEach = 10
	maxEach     = 100
	// maxGroups is how many types and phases are groups of their own; the workflows of further ones are one group for each type.
	maxGroups = 500
	// maxChosen is how many workflows are replayed.
	maxChosen = 1000
)

// group are the open workflows of one type and phase. Those of a phase have the same steps behind them: a few stand for all.
type group struct {
	each   int
	newest []contract.GateFinding
	// oldest is a ring: the last ones listed.
	oldest []contract.GateFinding
	next   int
}

// add adds one that is older than all before.
func (g *group) add(run contract.GateFinding) {
	if len(g.newest) < g.each {
		g.newest = append(g.newest, run)
		return
	}
	if len(g.oldest) < g.each {
		g.oldest = append(g.oldest, run)
		return
	}
	g.oldest[g.next] = run
	g.next = (g.next + 1) % g.each
}

// chosen lists the oldest and the newest in turns, the oldest first.
func (g *group) chosen() []contract.GateFinding {
	oldest := slices.Concat(g.oldest[g.next:], g.oldest[:g.next])
	slices.Reverse(oldest)
	var all []contract.GateFinding
	for i := range max(len(oldest), len(g.newest)) {
		if i < len(oldest) {
			all = append(all, oldest[i])
		}
		if i < len(g.newest) {
			all = append(all, g.newest[i])
		}
	}
	return all
}

// open are the open workflows of a task queue.
type open struct {
	each     int
	listed   int
	unlisted bool
	counts   map[string]int
	groups   map[string]*group
}

// list lists the open workflows of a task queue, the newest first, but gates.
func (a *Activities) list(ctx context.Context, in contract.GateRequest) (*open, error) {
	found := &open{each: min(cmp.Or(max(in.Each, 0), defaultEach), maxEach), counts: map[string]int{}, groups: map[string]*group{}}
	request := &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: a.Namespace, PageSize: pageSize,
		Query: fmt.Sprintf("TaskQueue = '%s' AND ExecutionStatus = 'Running'", strings.ReplaceAll(in.TaskQueue, "'", "''")),
	}
	for {
		page, err := a.Temporal.ListWorkflow(ctx, request)
		if err != nil {
			return nil, err
		}
		for _, run := range page.Executions {
			found.add(run)
		}
		activity.RecordHeartbeat(ctx, progress{Listed: found.listed})
		if request.NextPageToken = page.NextPageToken; len(request.NextPageToken) == 0 {
			return found, nil
		}
		if found.listed >= maxListed {
			found.unlisted = true
			return found, nil
		}
	}
}

func (o *open) add(run *workflowpb.WorkflowExecutionInfo) {
	name := run.GetType().GetName()
	if name == contract.KindGate.Workflow {
		return
	}
	o.listed++
	o.counts[name]++
	key := strings.Join([]string{
		name, attribute(run.GetSearchAttributes(), contract.AttributePhase.GetName()),
		attribute(run.GetSearchAttributes(), contract.AttributeVeleroPhase.GetName()),
	}, "\x00")
	if o.groups[key] == nil && len(o.groups) >= maxGroups {
		key = name
	}
	if o.groups[key] == nil {
		o.groups[key] = &group{each: o.each}
	}
	o.groups[key].add(contract.GateFinding{
		Workflow: name, ID: run.GetExecution().GetWorkflowId(), Run: run.GetExecution().GetRunId(),
	})
}

// attribute returns a search attribute, which is a word of ours or of Velero's, never encrypted.
func attribute(attributes *commonpb.SearchAttributes, name string) string {
	var value string
	if payload := attributes.GetIndexedFields()[name]; payload != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(payload, &value) // one that is no text makes no group
	}
	return value
}

// choose returns what is to be replayed: each group in turn gives one, so that the bound takes from the largest.
func (o *open) choose() []contract.GateFinding {
	var groups [][]contract.GateFinding
	for _, key := range slices.Sorted(maps.Keys(o.groups)) {
		groups = append(groups, o.groups[key].chosen())
	}
	var chosen []contract.GateFinding
	for i := 0; ; i++ {
		more := false
		for _, group := range groups {
			if i < len(group) && len(chosen) < maxChosen {
				chosen, more = append(chosen, group[i]), true
			}
		}
		if !more {
			return chosen
		}
	}
}

// types counts by type, sorted by name.
func (o *open) types(replayed map[string]int) []contract.GateType {
	var types []contract.GateType
	for _, name := range slices.Sorted(maps.Keys(o.counts)) {
		types = append(types, contract.GateType{Workflow: name, Open: o.counts[name], Replayed: replayed[name]})
	}
	return types
}
