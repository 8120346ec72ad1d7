package main

import (
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"k8s.io/apimachinery/pkg/types"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

// burstReport is what a burst cost. Per-backup numbers are means over the burst unless they say otherwise.
type burstReport struct {
	Backups    int `json:"backups"`
	Namespaces int `json:"namespaces"`
	Watchers   int `json:"watchers"`
	// BusyLoops competed for the CPU.
	BusyLoops int `json:"busyLoops"`
	// MaxActive is the limit of the queue before Velero; 0: there was none.
	MaxActive int     `json:"maxActive"`
	Seconds   float64 `json:"seconds"`
	// PerSecond counts from the first creation to the last final status.
	PerSecond float64 `json:"backupsPerSecond"`
	// ToVelero: from the request to create the NonAdminBackup to the Velero Backup's appearance. ToStatus: from Velero's
	// completion to the status that shows it.
	ToVeleroP50 millis `json:"toVeleroP50Ms"`
	ToVeleroP95 millis `json:"toVeleroP95Ms"`
	ToStatusP50 millis `json:"toStatusP50Ms"`
	ToStatusP95 millis `json:"toStatusP95Ms"`
	ToStatusMax millis `json:"toStatusMaxMs"`
	// Requests are those for the backups: reads and writes that the API server took, and others that it refused. Apart are queue
	// positions, and what the processes ask by the clock, however many backups there are.
	ReadsPerBackup         float64            `json:"readsPerBackup"`
	WritesPerBackup        float64            `json:"writesPerBackup"`
	QueuePatchesPerBackup  float64            `json:"queuePositionPatchesPerBackup"`
	RequestsPerBackup      float64            `json:"requestsPerBackup"`
	ByTheClockPerSecond    float64            `json:"requestsByTheClockPerSecond"`
	RequestsByVerb         map[string]float64 `json:"requestsPerBackupByVerb"`
	History                historyReport      `json:"history"`
	Processes              map[string]usage   `json:"processes"`
	CPUMillisecondsPerEach map[string]float64 `json:"cpuMsPerBackup"`
}

// historyReport is about the workflow histories of a sample.
type historyReport struct {
	Sampled            int     `json:"sampled"`
	Events             float64 `json:"eventsMean"`
	EventsMax          int     `json:"eventsMax"`
	WorkflowTasksMax   int     `json:"workflowTasksMax"`
	WorkflowTasks      float64 `json:"workflowTasksMean"`
	AttributeUpsertMax int     `json:"searchAttributeUpsertsMax"`
	Bytes              float64 `json:"bytesMean"`
	Signals            float64 `json:"signalsMean"`
	RunsMax            int     `json:"runsMax"`
}

func (r *rig) report(
	ctx context.Context, keys []types.NamespacedName, begin time.Time, before map[string]usage,
) (*burstReport, error) {
	last := begin
	var toVelero, toStatus []time.Duration
	for _, key := range keys {
		begun, end := r.seen.times(key)
		created, completed := r.velero.times(key)
		if end.After(last) {
			last = end
		}
		toVelero = append(toVelero, created.Sub(begun))
		toStatus = append(toStatus, end.Sub(completed))
	}
	namespaces := map[string]bool{}
	for _, key := range keys {
		namespaces[key.Namespace] = true
	}
	seconds := last.Sub(begin).Seconds()
	b := &burstReport{
		Backups: len(keys), Namespaces: len(namespaces), Watchers: len(r.watchers),
		Seconds: seconds, PerSecond: float64(len(keys)) / seconds,
		ToVeleroP50: inMillis(percentile(toVelero, 50)), ToVeleroP95: inMillis(percentile(toVelero, 95)),
		ToStatusP50: inMillis(percentile(toStatus, 50)), ToStatusP95: inMillis(percentile(toStatus, 95)),
		ToStatusMax: inMillis(percentile(toStatus, 100)),
	}
	if err := r.awaitQuiet(ctx, keys); err != nil {
		return nil, err
	}
	if err := r.countUsage(b, before); err != nil {
		return nil, err
	}
	if err := r.countRequests(b, begin); err != nil {
		return nil, err
	}
	return b, r.countHistories(ctx, b, keys)
}

// awaitQuiet returns when no workflow of the burst runs any more and the Events have been written.
func (r *rig) awaitQuiet(ctx context.Context, keys []types.NamespacedName) error {
	for _, key := range spread(keys, sampled) {
		id, err := r.workflowID(ctx, key)
		if err != nil {
			return err
		}
		if err := r.temporal.GetWorkflow(ctx, id, "").Get(ctx, nil); err != nil {
			return fmt.Errorf("workflow %s: %w", id, err)
		}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(2 * time.Second): // Events are recorded in the background
		return nil
	}
}

func (r *rig) countUsage(b *burstReport, before map[string]usage) error {
	after, err := r.usage()
	if err != nil {
		return err
	}
	b.Processes, b.CPUMillisecondsPerEach = map[string]usage{}, map[string]float64{}
	for name, used := range after {
		used.CPUSeconds -= before[name].CPUSeconds
		b.Processes[name] = used
		b.CPUMillisecondsPerEach[name] = used.CPUSeconds * 1000 / float64(b.Backups)
	}
	return nil
}

// costSince returns what the processes have taken and requested since then, for each of so many.
func (r *rig) costSince(begin time.Time, before map[string]usage, each int) (*burstReport, error) {
	cost := &burstReport{Backups: each}
	if err := r.countUsage(cost, before); err != nil {
		return nil, err
	}
	return cost, r.countRequests(cost, begin)
}

func (r *rig) countRequests(b *burstReport, since time.Time) error {
	requests, err := r.stack.Audit()
	if err != nil {
		return err
	}
	served, reads, writes, positions, byTheClock := 0, 0, 0, 0, 0
	last := since
	kinds := map[string]int{}
	for _, request := range requests {
		ours := request.User == env.HoldfastWorker || request.User == env.HoldfastWatcher
		if !ours || request.At.Before(since) || request.Verb == "watch" {
			continue
		}
		if request.At.After(last) {
			last = request.At
		}
		resource := request.Resource
		if request.Subresource != "" {
			resource += "/" + request.Subresource
		}
		if resource == "" {
			resource = "(probes)"
		}
		kinds[request.Verb+" "+resource]++
		switch {
		case request.User == env.HoldfastWatcher && request.Resource == oadpv1alpha1.ResourceNonAdminBackups:
			positions++
			continue
		case asksByTheClock(request):
			byTheClock++
			continue
		case request.Verb == "get" || request.Verb == "list":
			reads++
		case request.Wrote():
			writes++
		}
		served++
	}
	each := func(count int) float64 { return float64(count) / float64(b.Backups) }
	b.RequestsPerBackup, b.ReadsPerBackup = each(served), each(reads)
	b.WritesPerBackup, b.QueuePatchesPerBackup = each(writes), each(positions)
	b.ByTheClockPerSecond = float64(byTheClock) / last.Sub(since).Seconds()
	b.RequestsByVerb = map[string]float64{}
	for kind, count := range kinds {
		b.RequestsByVerb[kind] = each(count)
	}
	return nil
}

// periodic: a probe, a lease, or whether another controller is there.
func periodic(request env.AuditedRequest) bool {
	return request.Resource == "" || request.Resource == "leases" || request.Resource == "deployments"
}

// asksByTheClock: what is periodic, or, of a watcher, anything: it reads from its cache, but for the policy every other second.
func asksByTheClock(request env.AuditedRequest) bool {
	return periodic(request) || request.User == env.HoldfastWatcher
}

// sampled histories are read of each burst.
const sampled = 100

// spread returns at most count keys, evenly spread.
func spread(keys []types.NamespacedName, count int) []types.NamespacedName {
	if len(keys) <= count {
		return keys
	}
	picked := make([]types.NamespacedName, count)
	for i := range count {
		picked[i] = keys[i*len(keys)/count]
	}
	return picked
}

func (r *rig) workflowID(ctx context.Context, key types.NamespacedName) (string, error) {
	nab := &oadpv1alpha1.NonAdminBackup{}
	if err := r.client.Get(ctx, key, nab); err != nil {
		return "", err
	}
	return contract.WorkflowID(r.stack.ClusterID(), contract.KindBackup, contract.ObjectRef{
		Namespace: key.Namespace, Name: key.Name, UID: string(nab.UID),
	}), nil
}

func (r *rig) countHistories(ctx context.Context, b *burstReport, keys []types.NamespacedName) error {
	keys = spread(keys, sampled)
	h := historyReport{Sampled: len(keys)}
	each := 1 / float64(len(keys))
	for _, key := range keys {
		id, err := r.workflowID(ctx, key)
		if err != nil {
			return err
		}
		counts, err := r.countHistory(ctx, id)
		if err != nil {
			return err
		}
		h.Events += float64(counts.events) * each
		h.Bytes += float64(counts.bytes) * each
		h.Signals += float64(counts.signals) * each
		h.WorkflowTasks += float64(counts.tasks) * each
		h.EventsMax = max(h.EventsMax, counts.events)
		h.WorkflowTasksMax = max(h.WorkflowTasksMax, counts.tasks)
		h.AttributeUpsertMax = max(h.AttributeUpsertMax, counts.upserts)
		h.RunsMax = max(h.RunsMax, counts.runs)
	}
	b.History = h
	return nil
}

type historyCounts struct{ events, bytes, tasks, upserts, runs, signals int }

// countHistory adds up all runs of a workflow ID: a run that a late signal started costs too.
func (r *rig) countHistory(ctx context.Context, id string) (counts historyCounts, err error) {
	counts.runs, err = r.readHistories(ctx, id, counts.add)
	return counts, err
}

// readHistories calls visit with each event of all runs of a workflow ID, and returns how many runs there are.
func (r *rig) readHistories(ctx context.Context, id string, visit func(*historypb.HistoryEvent)) (int, error) {
	runs, err := r.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: fmt.Sprintf("WorkflowId = '%s'", id),
	})
	if err != nil {
		return 0, fmt.Errorf("list the runs of %s: %w", id, err)
	}
	for _, run := range runs.Executions {
		events := r.temporal.GetWorkflowHistory(ctx, id, run.Execution.RunId, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			event, err := events.Next()
			if err != nil {
				return 0, fmt.Errorf("history of %s: %w", id, err)
			}
			visit(event)
		}
	}
	return len(runs.Executions), nil
}

func (c *historyCounts) add(event *historypb.HistoryEvent) {
	c.events++
	c.bytes += event.Size()
	switch event.EventType {
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
		c.tasks++
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		c.signals++
	case enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
		c.upserts++
	}
}
