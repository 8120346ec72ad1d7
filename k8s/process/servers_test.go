package process_test

import (
	"context"
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
	require.Eventually(t, func() bool {
		_, err := get()
		return err != nil
	}, 5*time.Second, time.Millisecond)
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

// What workflows and activities count is on the page under the names that operators' alerts use.
func TestMetricsAreServedUnderTheirNames(t *testing.T) {
	present := ctrlmetrics.Registry
	t.Cleanup(func() { ctrlmetrics.Registry = present })
	ctrlmetrics.Registry = prometheus.NewRegistry() // the process's own takes each name once
	metrics, page, err := process.Metrics()
	require.NoError(t, err)
	metrics.WithTags(map[string]string{"activity_type": "admit-backup"}).Counter(contract.MetricAccessDenied).Inc(2)
	metrics.Counter(contract.MetricResourceTimeouts).Inc(1)
	metrics.Gauge(contract.MetricPolicyProblem).Update(1)
	recorder := httptest.NewRecorder()
	page.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for _, line := range []string{
		`holdfast_access_denied_total{activity_type="admit-backup"} 2`,
		"holdfast_resource_timeouts_total 1",
		"holdfast_policy_problem 1",
	} {
		assert.Contains(t, recorder.Body.String(), "\n"+line+"\n")
	}
}
