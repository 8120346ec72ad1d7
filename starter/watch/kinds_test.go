package watch

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/starter/watch/schedules"
	"holdfast.dev/holdfast/starter/watch/watchtest"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/contract"
)

// The events of a kind need what is known only when it is made.
func TestEachKindHandlesTheEventsOfItsSources(t *testing.T) {
	for _, watcher := range newStation(t).kinds {
		for _, source := range reflect.ValueOf(watcher).Elem().FieldByName("Sources").Interface().([]controllers.Source) {
			before := source.Of.Object.DeepCopyObject().(client.Object)
			before.SetNamespace("team")
			after := watchtest.Edited(before, func(object client.Object) {
				object.SetLabels(map[string]string{"a": "b"})
				object.SetGeneration(2)
			})
			assert.NotPanics(t, func() {
				watchtest.Happens(t.Context(), source.Events, nil, after)
				watchtest.Happens(t.Context(), source.Events, before, after)
				watchtest.Happens(t.Context(), source.Events, after, nil)
			}, "%T", before)
		}
	}
}

// startedElsewhere are the kinds that no watcher of their own and no Schedule starts, and what starts them instead.
var startedElsewhere = map[string]string{
	contract.KindApproval.Workflow:       "the watcher of its location, which shares what was gathered",
	contract.KindFinalization.Workflow:   "the workflow of the restore that Velero has ended",
	contract.KindPlanStart.Workflow:      "the Schedule of its plan",
	contract.KindVeleroQueue.Workflow:    "the leading watcher, where the policy gives turns",
	contract.KindFDBThrottle.Workflow:    "the first request of a FoundationDBBackup's workflow",
	contract.KindFDBExpiryQueue.Workflow: "the first request of a FoundationDBBackup's workflow",
	contract.KindFDBCluster.Workflow:     "the first command for a FoundationDB cluster",
	contract.KindFDBContainer.Workflow:   "the first user of a container",
	contract.KindHeartbeat.Workflow:      "the leading watcher, with each heartbeat",
	contract.KindGate.Workflow:           "who rolls out a new version of the workers",
}

// keptKinds notes the kinds whose Schedules are kept.
type keptKinds []string

// Keep implements schedules.Schedules.
func (k *keptKinds) Keep(_ context.Context, kind contract.Kind, _ time.Duration) error {
	*k = append(*k, kind.Workflow)
	return nil
}

// Trigger implements schedules.Schedules.
func (k *keptKinds) Trigger(context.Context, contract.Kind) error { return nil }

// A kind that is registered with the worker alone would wait for ever for its first workflow.
func TestEachKindHasAWatcherOrASchedule(t *testing.T) {
	var all, started []string
	for _, kind := range workflows.Kinds() {
		all = append(all, kind.Workflow)
	}
	for _, watcher := range newStation(t).kinds {
		kind := reflect.ValueOf(watcher).Elem().FieldByName("Workflow").Interface().(contract.Kind)
		started = append(started, kind.Workflow)
	}
	scheduled := keptKinds{}
	keeper := schedules.Keeper{Schedules: &scheduled, Policy: func() *policy.Policy { return &policy.Policy{} }}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	keeper.Run(stopped)
	started = append(started, scheduled...)
	for kind := range startedElsewhere {
		started = append(started, kind)
	}
	assert.ElementsMatch(t, all, started, "each kind once: watched, scheduled, or with a reason in startedElsewhere")
}
