package watched

import (
	"context"
	"time"

	"go.uber.org/zap"

	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/k8s/watch/signal"
	"holdfast.dev/holdfast/workflows/contract"
)

// View is what a kind makes of what there is of one object, and all that its workflow is told by.
type View struct {
	// Found: an object of the UID asked for is there.
	Found bool
	// Due: something is to be done; the workflow is told to look.
	Due bool
	// Open: nothing is due as far as can be seen here; the workflow is to run.
	Open bool
	// Ended: the object is gone and nothing remains; even a forced request does not start its workflow.
	Ended bool
	// Partly: the cache has not kept all that the object is judged by; its workflow is told of every event.
	Partly bool
	// Unstarted: the object awaits its beginning.
	Unstarted bool
	// VeleroName is the name under which Kind.Volumes knows the object's volumes; Uncounted, that its status counts none.
	VeleroName string
	Uncounted  bool
	// Again is when it is to be looked at without an event, if that is before the next resync.
	Again time.Duration
	// First tells another workflow that the object concerns, before its own.
	First func(ctx context.Context, tell Tell, force bool) error
}

// Tell sends a message to a workflow and counts it under the kind that is reported.
type Tell func(reported string, send func(signal.Workflows) error) error

// message tells the workflows of an object what its view says.
func (k *Kind[T]) message(ctx context.Context, ref contract.ObjectRef, view View, force bool, tell Tell) error {
	force = force || view.Partly
	if view.First != nil {
		if err := view.First(ctx, tell, force); err != nil {
			return err
		}
	}
	if !view.Found && !view.Due && (view.Ended || !force) {
		return tell(k.Reported, running(ctx, k.Workflow, ref, "deleted"))
	}
	hasVolumes, moved := k.Volumes.Take(view.VeleroName)
	var err error
	switch {
	case force, view.Due, moved && view.Uncounted:
		err = tell(k.Reported, func(workflows signal.Workflows) error {
			return workflows.SignalWithStart(ctx, k.Workflow, ref, contract.Changed{Reason: "changed", Volumes: hasVolumes})
		})
	case view.Open:
		err = tell(k.Reported, func(workflows signal.Workflows) error { return workflows.Ensure(ctx, k.Workflow, ref) })
	}
	if err != nil && moved {
		k.Volumes.putBack(view.VeleroName)
	}
	return err
}

// running tells a workflow if it runs.
func running(ctx context.Context, kind contract.Kind, ref contract.ObjectRef, reason string) func(signal.Workflows) error {
	return func(workflows signal.Workflows) error {
		return workflows.SignalRunning(ctx, kind, ref, contract.Changed{Reason: reason})
	}
}

// teller tells, and counts what came of it since the event of a request.
func (k *Kind[T]) teller(request Request, came time.Time) Tell {
	return func(reported string, send func(signal.Workflows) error) error {
		if err := send(k.Workflows); err != nil {
			metrics.SignalFailed(reported)
			k.Log.Warn("cannot signal, will retry",
				zap.String("namespace", request.Namespace), zap.String("name", request.Name), zap.Error(err))
			return err
		}
		metrics.SignalAcknowledged(reported, came)
		return nil
	}
}
