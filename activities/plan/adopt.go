package plan

import (
	"context"
	"errors"
	"slices"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/activity"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"holdfast.dev/holdfast/activities"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
)

// Limits of what is adopted.
const (
	// maxAdopted is how many backups one activity adopts; adoptAgain is how soon the next one does.
	maxAdopted = 20
	adoptAgain = time.Second
	// maxTried is how many it tries where the API server refuses some.
	maxTried = 100
	// backWithin is how long after a plan was restored a held backup is awaited that has not come back.
	backWithin = 30 * 24 * time.Hour
	// maxContinues and maxHeld bound the lists in the status.
	maxContinues = 5
	maxHeld      = 100
)

// begunAnew is the first status of a plan that was restored. How far the plan in the backup was is over. If that plan's status
// was restored too, this one continues it: no tenant can write a status, so the UID in it is of a plan that was in this
// namespace.
func begunAnew(p *holdfastv1alpha1.BackupPlan) holdfastv1alpha1.BackupPlanStatus {
	before := p.Status
	status := holdfastv1alpha1.BackupPlanStatus{UID: p.UID, HandledRunNow: holdfastv1alpha1.RequestedRun(p.Annotations)}
	if before.UID == "" || before.UID == p.UID {
		return status
	}
	status.Counts, status.LastVerified, status.Held = before.Counts, before.LastVerified, before.Held
	known := func(uid types.UID) bool { return uid == before.UID }
	uids := append(slices.DeleteFunc(slices.Clone(before.Continues), known), before.UID)
	status.Continues = uids[max(0, len(uids)-maxContinues):]
	return status
}

// held are the names of the backups that are held. One that may still come back stays in it, since no bucket holds its label.
func held(o *Objects, now time.Time) []string {
	var names, awaited []string
	there := map[string]bool{}
	for _, b := range o.made() {
		there[b.Object.Name] = true
		if b.Object.Labels[holdfastv1alpha1.LabelHold] == holdfastv1alpha1.LabelHoldValue {
			names = append(names, b.Object.Name)
		}
	}
	if len(o.Plan.Status.Continues) > 0 && now.Sub(o.Plan.CreationTimestamp.Time) < backWithin {
		awaited = slices.DeleteFunc(slices.Clone(o.Plan.Status.Held), func(name string) bool { return there[name] })
	}
	slices.Sort(names) // by when they were due
	all := slices.Concat(awaited, names)
	all = all[max(0, len(all)-maxHeld):]
	slices.Sort(all)
	return all
}

// adoptable: the Velero Backup came back from an administrator's bucket, and says that a plan of this name has made it, which
// this plan continues: it was found by that plan's UID. In a tenant's bucket anyone with its key can write that, and the plan
// would delete for it good backups that lie elsewhere.
func adoptable(made *velerov1.Backup, nab *oadpv1alpha1.NonAdminBackup, plan *holdfastv1alpha1.BackupPlan) bool {
	if made == nil || !owner.Backup.Called(made, nab.Namespace, nab.Name) || owner.MayBeTenants(made.Spec.StorageLocation) {
		return false
	}
	ended := made.Status.CompletionTimestamp
	return made.Annotations[holdfastv1alpha1.AnnotationRecordedPlan] == plan.Name &&
		ended != nil && made.CreationTimestamp.After(ended.Time)
}

// adopt takes up what has come back of the plans that this one continues. What is left in s.Returned is adopted later.
func (a *Activities) adopt(ctx context.Context, s *subject) error {
	candidates := s.Returned[:min(len(s.Returned), maxTried)]
	s.Returned = nil
	for adopted := 0; len(candidates) > 0; candidates = candidates[1:] {
		if adopted == maxAdopted {
			s.Returned = candidates
			return nil
		}
		b := candidates[0]
		err := a.adoptOne(ctx, s, &b)
		if errors.Is(err, activities.ErrGone) || apierrors.IsConflict(err) {
			return elsewhere(s, err)
		}
		if err != nil { // a quota, an admission webhook: the plan goes on, and a later pass tries again
			activity.GetLogger(ctx).Warn("cannot adopt a backup of an earlier plan", "name", b.Object.Name, "error", err)
			continue
		}
		s.Backups = slices.DeleteFunc(s.Backups, func(known Backup) bool { return known.Object.UID == b.Object.UID })
		s.Backups = append(s.Backups, b)
		adopted++
	}
	return nil
}

// adoptOne writes the hold first, then the record: a backup counts only when it has both.
func (a *Activities) adoptOne(ctx context.Context, s *subject, b *Backup) error {
	nab := b.Object
	_, err := a.PatchObject(ctx, nab, func() {
		metav1.SetMetaDataAnnotation(&nab.ObjectMeta, holdfastv1alpha1.AnnotationPlanUID, string(s.Plan.UID))
		if slices.Contains(s.Plan.Status.Held, nab.Name) {
			metav1.SetMetaDataLabel(&nab.ObjectMeta, holdfastv1alpha1.LabelHold, holdfastv1alpha1.LabelHoldValue)
		}
	})
	if err != nil {
		return err
	}
	due, err := time.Parse(time.RFC3339, b.Velero.Annotations[holdfastv1alpha1.AnnotationRecordedDue])
	if err != nil {
		due = dueOf(*b)
	}
	if _, err = a.PatchObject(ctx, b.Velero, func() { recordOn(b.Velero, s.Plan, due) }); err != nil {
		return err
	}
	b.Made, b.Recorded = true, true
	return nil
}

// recordOn writes on a Velero Backup, in memory, which plan has made it. Velero stores it with the backup.
func recordOn(made *velerov1.Backup, plan *holdfastv1alpha1.BackupPlan, due time.Time) {
	metav1.SetMetaDataLabel(&made.ObjectMeta, holdfastv1alpha1.LabelRecordedPlan, string(plan.UID))
	metav1.SetMetaDataAnnotation(&made.ObjectMeta, holdfastv1alpha1.AnnotationRecordedPlan, plan.Name)
	metav1.SetMetaDataAnnotation(&made.ObjectMeta, holdfastv1alpha1.AnnotationRecordedDue, due.UTC().Format(time.RFC3339))
}
