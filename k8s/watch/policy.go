package watch

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"holdfast.dev/holdfast/activities/backup"
	"holdfast.dev/holdfast/k8s/policy"
)

const policyInterval = 2 * time.Second

// PolicySource gives the admin's policy in force and tells when it was written.
type PolicySource interface {
	backup.PolicySource
	// Version changes with every write to the object that holds the policy.
	Version() string
}

// polledPolicy is the policy as read last: what the watcher judges thousands of objects by.
type polledPolicy struct {
	source  PolicySource
	current atomic.Pointer[policy.Policy]
}

// Get implements backup.PolicySource. It asks the source itself only until the first answer.
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

// watchPolicy reads the admin's policy every two seconds and, when it was written, has every object judged again whose
// rejection the old policy may have caused. The version is compared, not the content: a change and its undoing between
// two reads may have caused rejections too.
func (w *Watcher) watchPolicy(ctx context.Context) error {
	ticker := time.NewTicker(policyInterval)
	defer ticker.Stop()
	var version string
	for {
		_, err := w.policy.poll(ctx)
		if now := w.Policy.Version(); err == nil && now != version {
			version = now
			w.Log.Info("policy in force", zap.String("version", version))
			for _, kind := range w.kinds {
				kind.PolicyWritten(ctx)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
