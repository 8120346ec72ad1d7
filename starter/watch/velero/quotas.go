package velero

import (
	"context"
	"maps"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"holdfast.dev/holdfast/activities/backup"
	"holdfast.dev/holdfast/activities/usage"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/quota"
	"holdfast.dev/holdfast/starter/watch/controllers"
)

// A backup that a quota holds back is settled. It is judged again, over the cache, when a backup of its namespace takes less or
// gives up its wish for a place, when the labels of the namespace or the policy change, and when time alone gives it a place.

// untilPlace is how long it takes until time alone gives a backup a place; zero if that is not known. The second more is what
// times in objects leave out.
func untilPlace(o *backup.Objects, now time.Time) time.Duration {
	if o.QuotaPasses.IsZero() {
		return 0
	}
	return max(0, o.QuotaPasses.Sub(now)) + time.Second
}

// placeEvents are the events of NonAdminBackups that may give another one a place.
func (b *backups) placeEvents() controllers.Events {
	return controllers.Events{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q controllers.Queue) {
			before, after := e.ObjectOld.(*oadpv1alpha1.NonAdminBackup), e.ObjectNew.(*oadpv1alpha1.NonAdminBackup)
			if usage.OverQuota(after) && !usage.OverQuota(before) {
				b.Add(q, controllers.RequestFor(after)) // a place may have become free before the cache had the refusal
			}
			if !b.sameFor(before, after) {
				b.wakeOldest(ctx, after.Namespace, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q controllers.Queue) {
			b.wakeOldest(ctx, e.Object.GetNamespace(), q)
		},
	}
}

// sameFor reports whether a quota counts a backup as before.
func (b *backups) sameFor(before, after *oadpv1alpha1.NonAdminBackup) bool {
	was, is := usage.Counted(before, b.ClusterID), usage.Counted(after, b.ClusterID)
	return was.Waits == is.Waits && was.Stored == is.Stored && was.Active == is.Active && was.Begun.Equal(is.Begun)
}

// wakeOldest has the oldest backup judged that a quota holds back in a namespace: a free place is its own. When that is made, the
// next one is the oldest. Without quotas nothing is read.
func (b *backups) wakeOldest(ctx context.Context, namespace string, q controllers.Queue) {
	if rules, err := b.env.Policy.Get(ctx); err == nil && len(rules.Quotas) == 0 {
		return // a policy that cannot be read may have quotas
	}
	var oldest *oadpv1alpha1.NonAdminBackup
	var first quota.Backup
	b.Each(ctx, func(nab *oadpv1alpha1.NonAdminBackup) {
		counted := usage.Counted(nab, b.ClusterID)
		if usage.OverQuota(nab) && counted.Waits && (oldest == nil || counted.Before(first)) {
			oldest, first = nab, counted
		}
	}, client.InNamespace(namespace))
	if oldest != nil {
		b.Add(q, controllers.RequestFor(oldest))
	}
}

// quotaEvents: by a change of its labels a namespace may have another quota.
func (b *backups) quotaEvents() controllers.Events {
	relabelled := func(before, after client.Object) bool { return !maps.Equal(before.GetLabels(), after.GetLabels()) }
	return controllers.On(0, relabelled, func(ctx context.Context, namespace client.Object, q controllers.Queue) {
		b.eachBackingOff(ctx, func(nab *oadpv1alpha1.NonAdminBackup) {
			if usage.OverQuota(nab) {
				b.Add(q, controllers.RequestFor(nab))
			}
		}, client.InNamespace(namespace.GetName()))
	})
}
