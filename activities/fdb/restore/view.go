package restore

import (
	"cmp"
	"slices"
	"strings"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/k8s/fdb/restoretool"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	maxTag    = 48
	uidDigits = 8
)

// Tag returns the name of an object's restore in the database. A part of the UID makes it differ from those of earlier restores.
func Tag(object *fdbv1alpha1.FoundationDBRestore) string {
	name := strings.ReplaceAll(cmp.Or(object.Spec.Tag, object.Name), ".", "-") // no tag has a dot
	uid := strings.ReplaceAll(string(object.UID), "-", "")
	return name[:min(len(name), maxTag)] + "-" + uid[:min(len(uid), uidDigits)]
}

// View returns what decides the next step, except for the namespace.
func (o *Objects) View() contract.FDBRestoreView {
	if o.Object == nil {
		return contract.FDBRestoreView{}
	}
	object, owner := o.Object, ""
	if o.Cluster.Reachable() {
		owner = o.Cluster.Owner()
	}
	view := contract.FDBRestoreView{
		Found:        true,
		BeingDeleted: !object.DeletionTimestamp.IsZero(),
		Held:         slices.Contains(object.Finalizers, fdbv1alpha1.FinalizerAbort),
		Generation:   object.Generation,
		Observed:     object.Status.ObservedGeneration == object.Generation,
		Owner:        owner,
		ClusterGone:  o.Cluster == nil,
		Problem:      o.Problem,
		Stop:         object.Spec.RestoreState == fdbv1alpha1.RestoreStateStopped,
		Tag:          Tag(object),
		URL:          o.URL,
		Container:    fdb.ContainerOf(o.URL),
		Wanted:       object.Spec.Version,
		KeyRanges:    o.KeyRanges(),
		Plan:         plainPlan(object.Status.Plan),
		State:        restoretool.Word(object.Status.State),
		Finalized:    finalized(object.Status.Finalization),
	}
	if object.Spec.Version == 0 && object.Spec.Timestamp != nil {
		view.Timestamp = object.Spec.Timestamp.Unix()
	}
	return view
}

// KeyRanges returns those of the spec, each as "start end".
func (o *Objects) KeyRanges() []string {
	var ranges []string
	for _, keys := range o.Object.Spec.KeyRanges {
		ranges = append(ranges, keys.Start+" "+keys.End)
	}
	return ranges
}

func plainPlan(plan *fdbv1alpha1.RestorePlan) *contract.FDBRestorePlan {
	if plan == nil {
		return nil
	}
	plain := &contract.FDBRestorePlan{
		Tag: plan.Tag, URL: plan.URL, Container: fdb.ContainerOf(plan.URL), Version: plan.Version, Destination: plan.Destination,
	}
	if plan.Timestamp != nil {
		plain.Time = plan.Timestamp.Unix()
	}
	return plain
}

// finalized reports whether all tasks have ended: they are all recorded before the first runs.
func finalized(tasks []fdbv1alpha1.RestoreTask) bool {
	return len(tasks) > 0 && !slices.ContainsFunc(tasks, func(task fdbv1alpha1.RestoreTask) bool {
		return task.Phase == "" || task.Phase == fdbv1alpha1.RestoreTaskInProgress
	})
}
