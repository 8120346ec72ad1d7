package entity_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	"pgregory.net/rapid"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/contract"
)

const gone = `{"found":false}`

// served are the workflows that serve one object each: what reads it, what it looks like while its workflow waits, and when that is
// settled.
var served = map[string]struct{ read, waits, settled string }{
	contract.WorkflowBackup: {
		contract.RefreshBackup.Name, `{"found":true,"flow":1,"phase":"Created","finalizer":true,"specJudged":true,"accepted":true,
			"everCreated":true,"velero":{"exists":true,"name":"b","phase":"InProgress","running":true}}`, gone,
	},
	contract.WorkflowRestore: {
		contract.RefreshRestore.Name, `{"found":true,"phase":"Created","finalizer":true,"specJudged":true,"accepted":true,
			"everCreated":true,"velero":{"exists":true,"name":"r","phase":"InProgress","atWork":true}}`, gone,
	},
	contract.WorkflowLocation: {
		contract.RefreshLocation.Name, `{"found":true,"beingDeleted":true,"phase":"Deleting","remains":1,"held":"a Secret"}`, gone,
	},
	contract.WorkflowDownload: {
		contract.RefreshDownload.Name, `{"found":true,"judged":true,"velero":{"exists":true,"name":"d","current":true}}`, gone,
	},
	contract.WorkflowApproval:   {contract.RefreshApproval.Name, `{"needed":true}`, `{"needed":false}`},
	contract.WorkflowFDBBackup:  {contract.ObserveFDBBackup.Name, `{"found":true,"clusterGone":true}`, gone},
	contract.WorkflowFDBRestore: {contract.ObserveFDBRestore.Name, `{"found":true,"clusterGone":true}`, gone},
}

// others serve no object: coordinators, which answer requests, and what runs to its end without signals.
var others = []string{
	contract.WorkflowFDBThrottle, contract.WorkflowFDBExpiryQueue, contract.WorkflowFDBCluster, contract.WorkflowFDBContainer,
	contract.WorkflowFinalization, contract.WorkflowSynchronization, contract.WorkflowCollection, contract.WorkflowFDBExpiry,
}

// registered collects the names of workflows.
type registered struct {
	*testsuite.TestWorkflowEnvironment
	names []string
}

func (r *registered) RegisterWorkflowWithOptions(_ any, options workflow.RegisterOptions) {
	r.names = append(r.names, options.Name)
}

func TestEveryWorkflowServesAnObjectOrIsNamed(t *testing.T) {
	all := &registered{}
	workflows.Register(all, workflows.Options{})
	names := others
	for name := range served {
		names = append(names, name)
	}
	assert.ElementsMatch(t, names, all.names)
}

// scene is an object that changes at any moment, and a run that serves it.
type scene struct {
	*testsuite.TestWorkflowEnvironment
	read           string
	waits, settled json.RawMessage
	version, seen  int
	waiting, over  bool   // over: nothing that happens keeps the run waiting any more
	duringReads    []bool // for each read that is to come: something happens after it, before the run knows its result
	reads          int
}

// RegisterActivityWithOptions implements worker.ActivityRegistry: every activity returns the present state.
func (s *scene) RegisterActivityWithOptions(_ any, options activity.RegisterOptions) {
	name := options.Name
	s.TestWorkflowEnvironment.RegisterActivityWithOptions(func(context.Context, any) (any, error) {
		state := s.settled
		if s.waiting {
			state = s.waits
		}
		if name == s.read {
			s.seen = s.version
			s.reads++
			if s.reads <= len(s.duringReads) && s.duringReads[s.reads-1] {
				s.happens(!s.waiting)
			}
		}
		return state, nil
	}, activity.RegisterOptions{Name: name, DisableAlreadyRegisteredCheck: true})
}

// happens changes the object, as an event tells the run.
func (s *scene) happens(waiting bool) {
	if s.IsWorkflowCompleted() {
		return
	}
	s.version++
	s.waiting = waiting && !s.over
	s.SignalWorkflow(contract.SignalChanged, contract.Changed{})
}

// TestNoEventIsLost: whenever something happens, also while the object is being read, the run has read the object since when it ends
// or goes on as a new one.
func TestNoEventIsLost(t *testing.T) {
	for name, kind := range served {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
				env.SetTestTimeout(time.Minute)
				s := &scene{
					TestWorkflowEnvironment: env, read: kind.read,
					waits: json.RawMessage(kind.waits), settled: json.RawMessage(kind.settled),
					waiting:     rapid.Bool().Draw(t, "waits at first"),
					duringReads: rapid.SliceOfN(rapid.Bool(), 0, 5).Draw(t, "during reads"),
				}
				workflows.Register(env, workflows.Options{})
				registerAll(s)
				const most = 20
				for range rapid.IntRange(0, 5).Draw(t, "events") {
					at := rapid.IntRange(0, 2*most).Draw(t, "at, in half seconds")
					waiting := rapid.Bool().Draw(t, "waits then")
					env.RegisterDelayedCallback(func() { s.happens(waiting) }, time.Duration(at)*time.Second/2)
				}
				if rapid.Bool().Draw(t, "the history is long") {
					at := rapid.IntRange(0, 2*most).Draw(t, "at, in half seconds")
					env.RegisterDelayedCallback(func() { env.SetContinueAsNewSuggested(true) }, time.Duration(at)*time.Second/2)
				}
				env.RegisterDelayedCallback(func() {
					s.over = true
					s.happens(false)
				}, (most+1)*time.Second)
				env.ExecuteWorkflow(name, map[string]any{
					"cluster": "west", "ref": contract.ObjectRef{Namespace: "team", Name: "a", UID: "u"},
				})
				var next *workflow.ContinueAsNewError
				err := env.GetWorkflowError()
				if !env.IsWorkflowCompleted() || (err != nil && !errors.As(err, &next)) {
					t.Fatalf("completed: %v, error: %v", env.IsWorkflowCompleted(), err)
				}
				if s.seen != s.version {
					t.Fatalf("the run ended having seen event %d of %d", s.seen, s.version)
				}
			})
		})
	}
}

func registerAll(s *scene) {
	(&activities.Backups{}).Register(s)
	(&activities.Restores{}).Register(s)
	(&activities.Finalizations{}).Register(s)
	(&activities.Locations{}).Register(s)
	(&activities.Downloads{}).Register(s)
	(&activities.FDBBackups{}).Register(s)
	(&activities.FDBRestores{}).Register(s)
	(&activities.FDBTools{}).Register(s)
	(&activities.FDBRestoreTools{}).Register(s)
	(&activities.FDBCoordination{Temporal: client.Client(nil)}).Register(s)
	(&activities.FDBExpiryCoordination{}).Register(s)
}
