package collection

import (
	"context"
	"fmt"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/activity"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/workflows/contract"
)

// collectModifiers deletes the ConfigMaps of drills that are gone or over. A drill's workflow deletes its own, but does not see
// that of a drill which somebody has deleted by hand, with all else, before its restore was made. Namespaces and Velero Restores
// that a drill has left are found by the watcher, at each resync.
func (c *Activities) collectModifiers(ctx context.Context, result *contract.CollectionResult) error {
	listed, err := activities.ListMetadata(ctx, c.Client, corev1.SchemeGroupVersion.WithKind("ConfigMapList"),
		client.InNamespace(c.OADPNamespace), client.HasLabels{holdfastv1alpha1.LabelDrill})
	if err != nil {
		return err
	}
	count := 0
	for i := range listed {
		activity.RecordHeartbeat(ctx)
		made := &listed[i]
		over, err := c.ofDrillThatIsOver(ctx, made)
		if err != nil {
			return err
		}
		if !over {
			continue
		}
		modifier := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: made.Namespace, Name: made.Name, UID: made.UID, ResourceVersion: made.ResourceVersion,
		}}
		switch err := c.DeleteUnchanged(ctx, modifier); {
		case apierrors.IsConflict(err): // changed meanwhile
		case err != nil:
			return err
		default:
			count++
		}
	}
	if count > 0 {
		result.Deleted = append(result.Deleted, contract.CollectedKind{Kind: "ConfigMap", Count: count})
	}
	return nil
}

// ofDrillThatIsOver reports whether an object was made for a drill that needs it no more: Velero reads a modifier as long as
// there is the Restore.
func (c *Activities) ofDrillThatIsOver(ctx context.Context, made *metav1.PartialObjectMetadata) (bool, error) {
	key, uid, ours := owner.DrillOf(c.ClusterID, made)
	if !ours || Young(made, time.Now(), c.Grace) {
		return false, nil
	}
	restoring, err := k8s.Get(ctx, c.Client, "Velero Restore", made.Namespace, made.Name, &velerov1.Restore{})
	if err != nil || restoring {
		return false, err
	}
	return c.drillIsOver(ctx, key, uid)
}

func (c *Activities) drillIsOver(ctx context.Context, key types.NamespacedName, uid types.UID) (bool, error) {
	drill := &holdfastv1alpha1.RestoreDrill{}
	switch err := c.Client.Get(ctx, key, drill); {
	case Absent(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("get RestoreDrill %s: %w", key, err)
	}
	return drill.UID != uid || drill.Status.Phase == holdfastv1alpha1.DrillEnded, nil
}
