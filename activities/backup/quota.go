package backup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/usage"
	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/quota"
)

// judgeQuota returns the verdict if the quota of the namespace leaves no place for the object; nil if it does, if there is no
// quota, and for an object that has had a place. Nothing is read without a quota.
func (g *Gatherer) judgeQuota(ctx context.Context, o *Objects, rules policy.Own) (*check.Verdict, error) {
	o.limits = nil
	if len(rules.Quotas) == 0 || o.Backup != nil || owner.Claims(o.NAB, o.BackupName) {
		return nil, nil //nolint:nilnil // a place is no verdict
	}
	namespaceLabels, err := k8s.NamespaceLabels(ctx, g.Reader, o.NAB.Namespace)
	if err != nil {
		return nil, err
	}
	limits, _, found := rules.QuotaOf(namespaceLabels)
	if !found || len(limits.Set()) == 0 {
		return nil, nil //nolint:nilnil // the same
	}
	o.limits = &limits.Limits
	return g.place(ctx, o)
}

// place counts the namespace's NonAdminBackups, and returns the verdict if o.limits leave no place for this one.
func (g *Gatherer) place(ctx context.Context, o *Objects) (*check.Verdict, error) {
	now := time.Now()
	var all []quota.Backup
	made := map[usage.Made]bool{}
	err := g.eachOf(ctx, o.NAB.Namespace, func(nab *oadpv1alpha1.NonAdminBackup) {
		counted := usage.Counted(nab, g.ClusterID)
		all = append(all, counted)
		if counted.Stored {
			made[usage.Made{Namespace: nab.Namespace, Name: owner.Claimed(nab)}] = true
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list NonAdminBackups of namespace %s: %w", o.NAB.Namespace, err)
	}
	used := quota.CountFor(usage.Counted(o.NAB, g.ClusterID), all, now)
	if !o.limits.MaxBytes.IsZero() && !g.Cached {
		if used.Bytes, err = g.held(ctx, o, slices.Collect(maps.Keys(made))); err != nil {
			return nil, err
		}
	}
	decided := quota.Decide(*o.limits, used)
	if decided.Exceeded == "" {
		return nil, nil //nolint:nilnil // the same
	}
	o.QuotaPasses = decided.Passes
	return &check.Verdict{Reason: oadpv1alpha1.ReasonQuotaExceeded, Message: decided.Message()}, nil
}

// namesAtATime is how many names one list selects by: they are a part of its URL.
const namesAtATime = 100

// held returns what the volumes of the object's namespace hold, which it reads once: the object's own place does not change it.
// The API server picks them out, by the names of their Velero Backups: of all tenants there may be too many for an attempt.
func (g *Gatherer) held(ctx context.Context, o *Objects, made []usage.Made) (int64, error) {
	if o.held != nil {
		return *o.held, nil
	}
	made = slices.DeleteFunc(made, func(m usage.Made) bool { return m.Name == "" || len(validation.IsValidLabelValue(m.Name)) > 0 })
	var sum int64
	for some := range slices.Chunk(made, namesAtATime) {
		of := map[usage.Made]bool{}
		names := make([]string, len(some))
		for i, each := range some {
			of[each], names[i] = true, each.Name
		}
		selected, err := labels.NewRequirement(velerov1.BackupNameLabel, selection.In, names)
		if err != nil {
			return 0, fmt.Errorf("select volumes by their Velero Backups: %w", err)
		}
		held, err := usage.HeldBytes(ctx, g.Reader, g.OADPNamespace, of,
			client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*selected)})
		if err != nil {
			return 0, err
		}
		sum += held[o.NAB.Namespace]
	}
	o.held = &sum
	return sum, nil
}

// eachOf calls do for every NonAdminBackup of a namespace, which it must not change. A cache has no pages.
func (g *Gatherer) eachOf(ctx context.Context, namespace string, do func(*oadpv1alpha1.NonAdminBackup)) error {
	visit := func(page *oadpv1alpha1.NonAdminBackupList) {
		for i := range page.Items {
			do(&page.Items[i])
		}
	}
	if !g.Cached {
		return activities.EachPage(ctx, g.Reader, visit, client.InNamespace(namespace))
	}
	list := &oadpv1alpha1.NonAdminBackupList{}
	if err := g.Reader.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	visit(list)
	return nil
}

// confirm counts again, now that the finalizer shows to all who count that the object takes a place: of two that were judged at
// the same time at least one sees the other. It reports whether there is a place after all; if not, the verdict is written.
func (b *Activities) confirm(ctx context.Context, o *Objects) (bool, error) {
	if o.limits == nil {
		return true, nil
	}
	refused, err := b.Gatherer.place(ctx, o)
	if err != nil || refused == nil {
		return err == nil, err
	}
	return false, b.conclude(ctx, o, *refused)
}

// yield gives up the place that the finalizer of an object shows. It comes before the status: an object that waits for a place
// and seems to have one would wait for itself.
func (b *Activities) yield(ctx context.Context, o *Objects) error {
	_, err := b.PatchObject(ctx, o.NAB, func() {
		controllerutil.RemoveFinalizer(o.NAB, oadpv1alpha1.NabFinalizer)
	})
	return err
}
