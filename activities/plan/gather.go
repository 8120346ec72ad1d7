package plan

import (
	"context"
	"fmt"
	"slices"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/usage"
	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/planspec"
	"holdfast.dev/holdfast/k8s/shorten"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/plan/retention"
)

// Gatherer reads one BackupPlan and all that belongs to it.
type Gatherer struct {
	Reader        client.Reader
	Policy        policy.Getter
	ClusterID     string
	OADPNamespace string

	stored storedBackups
}

// Objects is one BackupPlan and what belongs to it, as read.
type Objects struct {
	// Plan is nil if no object of the requested UID exists, or if it is being deleted.
	Plan *holdfastv1alpha1.BackupPlan
	// Rules are the policy in force.
	Rules policy.Policy
	// Older are the names of the plans of the namespace that are older, without the default ones; known only if their number
	// matters.
	Older []string
	// Keep is the plan's with what the administrator enforces; nil if none is set.
	Keep *holdfastv1alpha1.Keep
	// Backups are the NonAdminBackups with the plan's label and UID, whether it has made them or not.
	Backups []Backup
	// Returned are backups that came back from a bucket, and were made by a plan that this one continues.
	Returned []Backup
	// Drills are the RestoreDrills with the plan's label and UID, newest first. They are read only if the plan makes drills.
	Drills []holdfastv1alpha1.RestoreDrill
	// Paused says who has paused the plan.
	Paused holdfastv1alpha1.PausedBy
}

// Backup is a NonAdminBackup with a plan's label and UID.
type Backup struct {
	Object *oadpv1alpha1.NonAdminBackup
	// Made: the plan has made it. Its Velero Backup or the plan's workflow says so; the label alone does not.
	Made bool
	// Recorded: the Velero Backup says so. Velero is that Velero Backup.
	Recorded bool
	Velero   *velerov1.Backup
	// Lost: its status still says that it is good, and the Velero Backup does not exist any more.
	Lost bool
}

// Gather reads the objects. made is what the plan's workflow knows of its backups. An error means that one could not be read.
func (g *Gatherer) Gather(ctx context.Context, step contract.PlanStep) (*Objects, error) {
	plan := &holdfastv1alpha1.BackupPlan{}
	exists, err := k8s.Get(ctx, g.Reader, holdfastv1alpha1.KindBackupPlan, step.Ref.Namespace, step.Ref.Name, plan)
	if err != nil {
		return nil, err
	}
	if !exists || string(plan.UID) != step.Ref.UID || !plan.DeletionTimestamp.IsZero() {
		return &Objects{}, nil
	}
	o := &Objects{Plan: plan}
	if o.Rules, err = g.Policy.Get(ctx); err != nil {
		return nil, err
	}
	if o.Older, err = g.older(ctx, o); err != nil {
		return nil, err
	}
	o.Keep = plan.Spec.Keep
	if !planspec.IsDefault(o.Rules.Own, plan.Name, &plan.Spec) {
		o.Keep = planspec.Keep(o.Rules.Plans, plan.Spec.Keep)
	}
	list := &oadpv1alpha1.NonAdminBackupList{}
	err = g.Reader.List(ctx, list, client.InNamespace(plan.Namespace), client.MatchingLabels{holdfastv1alpha1.LabelPlan: plan.Name})
	if err != nil {
		return nil, fmt.Errorf("list NonAdminBackups of plan %s: %w", step.Ref, err)
	}
	recorded, err := g.recorded(ctx, plan, list.Items)
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		nab := &list.Items[i]
		if returned := recorded.earlier[owner.SyncedFrom(nab)]; adoptable(returned, nab, plan) {
			o.Returned = append(o.Returned, Backup{Object: nab, Velero: returned})
		}
		if nab.Annotations[holdfastv1alpha1.AnnotationPlanUID] != string(plan.UID) {
			continue
		}
		made := g.made(nab, recorded.own)
		made.Made = made.Recorded || slices.Contains(step.Made, contract.PlanBackup{Name: nab.Name, UID: string(nab.UID)})
		if made.Made && !made.Recorded && made.state() == retention.Good {
			if made.Lost, err = g.lost(ctx, nab, recorded.got); err != nil {
				return nil, err
			}
		}
		o.Backups = append(o.Backups, made)
	}
	o.Drills, err = g.drills(ctx, plan)
	return o, err
}

// lost reads whether a backup that is not recorded yet has no Velero Backup: of the recorded ones that is known. Until its own
// workflow has noticed, it would cost an older one that is good.
func (g *Gatherer) lost(ctx context.Context, nab *oadpv1alpha1.NonAdminBackup, got map[string]*velerov1.Backup) (bool, error) {
	name := g.ownName(nab)
	if got != nil {
		return !owner.Backup.Called(got[name], nab.Namespace, nab.Name), nil
	}
	made := &velerov1.Backup{}
	exists, err := k8s.Get(ctx, g.Reader, "Velero Backup", g.OADPNamespace, name, made)
	return !exists || !owner.Backup.Called(made, nab.Namespace, nab.Name), err
}

// older lists the plans that come before this one where a namespace may have only so many.
func (g *Gatherer) older(ctx context.Context, o *Objects) ([]string, error) {
	if o.Rules.Plans.MaxPerNamespace == 0 {
		return nil, nil
	}
	list := &holdfastv1alpha1.BackupPlanList{}
	if err := g.Reader.List(ctx, list, client.InNamespace(o.Plan.Namespace)); err != nil {
		return nil, fmt.Errorf("list BackupPlans of namespace %s: %w", o.Plan.Namespace, err)
	}
	var names []string
	for i := range list.Items {
		other := &list.Items[i]
		first := other.CreationTimestamp.Compare(o.Plan.CreationTimestamp.Time)
		if (first < 0 || (first == 0 && other.Name < o.Plan.Name)) && !planspec.IsDefault(o.Rules.Own, other.Name, &other.Spec) {
			names = append(names, other.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// phase is Velero's phase of a backup, or without one that of the NonAdminBackup. One that a quota holds back is not finished:
// its plan makes no further one, which would wait behind it.
func (b Backup) phase() string {
	status := &b.Object.Status
	if usage.OverQuota(b.Object) {
		return oadpv1alpha1.ReasonQuotaExceeded
	}
	if k8s.WaitsForTurn(status.Conditions) { // also from BackingOff
		return string(oadpv1alpha1.NonAdminPhaseNew)
	}
	if status.VeleroBackup != nil && status.VeleroBackup.Status != nil && status.VeleroBackup.Status.Phase != "" {
		return string(status.VeleroBackup.Status.Phase)
	}
	return string(status.Phase)
}

// state is how the backup ended, as far as retention is concerned. One whose spec is refused has failed.
func (b Backup) state() retention.State { return endOf(b.phase()) }

// gone: nothing can be restored from it.
func (b Backup) gone() bool { return b.Lost || !b.goneSince().IsZero() }

func (b Backup) goneSince() time.Time { return GoneSince(b.Object) }

// GoneSince is since when a NonAdminBackup is known to have no Velero Backup any more, whose status it still shows; zero if it
// has one, or never had one.
func GoneSince(nab *oadpv1alpha1.NonAdminBackup) time.Time {
	accepted := meta.FindStatusCondition(nab.Status.Conditions, string(oadpv1alpha1.NonAdminConditionAccepted))
	if accepted == nil || accepted.Reason != oadpv1alpha1.ReasonVeleroBackupNotFound {
		return time.Time{}
	}
	return accepted.LastTransitionTime.Time
}

// deleting: somebody, or the plan, has requested its deletion.
func (b Backup) deleting() bool {
	spec := b.Object.Spec
	return spec.DeleteBackup || spec.ForceDeleteBackup || !b.Object.DeletionTimestamp.IsZero()
}

// maxWhy is how long the reason of Velero may be that is shown, in bytes.
const maxWhy = 256

// undeletable: Velero has failed to delete it.
func (b Backup) undeletable() bool { return b.deleting() && velero.Undeletable(b.Object) }

// begin is when Velero began it; before that, when the object was made.
func (b Backup) begin() time.Time {
	status := b.Object.Status.VeleroBackup
	if status != nil && status.Status != nil && status.Status.StartTimestamp != nil {
		return status.Status.StartTimestamp.Time
	}
	return b.Object.CreationTimestamp.Time
}

// expires is when Velero deletes it; zero if that is not known.
func (b Backup) expires() time.Time {
	if b.Velero != nil && b.Velero.Status.Expiration != nil {
		return b.Velero.Status.Expiration.Time
	}
	status := b.Object.Status.VeleroBackup
	if status != nil && status.Status != nil && status.Status.Expiration != nil {
		return status.Status.Expiration.Time
	}
	return time.Time{}
}

// stored is how many backups with the plan's label and UID exist at Velero, or will.
func (o *Objects) stored() int {
	return len(slices.DeleteFunc(slices.Clone(o.Backups), Backup.gone))
}

// made are the backups that the plan has made.
func (o *Objects) made() []Backup {
	return slices.DeleteFunc(slices.Clone(o.Backups), func(b Backup) bool { return !b.Made })
}

// undeletable are those of them that Velero could not delete, with why. Each is tried again by its own workflow, and keeps no
// other from being deleted (velero#3701, #4203). The request that is under way says nothing yet: what was shown before stays.
func (o *Objects) undeletable() []retention.Named {
	var named []retention.Named
	for _, b := range o.made() {
		if !b.undeletable() {
			continue
		}
		why := "Velero could not delete it; the request is repeated"
		if before := o.Plan.Status.Retention; before != nil {
			same := func(r holdfastv1alpha1.BackupReason) bool { return r.Name == b.Object.Name }
			if at := slices.IndexFunc(before.Blocked, same); at >= 0 {
				why = before.Blocked[at].Why
			}
		}
		if request := b.Object.Status.VeleroDeleteBackupRequest; request.Status != nil && len(request.Status.Errors) > 0 {
			why = shorten.Text("Velero cannot delete it: "+request.Status.Errors[0], maxWhy)
		}
		named = append(named, retention.Named{Name: b.Object.Name, Why: why})
	}
	return named
}

// endOf is how a run in this phase has ended. One whose object is gone is not counted.
func endOf(phase string) retention.State {
	switch {
	case velero.Good(phase):
		return retention.Good
	case velero.Finished(phase), phase == string(oadpv1alpha1.NonAdminPhaseBackingOff):
		return retention.Failed
	}
	return retention.Unfinished
}
