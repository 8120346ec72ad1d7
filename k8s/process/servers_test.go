package process_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/k8s/process"
	"holdfast.dev/holdfast/workflows/contract"
)

// freeAddress returns an address of this host that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

func TestServeAnswersUntilTheProcessEnds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	address := freeAddress(t)
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") })
	require.NoError(t, process.Serve(ctx, zap.NewNop(), address, handler))

	get := func() (string, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, nil)
		require.NoError(t, err)
		request.Close = true
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return string(body), err
	}
	body, err := get()
	require.NoError(t, err)
	assert.Equal(t, "here", body)

	require.Error(t, process.Serve(ctx, zap.NewNop(), address, handler), "the address is taken: the process must not start")
	stop()
	eventually.IsTrue(t, time.Minute, "it answers no longer", func() bool {
		_, err := get()
		return err != nil
	})
}

func TestServeServesNothingIfNotAskedTo(t *testing.T) {
	assert.NoError(t, process.Serve(t.Context(), zap.NewNop(), "0", nil))
}

func TestLoggersAreBuiltForEveryLevelAndFormat(t *testing.T) {
	for _, format := range []string{"json", "console"} {
		for _, level := range []string{"debug", "info", "warn", "error"} {
			flags := process.Flags{LogLevel: level, LogFormat: format}
			logger, err := flags.Logger()
			require.NoError(t, err)
			assert.Equal(t, level, logger.Level().String())
		}
	}
	for _, flags := range []process.Flags{{LogLevel: "loud", LogFormat: "json"}, {LogLevel: "info", LogFormat: "xml"}} {
		_, err := flags.Logger()
		assert.Error(t, err)
	}
}

// What the SDK and our workflows count is on the page with Prometheus' types and endings, beside our own instruments. The
// alert rules depend on the names and types.
func TestMetricsAreServedUnderTheirNames(t *testing.T) {
	present := ctrlmetrics.Registry
	t.Cleanup(func() { ctrlmetrics.Registry = present })
	ctrlmetrics.Registry = prometheus.NewRegistry() // the process's own takes each name once
	handler, page, err := process.Metrics()
	require.NoError(t, err)
	handler.WithTags(map[string]string{"activity_type": "admit-backup"}).Counter(contract.MetricResourceTimeouts).Inc(2)
	handler.Counter("temporal_request").Inc(1)
	handler.Gauge("temporal_num_pollers").Update(4)
	handler.Timer("temporal_request_latency").Record(30 * time.Millisecond)
	recorder := httptest.NewRecorder()
	page.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for _, line := range []string{
		"# TYPE holdfast_resource_timeouts_total counter",
		`holdfast_resource_timeouts_total{activity_type="admit-backup"} 2`,
		"# TYPE temporal_request_total counter",
		"temporal_request_total 1",
		"# TYPE temporal_num_pollers gauge",
		"temporal_num_pollers 4",
		"# TYPE temporal_request_latency_seconds histogram",
		`temporal_request_latency_seconds_bucket{le="0.025"} 0`,
		`temporal_request_latency_seconds_bucket{le="0.05"} 1`,
		`temporal_request_latency_seconds_bucket{le="86400"} 1`,
	} {
		assert.Contains(t, recorder.Body.String(), "\n"+line+"\n")
	}
}

// A collector in trouble must not take the rest of the page with it: alerts on the rest would see nothing.
func TestOneMetricThatCannotBeGatheredHidesNoOther(t *testing.T) {
	present := ctrlmetrics.Registry
	t.Cleanup(func() { ctrlmetrics.Registry = present })
	ctrlmetrics.Registry = prometheus.NewRegistry()
	handler, page, err := process.Metrics()
	require.NoError(t, err)
	ctrlmetrics.Registry.MustRegister(broken{})
	handler.Counter(contract.MetricResourceTimeouts).Inc(1)
	recorder := httptest.NewRecorder()
	page.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	assert.Equal(t, http.StatusOK, recorder.Code)
	assert.Contains(t, recorder.Body.String(), "\nholdfast_resource_timeouts_total 1\n")
}

// broken is a collector that fails.
type broken struct{}

var brokenDesc = prometheus.NewDesc("broken", "Fails.", nil, nil)

// Describe implements prometheus.Collector.
func (broken) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- brokenDesc }

// Collect implements prometheus.Collector.
func (broken) Collect(metrics chan<- prometheus.Metric) {
	metrics <- prometheus.NewInvalidMetric(brokenDesc, errors.New("no answer"))
}
