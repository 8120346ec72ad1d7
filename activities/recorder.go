package activities

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/velero"
)

// Recorder writes Kubernetes Events on NonAdminBackups or NonAdminRestores, best effort: once, after the change that they report.
// Operators' metrics are counted at the same place.
type Recorder struct {
	Cluster
	// Noun is Backup or Restore.
	Noun string
	// Metrics are those of the kind.
	Metrics *metrics.Lifecycle
}

func (r Recorder) normal(object client.Object, reason, action, note string, args ...any) {
	r.Record(object, corev1.EventTypeNormal, reason, action, note, args...)
}

func (r Recorder) warning(object client.Object, reason, action, note string, args ...any) {
	r.Record(object, corev1.EventTypeWarning, reason, action, note, args...)
}

// Verdict records a verdict that an object has in a phase now.
func (r Recorder) Verdict(object client.Object, phase oadpv1alpha1.NonAdminPhase, verdict check.Verdict) {
	switch {
	case !verdict.Accepted:
		if phase == oadpv1alpha1.NonAdminPhaseBackingOff {
			r.Metrics.Rejected()
		}
		r.warning(object, verdict.Reason, "Validate", "%s", verdict.Message)
	case phase != oadpv1alpha1.NonAdminPhaseNew: // else the Event of its creation follows a moment later
		r.normal(object, r.Noun+"Accepted", "Validate", "%s", verdict.Message)
	}
}

// Created records that the Velero object of that name was created. The time that took is not measured if it was the tenant's, or
// the queue's.
func (r Recorder) Created(object client.Object, name, phaseBefore string, waited bool) {
	if phaseBefore != string(oadpv1alpha1.NonAdminPhaseBackingOff) && !waited {
		r.Metrics.Created(object.GetCreationTimestamp().Time)
	}
	r.normal(object, "Velero"+r.Noun+"Created", "Create", "created Velero %s %s", r.Noun, name)
}

// Stalled records a stall.
func (r Recorder) Stalled(object client.Object, message string) {
	metrics.Stalled()
	r.warning(object, EventStalled, "Refresh", "%s", message)
}

// Deleting records that the deletion was announced.
func (r Recorder) Deleting(object client.Object, message string) {
	r.normal(object, EventDeleting, "Delete", "%s", message)
}

// Released records that our finalizer was removed.
func (r Recorder) Released(object client.Object, note string) {
	r.Metrics.Deleted()
	r.normal(object, EventReleased, "Delete", "%s", note)
}

// Corrected records that the status named a Velero object that was not made for this one.
func (r Recorder) Corrected(object client.Object, recorded string) {
	r.warning(object, EventCorrected, "Refresh",
		"status.velero%s named %q, which was not made for this NonAdmin%s; it was ignored and corrected", r.Noun, recorded, r.Noun)
}

// Gone records that the Velero object no longer exists.
func (r Recorder) Gone(object client.Object) {
	r.warning(object, "Velero"+r.Noun+"NotFound", "Refresh", "its Velero %s no longer exists", r.Noun)
}

// Ended is how Velero has ended a Backup or Restore.
type Ended struct {
	Phase            string
	Errors, Warnings int
	FailureReason    string
	ValidationErrors []string
	// Cancelled is what it means that somebody has cancelled it.
	Cancelled string
}

// Ended records that the status shows Velero's end.
func (r Recorder) Ended(object client.Object, end Ended) {
	noun := strings.ToLower(r.Noun)
	switch {
	case velero.Good(end.Phase):
		r.normal(object, r.Noun+"Completed", r.Noun, "Velero completed the %s (%d warnings)", noun, end.Warnings)
	case velero.Cancelled(end.Phase):
		r.warning(object, r.Noun+"Cancelled", r.Noun, "the %s was cancelled in Velero: %s", noun, end.Cancelled)
	default:
		r.warning(object, r.Noun+"Failed", r.Noun, "Velero ended the %s in phase %s (%d errors, %d warnings) %s",
			noun, end.Phase, end.Errors, end.Warnings,
			check.Concealed(end.FailureReason)+strings.Join(check.ConcealedAll(end.ValidationErrors), "; "))
	}
}
