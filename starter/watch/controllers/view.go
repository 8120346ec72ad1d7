package controllers

import (
	"context"
	"time"

	"go.uber.org/zap"

	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// View is how a kind sees one object: the facts by which its workflow is signalled.
type View struct {
	// Found: an object of the requested UID exists.
	Found bool
	// Due: a step is due; the workflow is signalled.
	Due bool
	// Open: as far as can be seen here no step is due; the workflow is to run.
	Open bool
	// Ended: the object is gone and nothing remains; even a forced request does not start its workflow.
	Ended bool
	// Waits: its workflow has done all that it can for now; an event while it waits says how far Velero has come, at most.
	Waits bool
	// Partly: the cache has not kept all that the object is judged by; every event signals its workflow.
	Partly bool
	// Unstarted: the object waits for its workflow's start, or for its deletion to begin.
	Unstarted bool
	// VeleroName is the name under which Kind.Volumes knows the object's volumes; Uncounted, that its status counts none.
	VeleroName string
	Uncounted  bool
	// Drill is VeleroChanged.Drill of the signal.
	Drill string
	// Again is when it is to be judged without an event, if that is before the next resync.
	Again time.Duration
	// First signals another workflow that the object concerns, before its own.
	First func(ctx context.Context, send Send, force bool) error
}

// Send sends a message to a workflow and counts it under the kind that is reported.
type Send func(reported string, send func(connect.Workflows) error) error

// message signals the workflows of an object as its view says.
func (k *Kind[T]) message(ctx context.Context, ref contract.ObjectRef, view View, force bool, send Send) error {
	force = force || view.Partly
	if view.First != nil {
		if err := view.First(ctx, send, force); err != nil {
			return err
		}
	}
	if !view.Found && !view.Due && (view.Ended || !force) {
		return send(k.Reported, running(ctx, k.Workflow, ref, "deleted"))
	}
	hasVolumes, moved := k.Volumes.Take(view.VeleroName)
	var err error
	switch {
	case force, view.Due, moved && view.Uncounted:
		err = send(k.Reported, func(workflows connect.Workflows) error {
			return workflows.SignalWithStart(ctx, k.Workflow, ref,
				contract.VeleroChanged{Changed: contract.Changed{Reason: "changed"}, Volumes: hasVolumes, Drill: view.Drill})
		})
	case view.Open:
		err = send(k.Reported, func(workflows connect.Workflows) error { return workflows.Ensure(ctx, k.Workflow, ref) })
	}
	if err != nil && moved {
		k.Volumes.putBack(view.VeleroName)
	}
	return err
}

// running signals a workflow if it runs.
func running(ctx context.Context, kind contract.Kind, ref contract.ObjectRef, reason string) func(connect.Workflows) error {
	return func(workflows connect.Workflows) error {
		return workflows.SignalRunning(ctx, kind, ref, contract.Changed{Reason: reason})
	}
}

// sender sends, and counts the result with the time since the event of a request.
func (k *Kind[T]) sender(request Request, came time.Time) Send {
	return func(reported string, send func(connect.Workflows) error) error {
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
