package restore_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
)

// stopwatch keeps what is recorded of how long phases lasted.
type stopwatch struct {
	temporalclient.MetricsHandler
	tags  map[string]string
	times map[string]time.Duration
}

// WithTags implements client.MetricsHandler.
func (w stopwatch) WithTags(tags map[string]string) temporalclient.MetricsHandler {
	w.tags = maps.Clone(w.tags)
	if w.tags == nil {
		w.tags = map[string]string{}
	}
	maps.Copy(w.tags, tags)
	return w
}

// Timer implements client.MetricsHandler.
func (w stopwatch) Timer(name string) temporalclient.MetricsTimer {
	if name != contract.MetricRestorePhase {
		return w.MetricsHandler.Timer(name)
	}
	return timer(func(took time.Duration) { w.times[w.tags["phase"]] += took })
}

type timer func(time.Duration)

// Record implements client.MetricsTimer.
func (t timer) Record(took time.Duration) { t(took) }

func TestTheTimeInEachOfVelerosPhasesIsMeasured(t *testing.T) {
	watch := stopwatch{MetricsHandler: temporalclient.MetricsNopHandler, times: map[string]time.Duration{}}
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetMetricsHandler(watch)
	s := &workflowtest.Scenario{
		TestWorkflowEnvironment: environment.New(suite),
		World:                   fake.New(t, append(fake.Taken(workflowtest.Backup, fake.AdminLocation, ""), fake.NAR(again, workflowtest.Backup))...),
	}
	workflows.Register(s, call.Options{})
	s.World.Restores.Register(s)
	for at, phase := range map[int]velerov1.RestorePhase{
		3: "New", 5: "InProgress", 25: "WaitingForPluginOperations", 85: "Finalizing", 90: "Failed",
	} {
		s.After(time.Duration(at)*time.Second, veleroRestore(phase))
	}
	s.After(15*time.Second, func(*fake.World) {}) // progress alone
	runRestore(t, s)
	for phase, took := range watch.times {
		watch.times[phase] = took.Round(time.Second)
	}
	assert.Equal(t, map[string]time.Duration{
		"New": 5 * time.Second, "InProgress": 20 * time.Second, "WaitingForPluginOperations": time.Minute, "Finalizing": 5 * time.Second,
	}, watch.times)
}
