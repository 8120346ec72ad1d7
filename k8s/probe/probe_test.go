package probe_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/client-go/rest"

	"holdfast.dev/holdfast/k8s/metrics/metricstest"
	"holdfast.dev/holdfast/k8s/probe"
)

// dependency answers as it is told to.
type dependency struct {
	mutex     sync.Mutex
	err       error
	asked     int
	recovered int
}

func (d *dependency) becomes(err error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.err = err
}

func (d *dependency) check(name string) probe.Check {
	return probe.Check{
		Name: name,
		Probe: func(context.Context) error {
			d.mutex.Lock()
			defer d.mutex.Unlock()
			d.asked++
			return d.err
		},
		Recovered: func(context.Context) { d.recovered++ },
	}
}

func get(t *testing.T, p *probe.Prober, path string) (int, string) {
	t.Helper()
	recorder := httptest.NewRecorder()
	p.Handler().ServeHTTP(recorder, httptest.NewRequestWithContext(context.Background(), http.MethodGet, path, nil))
	return recorder.Code, recorder.Body.String()
}

// running runs a prober in a bubble, where time passes at once, for as long as do takes.
func running(t *testing.T, p *probe.Prober, do func(pass func(time.Duration))) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		p.Run(ctx)
		close(ended)
	}()
	synctest.Wait()
	do(func(d time.Duration) {
		time.Sleep(d)
		synctest.Wait()
	})
	stop()
	<-ended
}

func TestNothingIsReadyBeforeItsFirstAnswer(t *testing.T) {
	d := &dependency{}
	p := probe.New(zap.NewNop(), d.check("temporal"), d.check("kubernetes"))
	code, body := get(t, p, "/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Equal(t, "temporal: not checked yet\nkubernetes: not checked yet\n", body)
	code, _ = get(t, p, "/healthz")
	assert.Equal(t, http.StatusOK, code, "the process turns: the kubelet must not kill it")
}

const temporalUp = `holdfast_dependency_up{check="temporal"}`

func TestReadyIsWhatEveryCheckSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		temporal, kubernetes := &dependency{}, &dependency{err: errors.New("connection refused")}
		p := probe.New(zap.NewNop(), temporal.check("temporal"), kubernetes.check("kubernetes"))
		running(t, p, func(pass func(time.Duration)) {
			code, body := get(t, p, "/readyz")
			assert.Equal(t, http.StatusServiceUnavailable, code)
			assert.Equal(t, "kubernetes: connection refused\n", body)

			kubernetes.becomes(nil)
			pass(probe.Interval)
			code, body = get(t, p, "/readyz")
			assert.InDelta(t, 1, metricstest.Value(t, temporalUp), 0)
			assert.Equal(t, http.StatusOK, code)
			assert.Equal(t, "ok\n", body)
			require.NoError(t, p.Err())

			temporal.becomes(errors.New("deadline"))
			kubernetes.becomes(errors.New("etcd"))
			pass(probe.Interval)
			_, body = get(t, p, "/readyz")
			assert.Equal(t, "temporal: deadline\nkubernetes: etcd\n", body, "every reason, in the order of the checks")
			assert.InDelta(t, 0, metricstest.Value(t, temporalUp), 0)
			code, _ = get(t, p, "/healthz")
			assert.Equal(t, http.StatusOK, code)
		})
	})
}

func TestAnAdvisoryCheckWarnsAndKeepsNobodyFromBeingReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		temporal, cage := &dependency{}, &dependency{err: errors.New("no Landlock")}
		advisory := cage.check("fdb-cage")
		advisory.Advisory = true
		core, logs := observer.New(zap.WarnLevel)
		p := probe.New(zap.New(core), temporal.check("temporal"), advisory)
		running(t, p, func(pass func(time.Duration)) {
			code, body := get(t, p, "/readyz")
			assert.Equal(t, http.StatusOK, code)
			assert.Equal(t, "ok\nwarning: fdb-cage: no Landlock\n", body)
			require.NoError(t, p.Err())
			assert.InDelta(t, 0, metricstest.Value(t, `holdfast_dependency_up{check="fdb-cage"}`), 0)
			assert.Equal(t, 1, logs.Len())

			temporal.becomes(errors.New("deadline"))
			pass(probe.Interval)
			code, body = get(t, p, "/readyz")
			assert.Equal(t, http.StatusServiceUnavailable, code)
			assert.Equal(t, "temporal: deadline\n", body)

			temporal.becomes(nil)
			cage.becomes(nil)
			pass(probe.Interval)
			_, body = get(t, p, "/readyz")
			assert.Equal(t, "ok\n", body)
		})
	})
}

func TestARecoveryIsToldOnce(t *testing.T) {
	away := errors.New("connection refused")
	tests := map[string]struct {
		answers []error
		want    int
	}{
		"there from the start":             {[]error{nil, nil, nil}, 0},
		"away from the start, then there":  {[]error{away, away, nil, nil}, 1},
		"away once":                        {[]error{nil, away, nil, nil}, 1},
		"away for other reasons meanwhile": {[]error{nil, away, errors.New("etcd"), nil, nil}, 1},
		"away twice":                       {[]error{nil, away, nil, away, nil}, 2},
		"away and not back":                {[]error{nil, away, away}, 0},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &dependency{err: test.answers[0]}
				running(t, probe.New(zap.NewNop(), d.check("kubernetes")), func(pass func(time.Duration)) {
					for _, answer := range test.answers[1:] {
						d.becomes(answer)
						pass(probe.Interval)
					}
				})
				assert.Equal(t, test.want, d.recovered)
				assert.Equal(t, len(test.answers), d.asked)
			})
		})
	}
}

// A check that hangs holds up neither the others nor its own verdict.
func TestACheckThatHangsFailsAfterTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := &dependency{}
		hangs := probe.Check{Name: "kubernetes", Probe: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		p := probe.New(zap.NewNop(), hangs, other.check("temporal"))
		running(t, p, func(pass func(time.Duration)) {
			require.EqualError(t, p.Err(), "kubernetes: not checked yet")
			pass(2 * time.Second)
			require.EqualError(t, p.Err(), "kubernetes: context deadline exceeded")
			pass(8 * time.Second)
			assert.Equal(t, 6, other.asked)
		})
	})
}

func TestACheckMayBeAskedMoreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dependency{}
		seldom := d.check("search-attributes")
		seldom.Every = 15 * time.Second
		running(t, probe.New(zap.NewNop(), seldom), func(pass func(time.Duration)) { pass(31 * time.Second) })
		assert.Equal(t, 3, d.asked)
	})
}

// A process that ends interrupts its checks: that says nothing about the dependencies.
func TestTheEndOfTheProcessIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dependency{}
		first := true
		check := d.check("kubernetes")
		check.Probe = func(ctx context.Context) error {
			if first {
				first = false
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		core, logs := observer.New(zap.InfoLevel)
		p := probe.New(zap.New(core), check)
		running(t, p, func(pass func(time.Duration)) { pass(probe.Interval) })
		require.NoError(t, p.Err())
		assert.Len(t, logs.All(), 1)
	})
}

// An outage of an hour is two lines, not 3,600.
func TestOnlyChangesAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dependency{}
		core, logs := observer.New(zap.InfoLevel)
		running(t, probe.New(zap.New(core), d.check("kubernetes")), func(pass func(time.Duration)) {
			d.becomes(errors.New("connection refused"))
			pass(time.Hour)
			d.becomes(nil)
			pass(time.Minute)
		})
		var lines []string
		for _, entry := range logs.All() {
			lines = append(lines, entry.Level.String()+" "+entry.Message+" "+entry.ContextMap()["check"].(string))
		}
		assert.Equal(t, []string{
			"info dependency available kubernetes", "warn dependency not available kubernetes", "info dependency available kubernetes",
		}, lines)
	})
}

func TestAPIServerIsReadyWhenItSaysSo(t *testing.T) {
	var code int
	var path string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		w.WriteHeader(code)
	}))
	ask, err := probe.APIServer(&rest.Config{Host: server.URL, QPS: 0.001, Burst: 1})
	require.NoError(t, err)
	for range 3 { // more than the work's own limit would let through
		code = http.StatusOK
		require.NoError(t, ask(t.Context()))
	}
	assert.Equal(t, "/readyz", path)
	code = http.StatusInternalServerError
	require.Error(t, ask(t.Context()), "it is there, but not ready to serve")
	code = http.StatusForbidden
	require.Error(t, ask(t.Context()))
	server.Close()
	require.Error(t, ask(t.Context()))
}

func TestAPIServerNeedsAValidConfiguration(t *testing.T) {
	_, err := probe.APIServer(&rest.Config{Host: "://"})
	require.Error(t, err)
}
