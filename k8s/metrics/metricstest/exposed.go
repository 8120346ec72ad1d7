package metricstest

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"holdfast.dev/holdfast/k8s/metrics"
)

// Exposed uses each of Holdfast's own instruments once, since some show nothing before, and returns every metric that this
// process then exposes, with its type.
func Exposed(t testing.TB) map[string]dto.MetricType {
	t.Helper()
	metrics.RegisterFDB()
	for _, call := range []func(string){
		metrics.PatchConflict, metrics.ActivityRetried, metrics.AccessDenied, metrics.SignalFailed,
		func(value string) { metrics.SignalAcknowledged(value, time.Now()) },
		func(value string) { metrics.SetDependencyUp(value, true) },
		func(value string) { metrics.FinalizationTaskEnded(value, "Completed", time.Second) },
		func(value string) { metrics.ToolRun(value, "", time.Second) }, metrics.FDBDataLeft,
		metrics.DrillVerdictKnown, metrics.DrillCheckKnown,
		func(value string) { metrics.TurnUsed(metrics.TurnLane{Pool: value, Name: value}, time.Now()) },
	} {
		call("any")
	}
	phases := map[*metrics.Phases]map[string]int{}
	for _, of := range metrics.AllPhases {
		phases[of] = map[string]int{"new": 1}
	}
	census := prometheus.NewRegistry()
	require.NoError(t, census.Register(metrics.NewCensusCollector(func() *metrics.Census {
		return &metrics.Census{
			LastStart: time.Unix(1, 0), LastValidation: time.Unix(1, 0), Phases: phases, OldestPending: time.Unix(1, 0),
			FoundationDB: metrics.FDBCensus{
				Backups: map[metrics.FDBState]int{}, Conditions: map[metrics.FDBCondition]int{{Type: "any", Reason: "any"}: 1},
				OldestRestorable: time.Unix(1, 0), OldestFailure: time.Unix(1, 0),
			},
			Turns: map[metrics.TurnLane]metrics.TurnsWaiting{{Pool: "any", Name: "any"}: {}},
			Plans: metrics.PlanCensus{
				OldestGood: time.Unix(1, 0), OldestVerified: time.Unix(1, 0), OldestPending: time.Unix(1, 0),
				Each: []metrics.PlanSeries{{Namespace: "any", Name: "any", LastGood: time.Unix(1, 0), LastVerified: time.Unix(1, 0)}},
			},
		}
	})))
	families, err := prometheus.Gatherers{ctrlmetrics.Registry, census}.Gather()
	require.NoError(t, err)
	exposed := map[string]dto.MetricType{}
	for _, family := range families {
		exposed[family.GetName()] = family.GetType()
	}
	return exposed
}
