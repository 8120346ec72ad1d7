package watch

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"holdfast.dev/holdfast/k8s/policy"
)

const policyInterval = 2 * time.Second

// PolicySource returns the administrator's policy in force.
type PolicySource interface {
	policy.Versioned
	// Problem says why the policy in force is not the one in the cluster, or why there is none; empty if neither.
	Problem() string
}

// polledPolicy is the policy as last read; the watcher judges thousands of objects by it.
type polledPolicy struct {
	source  PolicySource
	current atomic.Pointer[policy.Policy]
}

// Get implements policy.Getter. It calls the source itself only until the first answer.
func (p *polledPolicy) Get(ctx context.Context) (policy.Policy, error) {
	if current := p.current.Load(); current != nil {
		return *current, nil
	}
	return p.poll(ctx)
}

func (p *polledPolicy) poll(ctx context.Context) (policy.Policy, error) {
	current, err := p.source.Get(ctx)
	if err == nil {
		p.current.Store(&current)
	}
	return current, err
}

// watchPolicy reads the administrator's policy every two seconds. After a write it has every object judged again whose
// rejection the old policy may have caused. It compares versions, not content: a change that is undone between two reads may
// have caused rejections too.
func (w *Watcher) watchPolicy(ctx context.Context) error {
	ticker := time.NewTicker(policyInterval)
	defer ticker.Stop()
	var version string
	for {
		current, err := w.policy.poll(ctx)
		if now := w.Policy.Version(); err == nil && now != version {
			first := version == ""
			version = now
			w.Log.Info("policy in force", zap.String("version", version))
			w.news.PolicyWritten(current.Queue, version)
			for _, kind := range w.kinds {
				kind.PolicyWritten(ctx, first)
			}
			w.keeper.DefaultPlansChanged()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
