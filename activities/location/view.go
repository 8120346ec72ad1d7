package location

import (
	"fmt"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/kstatus"
	"holdfast.dev/holdfast/workflows/contract"
)

// View reduces the objects to the facts that decide the next step.
func (o *Objects) View() contract.LocationView {
	if o.Location == nil {
		return contract.LocationView{Remains: o.remains(), Held: o.held()}
	}
	view := contract.LocationView{
		Found:                true,
		Phase:                string(o.Location.Status.Phase),
		BeingDeleted:         !o.Location.DeletionTimestamp.IsZero(),
		NamespaceTerminating: o.NamespaceTerminating,
		Finalizer:            controllerutil.ContainsFinalizer(o.Location, oadpv1alpha1.NabslFinalizer),
		Velero:               contract.VeleroLocationView{Name: o.Name},
	}
	if o.Velero != nil {
		view.Velero.Exists, view.Velero.Phase = true, string(o.Velero.Status.Phase)
	}
	if view.BeingDeleted {
		view.Remains, view.Held = o.remains(), o.held()
		return view
	}
	o.validationView(&view)
	spec, approval := o.InForce()
	view.Approval = approval
	view.Requested = o.requested()
	view.InForce = spec != nil
	switch {
	case o.Foreign != "":
		view.Kept = true // until an administrator removes it
	case spec != nil && o.Copy == nil && o.problem != "":
		view.Kept = true // there is nothing to copy
	case spec != nil:
		view.Synced = (o.copySynced(spec) || o.copyKept()) && (o.refused() || o.VeleroSynced(o.NewVelero(spec)))
	case !o.Rules.RequireApproval() && o.made():
		view.Kept = true
	default:
		view.Synced = !o.made()
	}
	shown := o.Location.DeepCopy()
	o.Show(shown)
	view.Shown = apiequality.Semantic.DeepEqual(shown.Status, o.Location.Status) && kstatus.Consistent(o.Location)
	return view
}

// copyKept: the present Secret of the tenant was read and cannot be copied; the copy of the one before stays.
func (o *Objects) copyKept() bool {
	return o.problem != "" && o.Copy != nil &&
		(o.Secret == nil || o.Copy.GetAnnotations()[oadpv1alpha1.CopiedVersionAnnotation] == VersionOf(o.Secret))
}

func (o *Objects) validationView(view *contract.LocationView) {
	condition := o.accepted()
	if condition == nil {
		return
	}
	view.Accepted = condition.Status == metav1.ConditionTrue
	if !view.Accepted {
		view.Message = condition.Message
	}
	// A working location is not judged again because of changes outside its spec.
	works := view.Accepted && o.made() && o.Foreign == ""
	view.SpecValidated = condition.ObservedGeneration == o.Location.Generation &&
		(works || (o.Verdict.Accepted == view.Accepted && o.Verdict.Message == condition.Message))
}

// refused: the API server does not accept what the present spec needs.
func (o *Objects) refused() bool {
	condition := meta.FindStatusCondition(o.Location.Status.Conditions,
		string(oadpv1alpha1.NonAdminConditionBackupStorageLocationSynced))
	return condition != nil && condition.Status == metav1.ConditionFalse &&
		condition.ObservedGeneration == o.Location.Generation
}

// requested: the approval request exists if it should, and only then. An invalid spec needs none.
func (o *Objects) requested() bool {
	if o.Rules.RequireApproval() {
		return o.Request != nil || !o.Usable()
	}
	return o.Request == nil
}

func (o *Objects) remains() int {
	remains := len(o.Backups)
	for _, there := range []bool{o.Request != nil, o.Copy != nil, o.Velero != nil} {
		if there {
			remains++
		}
	}
	return remains
}

// held names, for people, objects that were deleted and still exist because of another's finalizer.
func (o *Objects) held() string {
	var held []string
	add := func(kind string, object client.Object, exists bool) {
		if exists && object.GetDeletionTimestamp() != nil {
			held = append(held, fmt.Sprintf("%s %s/%s (finalizers: %s)", kind, o.OADPNamespace, o.Name,
				strings.Join(object.GetFinalizers(), ", ")))
		}
	}
	add(oadpv1alpha1.KindApprovalRequest, o.Request, o.Request != nil)
	add("Secret", o.Copy, o.Copy != nil)
	add("BackupStorageLocation", o.Velero, o.Velero != nil)
	return strings.Join(held, ", ")
}

// Settled reports whether nothing is left to do for a NonAdminBackupStorageLocation until somebody changes it or something
// that it depends on. The watcher starts no workflow for a settled object, and a workflow ends when its object is settled.
func Settled(v contract.LocationView) bool {
	switch {
	case v.Remains == 0 && (!v.Found || (v.BeingDeleted && !v.Finalizer)):
		return true
	case !v.Found, v.BeingDeleted, !v.SpecValidated, !v.Shown:
		return false
	case !v.Finalizer && (v.Accepted || v.Velero.Exists), !v.Requested:
		return false
	}
	return v.Synced || v.Kept
}
