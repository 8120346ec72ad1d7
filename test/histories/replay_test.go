package histories_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"

	"holdfast.dev/holdfast/test/histories"
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
	commit, err := os.ReadFile(filepath.Join(histories.Baseline, histories.CommitFile))
	require.NoError(t, err)
	assert.Regexp(t, "^[0-9a-f]{40}\n$", string(commit))
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
		for _, rare := range histories.Rares {
			why := holes[name][rare]
			switch count := has[name][rare]; {
			case count > 0:
				fmt.Fprintf(&table, "%24d", count)
				assert.Empty(t, why, "%s has %q: it needs no reason", name, rare)
			default:
				fmt.Fprintf(&table, "%24s", "-")
				assert.NotEmpty(t, why, "%s has no history with %q", name, rare)
			}
		}
	}
	t.Log("\n" + table.String())
}

type reasons = map[histories.Rare]string

// Why a workflow type has no history with a rare event.
const (
	toCompletion = "it runs to its end in a few dozen events"
	fewEvents    = "it waits for one answer or decision, and would need some thousand signals meanwhile; its loop is that of all objects"
	noSignals    = "it handles no signals"
	noLocal      = "its activities have no local form"
	notAway      = "its listing met no outage of the API server; call.LocalFirst is that of all others"
	isShared     = "it ends minutes, or backups, after the last request, when the suite has ended"
	byChance     = "no worker was killed in one of its short workflow tasks; the loop is that of all others"
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
		histories.LocalFailed: noLocal, histories.TaskTimeout: byChance,
	},
	contract.KindFDBThrottle.Workflow:    {histories.LocalFailed: notAway, histories.TaskTimeout: byChance},
	contract.KindFDBExpiryQueue.Workflow: {histories.LocalFailed: notAway},
	contract.KindFDBExpiry.Workflow: {
		histories.ContinuedAsNew: fewEvents, histories.AfterContinuation: fewEvents, histories.CompletionRefused: byChance,
	},
	contract.KindFDBRestore.Workflow: {histories.TaskTimeout: byChance},
	contract.KindFDBCluster.Workflow: {
		histories.Completed: isShared, histories.LocalFailed: noLocal, histories.TaskTimeout: byChance, histories.CompletionRefused: noSignals,
	},
	contract.KindFDBContainer.Workflow: {
		histories.Completed: isShared, histories.LocalFailed: noLocal, histories.TaskTimeout: byChance, histories.CompletionRefused: noSignals,
	},
}
