package drill

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fdbgather "holdfast.dev/holdfast/activities/fdb/gather"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
)

// admit writes that the drill begins, or why it does not. Nothing but the drill is changed.
func (o *Objects) admit(others []fdbv1alpha1.FoundationDBDrill) {
	status, now := &o.Drill.Status, metav1.NewTime(o.At)
	if status.Started != nil || status.Concluded != nil {
		return // by an earlier attempt
	}
	if why := o.unfit(others); why != "" {
		o.refuse(why)
		return
	}
	status.Started, status.Target, status.Phase = &now, o.owner(), fdbv1alpha1.FDBDrillNew
	status.URL = o.entry().URL
	setVerified(o.Drill, metav1.ConditionUnknown, holdfastv1alpha1.ReasonDrillRunning, "the drill is not over")
}

// unfit says why backup or target are not fit for the drill; empty if they are, as far as the objects show.
func (o *Objects) unfit(others []fdbv1alpha1.FoundationDBDrill) string {
	spec := o.Drill.Spec
	switch {
	case o.Backup == nil:
		return fmt.Sprintf("there is no FoundationDBBackup %q in namespace %s", spec.BackupName, o.Drill.Namespace)
	case o.entry() == nil:
		return fmt.Sprintf("FoundationDBBackup %q has no backup yet that can be restored", spec.BackupName)
	case o.outside() != "":
		return fmt.Sprintf("range %s is not within what the backup holds: %s", o.outside(), strings.Join(o.entry().KeyRanges, "; "))
	case spec.TargetClusterName == fdbgather.ClusterName(o.Backup):
		return fmt.Sprintf("FoundationDBCluster %q is the one that was backed up", spec.TargetClusterName)
	case o.Target != nil && !o.Labelled:
		return fmt.Sprintf("FoundationDBCluster %q has no label %s: %q, by which its owner lets drills use and clear it",
			spec.TargetClusterName, fdbv1alpha1.LabelDrillTarget, fdbv1alpha1.LabelDrillTargetValue)
	case o.Unready != "":
		return o.Unready
	case o.Source.Owner() == o.owner():
		return fmt.Sprintf("FoundationDBCluster %q is the database that was backed up, %s", spec.TargetClusterName, o.owner())
	}
	if other := o.before(others); other != "" {
		return fmt.Sprintf("FoundationDBDrill %q uses FoundationDBCluster %q: create another drill when it has ended",
			other, spec.TargetClusterName)
	}
	return ""
}

// changed says what has changed since the drill was admitted, so that nothing is restored; empty if nothing has.
func (o *Objects) changed() string {
	name := o.Drill.Spec.TargetClusterName
	switch {
	case o.Backup == nil:
		return fmt.Sprintf("FoundationDBBackup %q was deleted before the restore", o.Drill.Spec.BackupName)
	case !o.Labelled:
		return fmt.Sprintf("the label of FoundationDBCluster %q was removed before the restore", name)
	case o.owner() != o.Drill.Status.Target:
		return fmt.Sprintf("FoundationDBCluster %q was changed before the restore", name)
	}
	return ""
}

// before is the name of a drill that uses the same target, or is about to; empty if there is none.
func (o *Objects) before(others []fdbv1alpha1.FoundationDBDrill) string {
	for i := range others {
		other := &others[i]
		if other.UID == o.Drill.UID || other.Status.Ended != nil || other.Spec.TargetClusterName != o.Drill.Spec.TargetClusterName {
			continue
		}
		if other.Status.Started != nil || older(other, o.Drill) {
			return other.Name
		}
	}
	return ""
}

func older(a, b *fdbv1alpha1.FoundationDBDrill) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}

// others are the drills of the namespace.
func (a *Activities) others(ctx context.Context, namespace string) ([]fdbv1alpha1.FoundationDBDrill, error) {
	list := &fdbv1alpha1.FoundationDBDrillList{}
	if err := a.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list FoundationDBDrills of namespace %s: %w", namespace, err)
	}
	return list.Items, nil
}

// recording reports whether the source is to be read at its present version, which the backup will hold soon.
func (o *Objects) recording() bool {
	entry := o.entry()
	return o.Drill.Spec.Version == 0 && entry != nil && entry.State == fdb.StateRunningDifferentially
}
