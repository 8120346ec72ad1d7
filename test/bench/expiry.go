package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// expiryTurn is how long a turn lasts, in time that is skipped.
	expiryTurn = 3 * time.Second
	// expirySmall is the size of the queue that the time of a turn is compared with.
	expirySmall = 100
	// expiryPatience bounds the round.
	expiryPatience = time.Hour
	// eventsOfTask are those of a workflow task: scheduled, started, completed.
	eventsOfTask = 3
)

// expiryReport is what a round of the queue of expirations costs: one turn of each backup. The queue's own code runs in time
// that is skipped. Events are counted as Temporal writes them if all that comes has a workflow task of its own: at most so many.
type expiryReport struct {
	Backups        int     `json:"backups"`
	Turns          int     `json:"turns"`
	EventsPerRound int     `json:"historyEventsPerRound"`
	EventsPerTurn  float64 `json:"historyEventsPerTurn"`
	// InputBytes is the size of what a run leaves to the next, HeapKiB what its entries take in a worker's memory.
	InputBytes int     `json:"continueAsNewBytes"`
	HeapKiB    float64 `json:"entriesHeapKiB"`
	// RoundMs depends on the machine. PerTurnRatio is the time of a turn over that in a queue of expirySmall backups.
	RoundMs      float64 `json:"roundMs"`
	PerTurnRatio float64 `json:"perTurnRatio"`
}

// measureExpiry runs a round with that many backups, and one with a few to compare it with.
func measureExpiry(backups int) (*expiryReport, error) {
	if _, err := runExpiryRound(1); err != nil { // the first in a process is slow
		return nil, err
	}
	few, err := runExpiryRound(expirySmall)
	if err != nil {
		return nil, err
	}
	all, err := runExpiryRound(backups)
	if err != nil {
		return nil, err
	}
	r := &expiryReport{
		Backups: backups, Turns: len(all.last), EventsPerRound: all.events, EventsPerTurn: float64(all.events) / float64(backups),
		RoundMs:      all.wall.Seconds() * 1000,
		PerTurnRatio: (all.wall.Seconds() / float64(backups)) / (few.wall.Seconds() / expirySmall),
	}
	r.InputBytes = len(all.input)
	r.HeapKiB, err = heapOf(all.input)
	return r, err
}

// expiryRound is a queue, the turns that it begins, and what it costs.
type expiryRound struct {
	env     *testsuite.TestWorkflowEnvironment
	backups int

	mu     sync.Mutex
	last   map[contract.ObjectRef]int64 // when the last turn of each began
	events int
	wall   time.Duration
	input  []byte // of the next run
}

func runExpiryRound(backups int) (*expiryRound, error) {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	r := &expiryRound{env: suite.NewTestWorkflowEnvironment(), backups: backups, last: map[contract.ObjectRef]int64{}}
	r.env.SetTestTimeout(expiryPatience)
	workflows.Register(r.env, call.Options{FDBExpiryMinInterval: max(24*time.Hour, 2*time.Duration(backups)*expiryTurn)})
	r.env.RegisterActivityWithOptions(r.find, activity.RegisterOptions{Name: contract.FindFDBExpiries.Name})
	r.env.RegisterActivityWithOptions(r.begin, activity.RegisterOptions{Name: contract.StartFDBExpiry.Name})
	r.env.RegisterActivityWithOptions(r.describe, activity.RegisterOptions{Name: contract.DescribeWorkflows.Name})
	r.env.SetOnLocalActivityCompletedListener(func(*activity.Info, converter.EncodedValue, error) { r.count(1) })
	r.env.SetOnTimerScheduledListener(func(string, time.Duration) { r.count(1) })
	r.env.SetOnTimerFiredListener(func(string) { r.count(1 + eventsOfTask) })
	r.env.SetOnTimerCanceledListener(func(string) { r.count(1) })
	// Its scheduling, start and end, and the task that takes its result.
	r.env.SetOnActivityCompletedListener(func(*activity.Info, converter.EncodedValue, error) { r.count(3 + eventsOfTask) })
	r.env.RegisterDelayedCallback(func() { r.env.SetContinueAsNewSuggested(true); r.signal(contract.FDBTurnReport{}) },
		time.Duration(backups+1)*expiryTurn)
	begun := time.Now()
	r.count(1 + eventsOfTask) // its start
	r.env.ExecuteWorkflow(contract.KindFDBExpiryQueue.Workflow, contract.FDBExpiryQueueInput{Cluster: "bench"})
	r.wall = time.Since(begun)
	var next *workflow.ContinueAsNewError
	if err := r.env.GetWorkflowError(); !errors.As(err, &next) {
		return nil, fmt.Errorf("the queue of expirations did not continue as new: %w", err)
	}
	for _, payload := range next.Input.GetPayloads() {
		r.input = append(r.input, payload.GetData()...)
	}
	if len(r.last) != backups {
		return nil, fmt.Errorf("%d of %d backups had a turn", len(r.last), backups)
	}
	return r, nil
}

func (r *expiryRound) count(events int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events += events
}

func (r *expiryRound) signal(report contract.FDBTurnReport) {
	r.count(1 + eventsOfTask)
	r.env.SignalWorkflow(contract.SignalExpiryTurn, report)
}

// find is contract.FindFDBExpiries: it returns no more than a queue can hold, those first whose last turn is the longest ago.
func (r *expiryRound) find(_ context.Context, in contract.FDBExpiryQueueInput) (contract.FDBExpiriesFound, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entries := make([]contract.FDBQueueEntry, r.backups)
	for i := range entries {
		ref := contract.ObjectRef{
			Namespace: fmt.Sprintf("tenant-%02d", i%20), Name: fmt.Sprintf("database-%04d", i),
			UID: fmt.Sprintf("%08d-1111-2222-3333-444444444444", i),
		}
		entries[i] = contract.FDBQueueEntry{Job: contract.FDBJobExpire, Ref: ref, Last: r.last[ref]}
	}
	if len(entries) <= contract.MaxFound {
		return contract.FDBExpiriesFound{Entries: entries}, nil
	}
	slices.SortStableFunc(entries, func(a, b contract.FDBQueueEntry) int { return cmp.Compare(a.Last, b.Last) })
	namespace := func(entry contract.FDBQueueEntry) string { return entry.Ref.Namespace }
	front, beyond := contract.Front(entries, contract.MaxFound, namespace, in.Carried.Namespaces(contract.LaneExpire),
		contract.NamespacesOf(entries, namespace))
	beyond.NotBefore = entries[contract.MaxFound].Last
	return contract.FDBExpiriesFound{Entries: front, Beyond: []contract.Beyond{contract.LaneExpire: beyond}}, nil
}

func (r *expiryRound) begin(_ context.Context, in contract.FDBExpiryInput) error {
	r.mu.Lock()
	r.last[in.Ref] = in.Turn
	r.mu.Unlock()
	report := contract.FDBTurnReport{Ref: in.Ref, Turn: in.Turn, Ended: true, Outcome: contract.FDBTurnDone}
	r.env.RegisterDelayedCallback(func() { r.signal(report) }, expiryTurn)
	return nil
}

func (r *expiryRound) describe(context.Context, contract.Workflows) (contract.Workflows, error) {
	return contract.Workflows{}, nil
}

// heapOf is what the state of a queue takes in memory, in KiB: the mean of some copies.
func heapOf(input []byte) (float64, error) {
	const copies = 20
	held := make([]contract.FDBExpiryQueueInput, copies)
	before := heapNow()
	for i := range held {
		if err := json.Unmarshal(input, &held[i]); err != nil {
			return 0, fmt.Errorf("read what the queue leaves to the next run: %w", err)
		}
	}
	used := float64(heapNow()) - float64(before)
	runtime.KeepAlive(held)
	return used / copies / 1024, nil
}

func heapNow() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func (r *expiryReport) print(out io.Writer) {
	if r == nil {
		return
	}
	fmt.Fprintf(out, "\nA round of the queue of expirations, %d backups, one at a time:\n", r.Backups)
	fmt.Fprintf(out, "  %10d  history events, %.1f a turn\n", r.EventsPerRound, r.EventsPerTurn)
	fmt.Fprintf(out, "  %10d  bytes left to the next run, %d a backup\n", r.InputBytes, r.InputBytes/r.Backups)
	fmt.Fprintf(out, "  %10.0f  KiB of a worker's memory for the entries\n", r.HeapKiB)
	fmt.Fprintf(out, "  %10.0f  ms of the queue's own work; a turn takes %.1f times as long as with %d backups\n\n",
		r.RoundMs, r.PerTurnRatio, expirySmall)
}
