package workflows_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

// registrations are the options of the workflows that a worker knows.
type registrations struct {
	worker.WorkflowRegistry
	behaviours map[string]workflow.VersioningBehavior
}

func (r *registrations) RegisterWorkflowWithOptions(_ any, options workflow.RegisterOptions) {
	r.behaviours[options.Name] = options.VersioningBehavior
}

// What runs to its end in minutes stays with its version; what waits, or never ends, cannot.
func TestOnlyWhatEndsSoonIsPinnedToItsVersion(t *testing.T) {
	all := &registrations{behaviours: map[string]workflow.VersioningBehavior{}}
	workflows.Register(all, call.Options{})
	var pinned []string
	for name, behaviour := range all.behaviours {
		if behaviour != workflow.VersioningBehaviorAutoUpgrade {
			pinned = append(pinned, name)
		}
	}
	assert.ElementsMatch(t, []string{
		"BackupPlanStart", "BackupSynchronization", "DefaultPlans", "FDBExpiry", "GarbageCollection", "RestoreFinalization",
		"RolloutGate",
	}, pinned)
}

func TestEachQueueCarriesItsOwnWorkflows(t *testing.T) {
	all := &registrations{behaviours: map[string]workflow.VersioningBehavior{}}
	for _, queue := range []contract.Queue{contract.QueueVelero, contract.QueueFDB, contract.QueueShared} {
		before := len(all.behaviours)
		workflows.RegisterQueue(all, queue, call.Options{})
		assert.Greater(t, len(all.behaviours), before)
	}
	assert.Len(t, all.behaviours, len(workflows.Kinds()), "no two kinds have a name, and no queue is left out")
}

func TestKindsAreToldApart(t *testing.T) {
	ids := map[string]string{}
	for _, kind := range workflows.Kinds() {
		assert.NotEmpty(t, kind.Summary, kind.Workflow)
		assert.NotEmpty(t, kind.Activities, kind.Workflow)
		if kind.Served != nil {
			assert.NotEmpty(t, kind.Kubernetes, kind.Workflow)
		}
		if kind.ID != "" {
			assert.Empty(t, ids[kind.ID], "%s has the ID of %s", kind.Workflow, kind.ID)
			ids[kind.ID] = kind.Workflow
		}
	}
}

// All names are as long as Kubernetes allows. Temporal's SQL stores hold 255 characters of an ID and of a search attribute.
func TestEachKindFitsIntoEveryStore(t *testing.T) {
	const column, beforeASchedule, afterItsWorkflows = 255, "temporal-sys-scheduler:", "-2026-08-01T12:00:00Z"
	cluster := strings.Repeat("c", 63)
	ref := contract.ObjectRef{
		Namespace: strings.Repeat("n", 63), Name: strings.Repeat("o", 253), UID: "11111111-1111-1111-1111-111111111111",
	}
	for _, kind := range workflows.Kinds() {
		id := contract.WorkflowID(cluster, kind.Kind, ref)
		assert.LessOrEqual(t, len(id), column, kind.Workflow)
		switch kind.Workflow {
		case contract.KindPlan.Workflow:
			assert.LessOrEqual(t, len(beforeASchedule+id), column, "the workflow of its Schedule")
		case contract.KindPlanStart.Workflow:
			assert.LessOrEqual(t, len(id+afterItsWorkflows), column, "what the Schedule starts")
		}
		assert.LessOrEqual(t, len(beforeASchedule+contract.ScheduleID(cluster, kind.Kind)), column, kind.Workflow)
		assert.LessOrEqual(t, len(kind.TaskQueue(cluster)), column, kind.Workflow)
		for key, value := range kind.Attributes(cluster, ref).GetUntypedValues() {
			assert.LessOrEqual(t, len(value.(string)), column, "%s of %s", key.GetName(), kind.Workflow)
		}
		assert.LessOrEqual(t, len(kind.SummaryOf(ref.String())), 350, kind.Workflow)
	}
}
