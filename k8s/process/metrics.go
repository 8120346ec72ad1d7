package process

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Metrics returns the handler that Temporal's SDK, and through it our workflows and activities, count with, and the
// HTTP handler that serves everything counted in this process to Prometheus.
func Metrics() (client.MetricsHandler, http.Handler, error) {
	exporter, err := prometheus.New(prometheus.WithRegisterer(ctrlmetrics.Registry),
		prometheus.WithoutScopeInfo(), prometheus.WithoutTargetInfo())
	if err != nil {
		return nil, nil, fmt.Errorf("build Prometheus exporter: %w", err)
	}
	meter := metric.NewMeterProvider(metric.WithReader(exporter)).Meter("holdfast")
	handler := opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{Meter: meter})
	return handler, promhttp.HandlerFor(ctrlmetrics.Registry, promhttp.HandlerOpts{}), nil
}
