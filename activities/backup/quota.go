package backup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	velerov2alpha1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v2alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/quota"
	"holdfast.dev/holdfast/k8s/velero"
)

// Counted is how a quota counts a NonAdminBackup. Our finalizer, which comes before the Velero Backup, shows that it
// takes a place; from then on the object keeps it until its Velero Backup or itself is gone.
func Counted(nab *oadpv1alpha1.NonAdminBackup, clusterID string) quota.Backup {
	counted := quota.Backup{Name: nab.Name, Created: nab.CreationTimestamp.Time}
	conditions := nab.Status.Conditions
	accepted := meta.FindStatusCondition(conditions, string(oadpv1alpha1.NonAdminConditionAccepted))
	judged := accepted != nil && accepted.Status == metav1.ConditionFalse && accepted.ObservedGeneration == nab.Generation
	claimed := owner.Claimed(nab)
	ours := owner.Derived(claimed, clusterID, nab)
	switch {
	case everCreated(nab):
		counted.Stored = accepted == nil || accepted.Reason != oadpv1alpha1.ReasonVeleroBackupNotFound
		counted.Active = counted.Stored && !ended(nab)
		made := meta.FindStatusCondition(conditions, string(oadpv1alpha1.NonAdminConditionQueued))
		if ours && made != nil { // else it was made elsewhere, and found in a bucket
			counted.Begun = made.LastTransitionTime.Time
		}
	case owner.SyncedFrom(nab) != "" && !ours, judged && accepted.Reason == ReasonVeleroBackupRefused && !ours:
	case ours, controllerutil.ContainsFinalizer(nab, oadpv1alpha1.NabFinalizer):
		counted.Stored, counted.Active, counted.Begins = true, true, true
	case DeletionRequested(nab), judged && accepted.Reason != oadpv1alpha1.ReasonQuotaExceeded:
	default:
		counted.Waits = true
	}
	return counted
}

// OverQuota reports whether a quota holds a NonAdminBackup back.
func OverQuota(nab *oadpv1alpha1.NonAdminBackup) bool {
	accepted := meta.FindStatusCondition(nab.Status.Conditions, string(oadpv1alpha1.NonAdminConditionAccepted))
	return nab.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff && accepted != nil &&
		accepted.Reason == oadpv1alpha1.ReasonQuotaExceeded
}

// ended: the status shows that Velero has ended the backup.
func ended(nab *oadpv1alpha1.NonAdminBackup) bool {
	made := nab.Status.VeleroBackup
	return made != nil && made.Status != nil && velero.Finished(made.Status.Phase)
}

// judgeQuota returns the verdict if the quota of the namespace leaves no place for the object; nil if it does, if there is no
// quota, and for an object that has had a place. Nothing is read without a quota.
func (g *Gatherer) judgeQuota(ctx context.Context, o *Objects, rules policy.Own) (*Verdict, error) {
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
func (g *Gatherer) place(ctx context.Context, o *Objects) (*Verdict, error) {
	now := time.Now()
	var all []quota.Backup
	made := map[Made]bool{}
	err := g.eachOf(ctx, o.NAB.Namespace, func(nab *oadpv1alpha1.NonAdminBackup) {
		counted := Counted(nab, g.ClusterID)
		all = append(all, counted)
		if counted.Stored {
			made[Made{nab.Namespace, owner.Claimed(nab)}] = true
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list NonAdminBackups of namespace %s: %w", o.NAB.Namespace, err)
	}
	usage := quota.CountFor(Counted(o.NAB, g.ClusterID), all, now)
	if !o.limits.MaxBytes.IsZero() && !g.Cached {
		if usage.Bytes, err = g.held(ctx, o, slices.Collect(maps.Keys(made))); err != nil {
			return nil, err
		}
	}
	decided := quota.Decide(*o.limits, usage)
	if decided.Exceeded == "" {
		return nil, nil //nolint:nilnil // the same
	}
	o.QuotaPasses = decided.Passes
	return &Verdict{Reason: oadpv1alpha1.ReasonQuotaExceeded, Message: decided.Message()}, nil
}

// namesAtATime is how many names one list selects by: they are a part of its URL.
const namesAtATime = 100

// held returns what the volumes of the object's namespace hold, which it reads once: the object's own place does not change it.
// The API server picks them out, by the names of their Velero Backups: of all tenants there may be too many for an attempt.
func (g *Gatherer) held(ctx context.Context, o *Objects, made []Made) (int64, error) {
	if o.held != nil {
		return *o.held, nil
	}
	made = slices.DeleteFunc(made, func(m Made) bool { return m.Name == "" || len(validation.IsValidLabelValue(m.Name)) > 0 })
	var sum int64
	for some := range slices.Chunk(made, namesAtATime) {
		of := map[Made]bool{}
		names := make([]string, len(some))
		for i, each := range some {
			of[each], names[i] = true, each.Name
		}
		selected, err := labels.NewRequirement(velerov1.BackupNameLabel, selection.In, names)
		if err != nil {
			return 0, fmt.Errorf("select volumes by their Velero Backups: %w", err)
		}
		held, err := HeldBytes(ctx, g.Reader, g.OADPNamespace, of,
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

// Made is a Velero Backup, by its name, that was made for a NonAdminBackup of a namespace.
type Made struct{ Namespace, Name string }

// HeldBytes is what Velero says that the volumes of the namespaces' own backups hold, by namespace: those that it copies or
// moves, before the uploader deduplicates. Snapshots that stay in the cloud have no size here. The options select volumes.
func HeldBytes(
	ctx context.Context, reader client.Reader, oadpNamespace string, made map[Made]bool, options ...client.ListOption,
) (map[string]int64, error) {
	held := map[string]int64{}
	add := func(namespace string, volume client.Object, bytes int64) {
		if made[Made{namespace, volume.GetLabels()[velerov1.BackupNameLabel]}] {
			held[namespace] += bytes
		}
	}
	options = append(options, client.InNamespace(oadpNamespace))
	err := activities.EachPage(ctx, reader, func(page *velerov1.PodVolumeBackupList) {
		for i := range page.Items {
			each := &page.Items[i]
			add(each.Spec.Pod.Namespace, each, each.Status.Progress.TotalBytes)
		}
	}, options...)
	if err != nil {
		return nil, fmt.Errorf("list PodVolumeBackups: %w", err)
	}
	err = activities.EachPage(ctx, reader, func(page *velerov2alpha1.DataUploadList) {
		for i := range page.Items {
			each := &page.Items[i]
			add(each.Spec.SourceNamespace, each, each.Status.Progress.TotalBytes)
		}
	}, options...)
	if err != nil {
		return nil, fmt.Errorf("list DataUploads: %w", err)
	}
	return held, nil
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
	_, err := activities.PatchObject(ctx, b.Client, o.NAB, func() {
		controllerutil.RemoveFinalizer(o.NAB, oadpv1alpha1.NabFinalizer)
	})
	return err
}
