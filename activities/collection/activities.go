package collection

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/synchronization"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/workflows/contract"
)

// Activities deletes what was made for deleted objects of tenants.
type Activities struct {
	activities.Cluster
	Policy        policy.Getter
	OADPNamespace string
	ClusterID     string
	// Grace is how old an object must be to be collected.
	Grace time.Duration
}

// Register registers the activity with a worker under its wire name.
func (c *Activities) Register(registry worker.ActivityRegistry) {
	activities.RegisterGuarded(registry, c.Paused, contract.CollectOrphans, c.Collect)
}

// Collect checks every object that was made in the OADP namespace. An orphan is deleted only if it has not changed since it was
// last read. While Velero has not listed an administrator's storage location since that was created, nothing is deleted: the
// cluster is being rebuilt. A tenant's location that Velero has not listed protects only the Velero Backups of its own
// namespace.
func (c *Activities) Collect(ctx context.Context, in contract.CollectionInput) (contract.CollectionResult, error) {
	var result contract.CollectionResult
	rules, err := c.Policy.Get(ctx)
	if err != nil {
		return result, fmt.Errorf("read the admin's policy: %w", err)
	}
	locations, err := synchronization.LocationsOf(ctx, c.Client, c.OADPNamespace, rules)
	if err != nil {
		return result, err
	}
	if result.Waiting = synchronization.Waiting(locations); result.Waiting != "" || in.Probe {
		return result, nil
	}
	held := synchronization.HeldBack(locations)
	for _, kind := range Kinds() {
		listed, err := activities.ListMetadata(ctx, c.Client, kind.GroupVersion().WithKind(kind.Kind+"List"),
			client.InNamespace(c.OADPNamespace), client.MatchingLabels{oadpv1alpha1.OadpLabel: oadpv1alpha1.OadpLabelValue},
			client.HasLabels{kind.Origin.Label()})
		if err != nil {
			return result, err
		}
		count := 0
		for i := range listed {
			activity.RecordHeartbeat(ctx)
			if key, ok := kind.Origin.Proven(&listed[i]); ok && kind.FromStores && held[key.Namespace] {
				result.HeldBack++
				continue
			}
			deleted, err := c.collect(ctx, kind, &listed[i], &result)
			if err != nil {
				return result, err
			}
			if deleted {
				count++
			}
		}
		if count > 0 {
			result.Deleted = append(result.Deleted, contract.CollectedKind{Kind: kind.Kind, Count: count})
		}
	}
	err = c.collectModifiers(ctx, &result)
	return result, err
}

// collect deletes one object if it is an orphan.
func (c *Activities) collect(
	ctx context.Context, kind Kind, listed *metav1.PartialObjectMetadata, result *contract.CollectionResult,
) (bool, error) {
	if !kind.Suspect(listed) {
		return false, nil
	}
	if Young(listed, time.Now(), c.Grace) {
		result.Young++
		return false, nil
	}
	made, err := c.read(ctx, kind, listed)
	if err != nil || made == nil {
		return false, err
	}
	key, _ := kind.Origin.Proven(made)
	origin := kind.NewOrigin()
	switch err := c.Client.Get(ctx, key, origin); {
	case Absent(err):
		origin = nil
	case err != nil:
		return false, fmt.Errorf("get %s %s: %w", kind.Tenants, key, err)
	}
	if !kind.Orphan(made, origin) || !kind.Disposable(made) {
		return false, nil
	}
	uid, version := made.GetUID(), made.GetResourceVersion()
	err = c.Client.Delete(ctx, made, client.Preconditions{UID: &uid, ResourceVersion: &version})
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return false, nil // changed or deleted meanwhile
	case err != nil:
		return false, fmt.Errorf("delete %s %s/%s: %w", kind.Kind, made.GetNamespace(), made.GetName(), err)
	}
	activity.GetLogger(ctx).Info("collected an orphan", "kind", kind.Kind, "name", made.GetName(),
		"originKind", kind.Tenants, "origin", key.String())
	return true, nil
}

// read returns the object as it is now, nil if it is gone. Of a Secret only the metadata are read.
func (c *Activities) read(ctx context.Context, kind Kind, listed *metav1.PartialObjectMetadata) (client.Object, error) {
	var made client.Object
	if kind.New != nil {
		made = kind.New()
	} else {
		metadata := &metav1.PartialObjectMetadata{}
		metadata.SetGroupVersionKind(kind.GroupVersionKind)
		made = metadata
	}
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(listed), made)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %s: %w", kind.Kind, listed.Name, err)
	}
	return made, nil
}
