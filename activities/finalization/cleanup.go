package finalization

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/owner"
)

// cleanupTask deletes what Holdfast made for the restore in the OADP namespace and is no longer needed. The Velero Restore
// stays, because the tenant asked for it.
type cleanupTask struct{}

// Name implements Task.
func (cleanupTask) Name() string { return "cleanup" }

// Summary implements Task.
func (cleanupTask) Summary() string {
	return "Delete what was made for the restore and is no longer needed"
}

// Timeout implements Task.
func (cleanupTask) Timeout() time.Duration { return time.Minute }

// madeKinds are the kinds of objects that are made for a restore, without the Velero Restore.
func madeKinds() []client.ObjectList { return []client.ObjectList{&corev1.ConfigMapList{}} }

// Run implements Task.
func (cleanupTask) Run(ctx context.Context, c *Context) (Findings, error) {
	for _, list := range madeKinds() {
		c.Progress()
		err := c.Client.List(ctx, list, client.InNamespace(c.Restore.Namespace),
			client.MatchingLabels(owner.Restore.Labels(c.Restore.Name)))
		if err != nil {
			return Findings{}, fmt.Errorf("list %T: %w", list, err)
		}
		err = meta.EachListItem(list, func(item runtime.Object) error {
			made, ok := item.(client.Object)
			if !ok || !owner.Restore.Names(made, c.NAR.Namespace, c.NAR.Name) {
				return nil
			}
			return deleteExactly(ctx, c.Client, made)
		})
		if err != nil {
			return Findings{}, err
		}
	}
	return Findings{}, nil
}

// deleteExactly deletes the very object that was read; if it is gone, that is success.
func deleteExactly(ctx context.Context, to client.Client, object client.Object) error {
	uid := object.GetUID()
	if err := client.IgnoreNotFound(to.Delete(ctx, object, client.Preconditions{UID: &uid})); err != nil {
		return fmt.Errorf("delete %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}
