package drill

import (
	"context"
	"fmt"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/worker"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/digests"
	"holdfast.dev/holdfast/activities/drill/gather"
	"holdfast.dev/holdfast/activities/restore"
	"holdfast.dev/holdfast/activities/stores"
	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/workflows/contract"
)

// Activities acts on RestoreDrills and on the Velero Restores made for them.
type Activities struct {
	activities.Cluster
	// Gatherer and Restores read through Client. Restores has the policy, and reads the backups; its Allowlists say what a drill may
	// restore.
	Gatherer *gather.Gatherer
	Restores *restore.Gatherer
	// Buckets reads the files in a tenant's bucket before Velero does.
	Buckets interface {
		// Admit returns an error while Velero must not read the files of a Backup to restore it.
		Admit(ctx context.Context, made *velerov1.Backup) error
	}
	// Stores are shared with the finalizations: their turns are the drills', too.
	Stores *stores.Stores
	// Digests are those of the archives.
	Digests *digests.Sets
}

// Register registers the activities with a worker under their wire names.
func (a *Activities) Register(registry worker.ActivityRegistry) {
	object := a.object()
	activities.RegisterStep(registry, object, contract.RefreshDrill, a.Refresh)
	activities.RegisterStep(registry, object, contract.AdmitDrill, a.Admit)
	activities.RegisterStep(registry, object, contract.StartDrillRestore, a.Start)
	activities.RegisterWhole(registry, object, contract.CheckDrill, a.Check)
	activities.RegisterStep(registry, object, contract.ConcludeDrill, a.Conclude)
	activities.RegisterStep(registry, object, contract.ReleaseDrillVolumes, a.ReleaseVolumes)
	activities.RegisterStep(registry, object, contract.RemoveDrillRestore, a.RemoveRestore)
	activities.RegisterStep(registry, object, contract.EndDrill, a.End)
	for _, reason := range holdfastv1alpha1.VerdictReasons() {
		metrics.DrillVerdictKnown(reason)
	}
	for _, check := range []string{
		holdfastv1alpha1.CheckObjects, holdfastv1alpha1.CheckWorkloads, holdfastv1alpha1.CheckJob, metrics.DrillRestoreFailed,
	} {
		metrics.DrillCheckKnown(check)
	}
}

// object: what was made for a drill may outlive it.
func (a *Activities) object() activities.Object[objects, contract.DrillView] {
	return activities.Object[objects, contract.DrillView]{
		Cluster: a.Cluster, Kind: &holdfastv1alpha1.RestoreDrill{}, Resource: holdfastv1alpha1.ResourceRestoreDrills,
		Gather: a.gather, Outlived: true, Rereads: true,
		Gone:  func(o *objects) bool { return o.Drill == nil },
		View:  func(o *objects) contract.DrillView { return o.View() },
		Found: func(v contract.DrillView) bool { return v.Found },
	}
}

// objects are those of one drill, with what is done to its status in memory.
type objects struct {
	*gather.Objects
	// ready is since when all Pods are; zero if there are none.
	ready time.Time
	// off: the policy allows no drills any more, as read for a drill that is to begin.
	off bool
	// turnUsed: the Velero Restore was made with a turn since the objects were read.
	turnUsed bool
}

// View is that of what was read, with what a step has done.
func (o *objects) View() contract.DrillView {
	view := o.Objects.View()
	view.TurnUsed = o.turnUsed
	return view
}

func (a *Activities) gather(ctx context.Context, ref contract.ObjectRef) (*objects, error) {
	present, err := a.Gatherer.Gather(ctx, ref)
	if err != nil {
		return nil, err
	}
	o := &objects{Objects: present}
	return o, a.describeNamespace(ctx, o)
}

// reread reads the objects again within a step.
func (a *Activities) reread(ctx context.Context, ref contract.ObjectRef, o *objects) error {
	present, err := a.Gatherer.Gather(ctx, ref)
	if err == nil {
		o.Objects = present
	}
	return err
}

// patch writes the status.
func (a *Activities) patch(ctx context.Context, o *objects, change func()) error {
	before := o.Drill.Status.DeepCopy()
	changed, err := a.PatchStatus(ctx, o.Drill, func() {
		change()
		o.Drill.Status.ObservedGeneration = o.Drill.Generation
	})
	if changed {
		a.recordChanges(o.Drill, before)
	}
	return err
}

// now is when the objects were read.
func (o *objects) now() *metav1.Time { return &metav1.Time{Time: o.At} }

// stays reports whether the drill exists and is not being deleted.
func (o *objects) stays() bool { return o.Drill != nil && o.Drill.DeletionTimestamp.IsZero() }

// Refresh reads the present state, and shows that the drill waits for others.
func (a *Activities) Refresh(ctx context.Context, o *objects, step contract.DrillStep) error {
	if !o.stays() || o.Drill.Status.Started != nil || o.Drill.Status.Concluded != nil {
		return activities.ErrUnchanged
	}
	return a.patch(ctx, o, func() {
		if o.off {
			o.refuse(drillsOff)
			return
		}
		o.showWait(step)
	})
}

// showWait writes what a drill waits for before it begins.
func (o *objects) showWait(step contract.DrillStep) {
	status := &o.Drill.Status
	why := ""
	switch {
	case len(o.Ahead) > 0 && o.Namespace == nil:
		why = fmt.Sprintf("waits for RestoreDrill %s: one drill of a namespace runs at a time", o.Ahead[0])
	case step.Unserved:
		why = "waits for its namespace, which no holdfast-worker has made yet: ask an administrator"
	case step.Waits:
		why = "waits for a place: the administrator limits the namespaces of drills, and a tenant's namespace has one at a time"
	case status.Phase == holdfastv1alpha1.DrillWaiting && o.Namespace != nil && !gather.AwaitsTurn(o.Drill):
		status.Phase, why = holdfastv1alpha1.DrillPreparing, running
	}
	if why == "" || status.Backup == "" {
		return
	}
	setVerified(o.Drill, metav1.ConditionUnknown, holdfastv1alpha1.ReasonDrillRunning, why)
	if why != running && status.Phase == holdfastv1alpha1.DrillPreparing {
		status.Phase = holdfastv1alpha1.DrillWaiting
	}
}

// running is what the condition says while nothing else is to be said.
const running = "there is no verdict yet"

// Conclude writes the verdict.
func (a *Activities) Conclude(ctx context.Context, o *objects, step contract.DrillStep) error {
	if !o.stays() {
		return activities.ErrUnchanged
	}
	rules, err := a.rules(ctx)
	if err != nil {
		return err
	}
	gone := ""
	if o.Drill.Status.Backup != "" {
		if gone, err = a.backupGone(ctx, o); err != nil {
			return err
		}
	}
	return a.patch(ctx, o, func() {
		if o.View().Oversized {
			o.refuse(tooLarge)
			return
		}
		if due := gather.Pending(&o.Drill.Status); due != nil && step.GivenUp != "" {
			o.record(due.Name, []finding{inconclusive("%s", step.GivenUp)})
		}
		o.conclude(rules.Drills.KeepLimit(), gone)
	})
}

// RemoveRestore deletes the Velero Restore, and the ConfigMap with its resource modifier.
func (a *Activities) RemoveRestore(ctx context.Context, o *objects, _ contract.DrillStep) error {
	if o.Restore == nil {
		return activities.ErrUnchanged
	}
	if err := a.removeModifier(ctx, o); err != nil {
		return err
	}
	if err := a.deleteReleased(ctx, o); err != nil {
		return err
	}
	return a.Delete(ctx, o.Restore)
}

func (a *Activities) removeModifier(ctx context.Context, o *objects) error {
	modifier := &corev1.ConfigMap{}
	exists, err := k8s.Get(ctx, a.Client, "ConfigMap", a.Gatherer.OADPNamespace, o.Name, modifier)
	if err != nil || !exists || !a.made(modifier, o) {
		return err
	}
	return a.Delete(ctx, modifier)
}

// End records that nothing is left of the drill.
func (a *Activities) End(ctx context.Context, o *objects, _ contract.DrillStep) error {
	if !o.stays() || o.Namespace != nil || o.Restore != nil {
		return activities.ErrUnchanged // no longer due
	}
	return a.patch(ctx, o, func() {
		o.Drill.Status.Phase, o.Drill.Status.Ended = holdfastv1alpha1.DrillEnded, o.now()
	})
}
