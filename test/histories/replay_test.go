package histories_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"

	"holdfast.dev/holdfast/test/histories"
	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

func recorded(t *testing.T) []histories.Recorded {
	t.Helper()
	all, err := histories.Read(histories.Baseline)
	require.NoError(t, err)
	require.NotEmpty(t, all, "no histories: record them with `make histories`")
	return all
}

func TestReplay(t *testing.T) {
	for _, each := range recorded(t) {
		t.Run(strings.TrimSuffix(filepath.Base(each.Path), ".json"), func(t *testing.T) {
			t.Parallel()
			replayer := worker.NewWorkflowReplayer()
			workflows.Register(replayer, call.Options{})
			require.NoError(t, replayer.ReplayWorkflowHistory(nil, each.History))
		})
	}
}

func TestTheBaselineIsSmall(t *testing.T) {
	var size int64
	for _, each := range recorded(t) {
		size += each.Size
	}
	assert.LessOrEqual(t, size, int64(histories.Limit))
}

// The rollouts build that commit, and what it recorded is worth something only if this code came from it.
func TestTheBaselineIsOfACommitThatThisOneDescendsFrom(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(histories.Baseline, histories.CommitFile))
	require.NoError(t, err)
	require.Regexp(t, "^[0-9a-f]{40}\n$", string(content))
	err = tools.CheckAncestor(t.Context(), strings.TrimSpace(string(content)))
	if errors.Is(err, tools.ErrShallow) {
		t.Skip(err)
	}
	require.NoError(t, err)
}

// TestTableOfTheBaseline prints what each workflow type is recorded with, and fails on a hole without a reason.
func TestTableOfTheBaseline(t *testing.T) {
	runs, events, paths, has := map[string]int{}, map[string]int{}, map[string]map[string]bool{}, map[string]map[histories.Rare]int{}
	for _, each := range recorded(t) {
		name := each.Type()
		if has[name] == nil {
			paths[name], has[name] = map[string]bool{}, map[histories.Rare]int{}
		}
		runs[name]++
		events[name] += len(each.History.Events)
		for path := range each.Paths() {
			paths[name][path] = true
		}
		for rare, is := range each.Rare() {
			if is {
				has[name][rare]++
			}
		}
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%-30s%6s%8s%7s", "", "runs", "events", "paths")
	for _, rare := range histories.Rares {
		fmt.Fprintf(&table, "%24s", rare)
	}
	for _, kind := range workflows.Kinds() {
		name := kind.Workflow
		fmt.Fprintf(&table, "\n%-30s%6d%8d%7d", name, runs[name], events[name], len(paths[name]))
		if histories.Newer[name] {
			assert.Zero(t, runs[name], "%s is recorded: it is not newer", name)
			continue
		}
		for _, rare := range histories.Rares {
			why := holes[name][rare]
			switch count := has[name][rare]; {
			case count > 0:
				fmt.Fprintf(&table, "%24d", count)
				assert.Zero(t, why, "%s has %q: it needs no reason", name, rare)
			default:
				fmt.Fprintf(&table, "%24s", "-")
				assert.NotEmpty(t, why.why, "%s has no history with %q", name, rare)
			}
		}
	}
	t.Log("\n" + table.String())
}

type (
	reasons = map[histories.Rare]reason
	// reason says why a workflow type has no history with a rare event.
	reason struct {
		why string
		// shown names a test of the event for this type all the same, with its folder; empty if the type cannot have the event.
		shown string
	}
)

const (
	always = "test/histories.TestReplayOfATaskThatTimedOut"
	late   = "test/histories.TestReplayOfACompletionThatWasRefused"
	serves = "workflows/entity.TestNoEventIsLost"
	killed = "test/outage/fdb.TestKilledAnywhere"
)

var (
	toCompletion = reason{"it runs to its end in a few dozen events", ""}
	noSignals    = reason{"it handles no signals", ""}
	noLocal      = reason{"its activities have no local form", ""}
	fewEvents    = reason{"it waits for one answer or decision, and would need some thousand signals meanwhile", serves}
	// A turn has its own loop.
	podWaits = reason{
		"it does so only while it waits for hours for a pod", "workflows/fdb/expiry.TestTheEndIsReportedWhenThePodIsReallyGone",
	}
	podIsGone = reason{"its signals are the events of its pod, which is gone some activities before its last task", late}
	// A kill at a local activity is one within a task.
	standsOutside = reason{
		"workers are killed at activities, and its tasks have no local one: one times out by chance, on its way to a killed worker",
		always,
	}
	killedInLong = reason{
		"a worker is killed in its listing, the only activity within its tasks, by `make test-long`; `make test` has recorded", killed,
	}
	awayInLong = reason{"the API server is away at its listing in `make test-long`; `make test` has recorded", killed}
)

// holes are what a workflow type is not recorded with, and why.
var holes = map[string]reasons{
	contract.KindFinalization.Workflow: {
		histories.ContinuedAsNew: toCompletion, histories.AfterContinuation: toCompletion, histories.CompletionRefused: noSignals,
	},
	contract.KindDownload.Workflow: {histories.ContinuedAsNew: fewEvents, histories.AfterContinuation: fewEvents},
	contract.KindLocation.Workflow: {histories.ContinuedAsNew: fewEvents, histories.AfterContinuation: fewEvents},
	contract.KindSynchronization.Workflow: {
		histories.ContinuedAsNew: toCompletion, histories.AfterContinuation: toCompletion, histories.CompletionRefused: noSignals,
		histories.LocalFailed: noLocal,
	},
	contract.KindCollection.Workflow: {
		histories.ContinuedAsNew: toCompletion, histories.AfterContinuation: toCompletion, histories.CompletionRefused: noSignals,
		histories.LocalFailed: noLocal, histories.TaskTimeout: standsOutside,
	},
	contract.KindFDBThrottle.Workflow:    {histories.LocalFailed: awayInLong, histories.TaskTimeout: killedInLong},
	contract.KindFDBExpiryQueue.Workflow: {histories.LocalFailed: awayInLong},
	contract.KindFDBExpiry.Workflow: {
		histories.ContinuedAsNew: podWaits, histories.AfterContinuation: podWaits, histories.CompletionRefused: podIsGone,
	},
	contract.KindFDBRestore.Workflow: {histories.TaskTimeout: {
		"`make test` kills a worker in its planning, and other histories of the recording had filled the 5 MiB", killed,
	}},
	contract.KindFDBCluster.Workflow: {
		histories.Completed: {
			"it ends ten minutes after its last member has left, when the suite has ended",
			"workflows/fdb/cluster.TestAgentsArePausedOnlyWhenAllWantIt",
		},
		histories.LocalFailed: noLocal, histories.TaskTimeout: standsOutside, histories.CompletionRefused: noSignals,
	},
	contract.KindFDBContainer.Workflow: {
		histories.Completed: {
			"it ends ten minutes after its last user has left, when the suite has ended",
			"workflows/fdb/container.TestAGuardEndsWhenItIsNotNeeded",
		},
		histories.LocalFailed: noLocal, histories.TaskTimeout: standsOutside, histories.CompletionRefused: noSignals,
	},
}

// Where a reason names a test, there is one.
func TestTheReasonsNameTests(t *testing.T) {
	for name, reasons := range holes {
		for rare, reason := range reasons {
			if reason.shown == "" {
				continue
			}
			folder, test, _ := strings.Cut(reason.shown, ".")
			files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
			require.NoError(t, err)
			assert.True(t, slices.ContainsFunc(files, func(file string) bool {
				content, err := os.ReadFile(file)
				return err == nil && strings.Contains(string(content), "func "+test+"(")
			}), "%s, %q: no %s", name, rare, reason.shown)
		}
	}
}
