package schedules

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// interval is how soon a change of the policy's periods takes effect, and a failure is retried.
	interval = 2 * time.Second
	// again is how soon a Schedule is restored that somebody has changed or deleted, or that Temporal has lost.
	again = time.Minute
	// DefaultPlansPeriod is how often default plans are compared without an event.
	DefaultPlansPeriod = 10 * time.Minute
	// apart is the shortest time between two starts of default plans by an event.
	apart = 10 * time.Second
)

// Keeper keeps the Schedules as the policy says, and remembers which it has checked.
type Keeper struct {
	Schedules Schedules
	// Policy is the one in force; nil before it was first read.
	Policy func() *policy.Policy
	Log    *zap.Logger

	kept map[contract.Kind]kept
	// changed: something has changed on which default plans depend.
	changed atomic.Bool
}

// DefaultPlansChanged has default plans be compared soon. Anyone may call it.
func (k *Keeper) DefaultPlansChanged() { k.changed.Store(true) }

type kept struct {
	period    time.Duration
	at        time.Time
	triggered bool
	// started is when an event has started it last.
	started time.Time
}

// Run keeps the Schedules, from the first policy read, and starts each once: the cluster may have been rebuilt.
func (k *Keeper) Run(ctx context.Context) {
	k.kept = map[contract.Kind]kept{}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if current := k.Policy(); current != nil {
			k.keep(ctx, *current)
			k.startDefaultPlans(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (k *Keeper) keep(ctx context.Context, rules policy.Policy) {
	for kind, period := range map[contract.Kind]time.Duration{
		contract.KindCollection: rules.GarbageCollection(), contract.KindSynchronization: rules.BackupSync(),
		contract.KindDefaultPlans: DefaultPlansPeriod,
	} {
		if period > 0 {
			period = max(period.Truncate(time.Second), time.Second) // Temporal's precision
		}
		last, known := k.kept[kind]
		if known && last.period == period && time.Since(last.at) < again {
			continue
		}
		if err := k.keepOne(ctx, kind, period, &last); err != nil {
			k.Log.Warn("cannot keep a Schedule, will retry", zap.String("schedule", kind.ID), zap.Error(err))
			continue
		}
		last.period, last.at = period, time.Now()
		k.kept[kind] = last
	}
}

func (k *Keeper) keepOne(ctx context.Context, kind contract.Kind, period time.Duration, last *kept) error {
	if err := k.Schedules.Keep(ctx, kind, period); err != nil {
		return err
	}
	if period <= 0 || last.triggered {
		return nil
	}
	if err := k.Schedules.Trigger(ctx, kind); err != nil {
		return err
	}
	last.triggered = true
	return nil
}

// startDefaultPlans starts their workflow if something has changed: at most every ten seconds, since namespaces may change all
// the time.
func (k *Keeper) startDefaultPlans(ctx context.Context) {
	kind := contract.KindDefaultPlans
	last := k.kept[kind]
	if !last.triggered || time.Since(last.started) < apart || !k.changed.Swap(false) {
		return
	}
	last.started = time.Now()
	if err := k.Schedules.Trigger(ctx, kind); err != nil {
		k.changed.Store(true)
		k.Log.Warn("cannot start a Schedule, will retry", zap.String("schedule", kind.ID), zap.Error(err))
	}
	k.kept[kind] = last
}
