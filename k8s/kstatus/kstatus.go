package kstatus

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// Types of conditions.
const (
	ConditionComplete    = "Complete"
	ConditionReady       = "Ready"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
)

// Kept is an object of a kind that writes condition Ready, and observedGeneration, itself.
type Kept interface {
	client.Object
	// StatusConditions are those of the status.
	StatusConditions() *[]metav1.Condition
	// ActionNeeded reports whether somebody has to act on this reason of a Ready that is False.
	ActionNeeded(reason string) bool
}

// state has the library's words.
type state int

const (
	inProgress state = iota
	failed
	current
)

// finding says in which state an object is, and why.
type finding struct {
	state           state
	reason, message string
}

// status are the parts of a status that this package writes, and what it says.
type status struct {
	conditions *[]metav1.Condition
	// observed is nil if the kind writes its observedGeneration itself.
	observed *int64
	// aim is Complete or Ready; empty if the kind writes it itself.
	aim string
	// result is what aim says.
	result finding
	// now is what Reconciling and Stalled say.
	now finding
}

func statusOf(object client.Object) (status, bool) {
	switch object := object.(type) {
	case *oadpv1alpha1.NonAdminBackup:
		s := &object.Status
		result, now := run(object, velerosBackup(s.VeleroBackup))
		return status{&s.Conditions, &s.ObservedGeneration, ConditionComplete, result, now}, true
	case *oadpv1alpha1.NonAdminRestore:
		s := &object.Status
		result, now := run(object, velerosRestore(s.VeleroRestore, s.Finalization))
		return status{&s.Conditions, &s.ObservedGeneration, ConditionComplete, result, now}, true
	case *oadpv1alpha1.NonAdminDownloadRequest:
		s, now := &object.Status, download(object)
		return status{&s.Conditions, &s.ObservedGeneration, ConditionComplete, now, now}, true
	case *oadpv1alpha1.NonAdminBackupStorageLocation:
		s, now := &object.Status, location(object)
		return status{&s.Conditions, &s.ObservedGeneration, ConditionReady, now, now}, true
	case Kept:
		conditions := object.StatusConditions()
		return status{conditions: conditions, now: ready(*conditions, object.ActionNeeded)}, true
	}
	return status{}, false
}

// Summarize completes the status of an object that was read as before. A condition keeps its time while its status is the same.
// If nothing but observedGeneration were written, nothing is.
func Summarize(before, object client.Object) {
	s, of := statusOf(object)
	if !of {
		return
	}
	earlier, _ := statusOf(before)
	others := slices.DeleteFunc(Others(*s.conditions), func(c metav1.Condition) bool { return c.Type == s.aim })
	generation := newest(others)
	*s.conditions = others
	write := func(kind string, is metav1.ConditionStatus, says finding) {
		condition := metav1.Condition{
			Type: kind, Status: is, Reason: says.reason, Message: says.message,
			ObservedGeneration: generation, LastTransitionTime: metav1.Now().Rfc3339Copy(),
		}
		if was := meta.FindStatusCondition(*earlier.conditions, kind); was != nil && was.Status == is {
			condition.LastTransitionTime = was.LastTransitionTime
		}
		*s.conditions = append(*s.conditions, condition)
	}
	switch {
	case s.aim == "":
	case s.result.state == current:
		write(s.aim, metav1.ConditionTrue, s.result)
	default:
		write(s.aim, metav1.ConditionFalse, s.result)
	}
	switch s.now.state {
	case inProgress:
		write(ConditionReconciling, metav1.ConditionTrue, s.now)
	case failed:
		write(ConditionStalled, metav1.ConditionTrue, s.now)
	case current:
	}
	if s.observed != nil && !equality.Semantic.DeepEqual(before, object) {
		*s.observed = generation
	}
}

// Others are the conditions from which the summary follows: all but those that only this package writes.
func Others(all []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(all), func(c metav1.Condition) bool {
		return c.Type == ConditionComplete || c.Type == ConditionReconciling || c.Type == ConditionStalled
	})
}

// newest is the newest generation that conditions are about.
func newest(conditions []metav1.Condition) (generation int64) {
	for _, condition := range conditions {
		generation = max(generation, condition.ObservedGeneration)
	}
	return generation
}
