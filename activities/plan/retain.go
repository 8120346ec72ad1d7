package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/plan/retention"
)

// RecordBackups writes on the Velero Backups of the plan's new backups that it has made them, as far as they exist. Tenants
// cannot write there. It shows what Refresh does.
func (a *Activities) RecordBackups(ctx context.Context, s *subject, step contract.PlanStep) error {
	for _, made := range step.Made {
		at := slices.IndexFunc(s.Backups, func(b Backup) bool { return string(b.Object.UID) == made.UID })
		if at < 0 || s.Backups[at].gone() { // or somebody has taken its label away: it is not the plan's any more
			s.recorded = append(s.recorded, made.UID)
			continue
		}
		done, err := a.recordMade(ctx, s, &s.Backups[at])
		if err != nil {
			return err
		}
		if done {
			s.recorded = append(s.recorded, made.UID)
		}
	}
	return a.show(ctx, s)
}

func (a *Activities) recordMade(ctx context.Context, s *subject, b *Backup) (done bool, err error) {
	nab := b.Object
	if b.Recorded || nab.Status.VeleroBackup == nil {
		return b.Recorded, nil
	}
	name := a.Gatherer.ownName(nab)
	made := &velerov1.Backup{}
	exists, err := k8s.Get(ctx, a.Client, "Velero Backup", a.Gatherer.OADPNamespace, name, made)
	if err != nil || !exists || !owner.Backup.Called(made, nab.Namespace, nab.Name) {
		return false, err
	}
	_, err = a.PatchObject(ctx, made, func() { recordOn(made, s.Plan, dueOf(*b)) })
	if err != nil {
		return false, elsewhere(s, err)
	}
	b.Recorded, b.Velero = true, made
	return true, nil
}

// removedAfter is how long the object stays of a backup that is gone at Velero, which may find it in the bucket again.
const removedAfter = 7 * 24 * time.Hour

// removable: nothing can be restored from the backup any more, and its object is all that is left of it.
func (s *subject) removable(b Backup) bool {
	since := b.goneSince()
	return !since.IsZero() && s.now.Sub(since) > removedAfter && !b.deleting()
}

// DeleteBackup requests the deletion of a backup with its data, as a tenant would, if it is still due and was shown to be. Of a
// backup that is gone it deletes the object, and no data.
func (a *Activities) DeleteBackup(ctx context.Context, s *subject, step contract.PlanStep) error {
	at := slices.IndexFunc(s.Backups, func(b Backup) bool { return b.Object.Name == step.Backup })
	if at < 0 {
		return a.show(ctx, s)
	}
	nab := s.Backups[at].Object
	if s.removable(s.Backups[at]) {
		err := a.Client.Delete(ctx, nab, client.Preconditions{UID: &nab.UID, ResourceVersion: &nab.ResourceVersion})
		return client.IgnoreNotFound(err)
	}
	due := slices.IndexFunc(s.judge.Retention.Due, func(n retention.Named) bool { return n.Name == step.Backup })
	if due < 0 || s.Keep == nil || s.Keep.DryRun || !shown(s.Plan.Status.Retention, step.Backup) {
		return a.show(ctx, s)
	}
	changed, err := a.PatchObject(ctx, nab, func() { nab.Spec.DeleteBackup = true })
	if changed {
		a.recordDeletion(s.Plan, nab.Name, s.judge.Retention.Due[due].Why)
	}
	return elsewhere(s, err)
}

// shown: the status says that the backup is due.
func shown(status *holdfastv1alpha1.Retention, name string) bool {
	return status != nil && slices.ContainsFunc(status.Due, func(due holdfastv1alpha1.BackupReason) bool { return due.Name == name })
}

// elsewhere has what the plan is made of be read again if a backup of it is gone: the plan is not.
func elsewhere(s *subject, err error) error {
	if errors.Is(err, activities.ErrGone) {
		plans := holdfastv1alpha1.GroupVersion.WithResource(holdfastv1alpha1.ResourceBackupPlans).GroupResource()
		return apierrors.NewConflict(plans, s.Plan.Name, errors.New("a backup of the plan is gone"))
	}
	return err
}

// extendBefore is how long before its expiration a backup that minGood keeps is extended; half its time to live if that is less.
const extendBefore = 7 * 24 * time.Hour

// extension is the backup that is to be extended now. It has the plan wake in time for the next one. Where the administrator
// enforces the time to live there is none.
func (s *subject) extension() string {
	if s.judge.Refused != "" { // there may be no spec to read a time to live from
		return ""
	}
	ttl, enforced := s.judge.ttl(s.Objects)
	if enforced {
		return ""
	}
	for _, name := range s.judge.Retention.MinGood {
		at := slices.IndexFunc(s.Backups, func(b Backup) bool { return b.Object.Name == name })
		b := s.Backups[at]
		if b.Velero == nil || b.expires().IsZero() {
			continue
		}
		due := b.expires().Add(-min(extendBefore, ttl/2))
		if !due.After(s.now) {
			return name
		}
		s.judge.wakeBy(due)
	}
	return ""
}

// ExtendBackup moves on when Velero deletes a backup, by its time to live from now on.
func (a *Activities) ExtendBackup(ctx context.Context, s *subject, step contract.PlanStep) error {
	at := slices.IndexFunc(s.Backups, func(b Backup) bool { return b.Object.Name == step.Backup })
	if at < 0 || s.extension() != step.Backup {
		return nil
	}
	made := s.Backups[at].Velero
	ttl, _ := s.judge.ttl(s.Objects)
	_, err := a.PatchObject(ctx, made, func() {
		made.Status.Expiration = &metav1.Time{Time: s.now.Add(ttl).Truncate(time.Second)}
	})
	if err == nil {
		a.recordExtension(s.Plan, step.Backup, made.Status.Expiration.Time)
	}
	return elsewhere(s, err)
}

// readers returns what reads the backups of a namespace now, by the backup's name.
func readers(ctx context.Context, reader client.Reader, namespace string) (map[string]string, error) {
	used := map[string]string{}
	restores := &oadpv1alpha1.NonAdminRestoreList{}
	if err := reader.List(ctx, restores, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list NonAdminRestores of namespace %s: %w", namespace, err)
	}
	for _, nar := range restores.Items {
		if spec := nar.Spec.RestoreSpec; spec != nil && !restoreEnded(&nar) {
			used[spec.BackupName] = "NonAdminRestore " + nar.Name
		}
	}
	downloads := &oadpv1alpha1.NonAdminDownloadRequestList{}
	if err := reader.List(ctx, downloads, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list NonAdminDownloadRequests of namespace %s: %w", namespace, err)
	}
	for _, nadr := range downloads.Items {
		if nadr.DeletionTimestamp.IsZero() {
			used[nadr.Spec.Target.Name] = "NonAdminDownloadRequest " + nadr.Name
		}
	}
	drills := &holdfastv1alpha1.RestoreDrillList{}
	if err := reader.List(ctx, drills, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list RestoreDrills of namespace %s: %w", namespace, err)
	}
	for _, drill := range drills.Items {
		if drill.Status.Phase != holdfastv1alpha1.DrillEnded {
			used[cmp.Or(drill.Status.Backup, drill.Spec.BackupName)] = "RestoreDrill " + drill.Name
		}
	}
	return used, nil
}

// restoreEnded: nothing reads the backup any more, also not the finalization.
func restoreEnded(nar *oadpv1alpha1.NonAdminRestore) bool {
	if nar.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff {
		return !k8s.WaitsForTurn(nar.Status.Conditions)
	}
	made := nar.Status.VeleroRestore
	if made == nil || made.Status == nil {
		return false
	}
	finalized := meta.IsStatusConditionTrue(nar.Status.Conditions, string(oadpv1alpha1.NonAdminConditionFinalized))
	return velero.Finished(made.Status.Phase) && (finalized || !velero.Usable(made.Status.Phase))
}
