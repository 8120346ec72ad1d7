package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"holdfast.dev/holdfast/k8s/metrics"
)

const (
	// Interval is the time between two checks of a dependency.
	Interval = 2 * time.Second
	timeout  = 2 * time.Second
)

// errNotChecked is the state of a check before its first result.
var errNotChecked = errors.New("not checked yet")

// Check checks one dependency.
type Check struct {
	// Name appears in /readyz, in the log and as a label of holdfast_dependency_up.
	Name string
	// Probe returns nil if the dependency is available. It gets two seconds.
	Probe func(ctx context.Context) error
	// Every is the time between two checks; Interval if zero.
	Every time.Duration
	// Advisory: a failure is shown in /readyz, but the process stays ready.
	Advisory bool
	// Recovered, if set, is called after each change from failing to passing, except for the first result.
	Recovered func(ctx context.Context)
}

// Prober runs checks and remembers their last results.
type Prober struct {
	log    *zap.Logger
	checks []Check

	mutex   sync.RWMutex
	answers map[string]error
}

// New returns a Prober that has checked nothing yet and is therefore not ready.
func New(log *zap.Logger, checks ...Check) *Prober {
	answers := make(map[string]error, len(checks))
	for _, check := range checks {
		answers[check.Name] = errNotChecked
	}
	return &Prober{log: log, checks: checks, answers: answers}
}

// Run runs all checks, each at its own interval, until ctx ends.
func (p *Prober) Run(ctx context.Context) {
	var group sync.WaitGroup
	for _, check := range p.checks {
		group.Go(func() {
			ticker := time.NewTicker(cmp.Or(check.Every, Interval))
			defer ticker.Stop()
			for {
				p.probe(ctx, check)
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
				}
			}
		})
	}
	group.Wait()
}

func (p *Prober) probe(ctx context.Context, check Check) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	err := check.Probe(limited)
	cancel()
	if ctx.Err() != nil {
		return
	}
	p.mutex.Lock()
	before := p.answers[check.Name]
	p.answers[check.Name] = err
	p.mutex.Unlock()
	metrics.SetDependencyUp(check.Name, err == nil)
	switch {
	case err != nil && (before == nil || before.Error() != err.Error()):
		p.log.Warn("dependency not available", zap.String("check", check.Name), zap.Error(err))
	case err == nil && before != nil:
		p.log.Info("dependency available", zap.String("check", check.Name))
		if check.Recovered != nil && !errors.Is(before, errNotChecked) {
			check.Recovered(ctx)
		}
	}
}

// Handler serves /healthz (the process works) and /readyz (every check passes; else 503, with the reason of each failure;
// advisory checks only warn).
func (p *Prober) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := p.Err(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
		if err := p.failing(true); err != nil {
			_, _ = fmt.Fprintf(w, "warning: %v\n", err)
		}
	})
	return mux
}

// Err joins the reasons why the process is not ready, or is nil.
func (p *Prober) Err() error { return p.failing(false) }

// failing joins the errors of the checks that fail, either of the advisory ones or of the others.
func (p *Prober) failing(advisory bool) error {
	p.mutex.RLock()
	defer p.mutex.RUnlock()
	var failing []error
	for _, check := range p.checks {
		if err := p.answers[check.Name]; err != nil && check.Advisory == advisory {
			failing = append(failing, fmt.Errorf("%s: %w", check.Name, err))
		}
	}
	return errors.Join(failing...)
}

// APIServer returns a function that checks whether the API server is ready to serve.
func APIServer(config *rest.Config) (func(context.Context) error, error) {
	unlimited := rest.CopyConfig(config)
	unlimited.QPS = -1 // a probe must not wait in the queue of the requests whose health it reports
	discoverer, err := discovery.NewDiscoveryClientForConfig(unlimited)
	if err != nil {
		return nil, fmt.Errorf("build client for the API server's readiness: %w", err)
	}
	return func(ctx context.Context) error {
		return discoverer.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	}, nil
}
