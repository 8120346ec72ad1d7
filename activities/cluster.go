package activities

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/k8s/kstatus"
)

// Cluster is the Kubernetes cluster on which activities act.
type Cluster struct {
	// Client reads from and writes to the API server itself.
	Client client.Client
	// Events writes Events for the tenant; best effort.
	Events events.EventRecorder
	// Paused returns an error while another controller serves the same kinds; nothing is done then.
	Paused func() error
}

// Record records an Event about an object, best effort.
func (c Cluster) Record(object runtime.Object, kind, reason, action, note string, args ...any) {
	RecordEvent(c.Events, object, kind, reason, action, note, args...)
}

// recordRetried records that a step failed and has been retried until it succeeded. The Event is written only then: the API
// server that refused the step would have refused the Event.
func (c Cluster) recordRetried(object runtime.Object, info activity.Info) {
	c.Record(object, corev1.EventTypeWarning, EventRetried, "Retry", "%s succeeded at attempt %d, %s after the first",
		info.ActivityType.Name, info.Attempt, time.Since(info.ScheduledTime).Round(time.Second))
}

// PatchObject sends the change that change makes to an object outside its status. It reports whether there was one.
func (c Cluster) PatchObject(ctx context.Context, object client.Object, change func()) (bool, error) {
	before := object.DeepCopyObject().(client.Object)
	change()
	return patch(before, object, func(difference client.Patch) error { return c.Client.Patch(ctx, object, difference) })
}

// PatchStatus is PatchObject for the status, which it completes by package kstatus: that is no change to report.
func (c Cluster) PatchStatus(ctx context.Context, object client.Object, change func()) (bool, error) {
	before := object.DeepCopyObject().(client.Object)
	change()
	changed := !equality.Semantic.DeepEqual(before, object)
	kstatus.Summarize(before, object)
	sent, err := patch(before, object, func(p client.Patch) error { return c.Client.Status().Patch(ctx, object, p) })
	return changed && sent, err
}

func patch(before, object client.Object, send func(client.Patch) error) (bool, error) {
	if equality.Semantic.DeepEqual(before, object) {
		return false, nil
	}
	switch err := send(k8s.BoundPatch(before)); {
	case apierrors.IsNotFound(err):
		return false, ErrGone
	case err != nil:
		return false, fmt.Errorf("patch %s: %w", named(object), err)
	}
	return true, nil
}

// Delete deletes the very object that was read. If it is gone, that is success.
func (c Cluster) Delete(ctx context.Context, object client.Object) error {
	uid := object.GetUID()
	return c.delete(ctx, object, client.Preconditions{UID: &uid})
}

// DeleteUnchanged is Delete for an object that has not changed since it was read.
func (c Cluster) DeleteUnchanged(ctx context.Context, object client.Object) error {
	uid, version := object.GetUID(), object.GetResourceVersion()
	return c.delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version})
}

func (c Cluster) delete(ctx context.Context, object client.Object, preconditions client.Preconditions) error {
	if err := client.IgnoreNotFound(c.Client.Delete(ctx, object, preconditions)); err != nil {
		return fmt.Errorf("delete %s: %w", named(object), err)
	}
	return nil
}

// named is an object in an error.
func named(object client.Object) string {
	return fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))
}
