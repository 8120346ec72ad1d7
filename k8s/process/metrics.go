package process

import (
	"errors"
	"fmt"
	"net/http"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// sdkBuckets, in seconds, are for all durations that Temporal's SDK measures, from a request to the life of a workflow.
var sdkBuckets = []float64{
	0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400,
}

// Metrics returns the handler by which Temporal's SDK, and through it our workflows, count, and the HTTP handler that serves
// all metrics of this process to Prometheus. The SDK's names get Prometheus' endings: _total for a counter, _seconds for a
// histogram.
func Metrics() (client.MetricsHandler, http.Handler, error) {
	exporter, err := prometheus.New(prometheus.WithRegisterer(ctrlmetrics.Registry),
		prometheus.WithoutScopeInfo(), prometheus.WithoutTargetInfo())
	if err != nil {
		return nil, nil, fmt.Errorf("build Prometheus exporter: %w", err)
	}
	// The CPU time and memory of this process; controller-runtime, if it runs, has registered the same.
	var present prom.AlreadyRegisteredError
	if err := ctrlmetrics.Registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})); err != nil &&
		!errors.As(err, &present) {
		return nil, nil, fmt.Errorf("register the process's metrics: %w", err)
	}
	inSeconds := metric.NewView(metric.Instrument{Kind: metric.InstrumentKindHistogram},
		metric.Stream{Aggregation: metric.AggregationExplicitBucketHistogram{Boundaries: sdkBuckets}})
	meter := metric.NewMeterProvider(metric.WithReader(exporter), metric.WithView(inSeconds)).Meter("holdfast")
	handler := opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter: meter, UseMonotonicCounters: true,
	})
	// One metric that cannot be gathered must not hide the others.
	options := promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, Registry: ctrlmetrics.Registry}
	return handler, promhttp.HandlerFor(ctrlmetrics.Registry, options), nil
}
