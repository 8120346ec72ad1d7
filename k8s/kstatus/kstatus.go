package kstatus

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/shorten"
)

// Types of conditions.
const (
	ConditionComplete    = "Complete"
	ConditionReady       = "Ready"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
)

// Types are all of them.
var Types = []string{ConditionComplete, ConditionReady, ConditionReconciling, ConditionStalled}

// maxMessageBytes keeps a condition readable. What Velero says may be too long for the API server.
const maxMessageBytes = 1024

// Kept is an object of a kind that writes condition Ready, and observedGeneration, itself.
type Kept interface {
	client.Object
	// StatusConditions are those of the status.
	StatusConditions() *[]metav1.Condition
	// ActionNeeded reports whether somebody has to act on this reason of a Ready that is False.
	ActionNeeded(reason string) bool
}

// Judged is an object of a kind that ends with a condition of its own, and writes that, and observedGeneration, itself.
type Judged interface {
	client.Object
	// StatusConditions are those of the status.
	StatusConditions() *[]metav1.Condition
	// JudgedBy is the type of that condition.
	JudgedBy() string
	// ActionNeeded reports whether the object has ended with this reason of a condition that is not True.
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
		result, now := run(object, velerosRestore(s.VeleroRestore, s.Conditions))
		return status{&s.Conditions, &s.ObservedGeneration, ConditionComplete, result, now}, true
	case *oadpv1alpha1.NonAdminDownloadRequest:
		s, now := &object.Status, download(object)
		return status{&s.Conditions, &s.ObservedGeneration, ConditionComplete, now, now}, true
	case *oadpv1alpha1.NonAdminBackupStorageLocation:
		s, now := &object.Status, location(object)
		return status{&s.Conditions, &s.ObservedGeneration, ConditionReady, now, now}, true
	case Judged:
		conditions := object.StatusConditions()
		return status{conditions: conditions, now: judged(*conditions, object.JudgedBy(), object.ActionNeeded)}, true
	case Kept:
		conditions := object.StatusConditions()
		return status{conditions: conditions, now: judged(*conditions, ConditionReady, object.ActionNeeded)}, true
	}
	return status{}, false
}

// summary are the conditions that sum the others up, without their times.
func (s status) summary() []metav1.Condition {
	var summary []metav1.Condition
	add := func(kind string, is metav1.ConditionStatus, says finding) {
		summary = append(summary, metav1.Condition{
			Type: kind, Status: is, Reason: says.reason, Message: shorten.Text(says.message, maxMessageBytes),
			ObservedGeneration: s.generation(),
		})
	}
	switch {
	case s.aim == "":
	case s.result.state == current:
		add(s.aim, metav1.ConditionTrue, s.result)
	default:
		add(s.aim, metav1.ConditionFalse, s.result)
	}
	switch s.now.state {
	case inProgress:
		add(ConditionReconciling, metav1.ConditionTrue, s.now)
	case failed:
		add(ConditionStalled, metav1.ConditionTrue, s.now)
	case current:
	}
	return summary
}

// split parts the conditions into the summary and those from which it follows.
func (s status) split() (summary, others []metav1.Condition) {
	for _, condition := range *s.conditions {
		if condition.Type == ConditionReconciling || condition.Type == ConditionStalled || (s.aim != "" && condition.Type == s.aim) {
			summary = append(summary, condition)
		} else {
			others = append(others, condition)
		}
	}
	return summary, others
}

// generation is the newest that the verdict, or the deletion, is about; without either, that any condition is about.
func (s status) generation() (generation int64) {
	_, others := s.split()
	for _, kind := range []oadpv1alpha1.NonAdminCondition{
		oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.NonAdminConditionDeleting,
	} {
		if condition := meta.FindStatusCondition(others, string(kind)); condition != nil {
			generation = max(generation, condition.ObservedGeneration)
		}
	}
	if generation > 0 {
		return generation
	}
	for _, condition := range others {
		generation = max(generation, condition.ObservedGeneration)
	}
	return generation
}

// Summarize completes the status of an object that was read as before. A condition keeps its time while its status is the same.
// If nothing but observedGeneration were written, nothing is.
func Summarize(before, object client.Object) {
	s, of := statusOf(object)
	if !of {
		return
	}
	earlier, _ := statusOf(before)
	summary, generation := s.summary(), s.generation()
	_, conditions := s.split()
	for _, condition := range summary {
		condition.LastTransitionTime = metav1.Now().Rfc3339Copy()
		if was := meta.FindStatusCondition(*earlier.conditions, condition.Type); was != nil && was.Status == condition.Status {
			condition.LastTransitionTime = was.LastTransitionTime
		}
		conditions = append(conditions, condition)
	}
	*s.conditions = conditions
	if s.observed != nil && !equality.Semantic.DeepEqual(before, object) {
		*s.observed = generation
	}
}

// Consistent reports whether the summary, but for its texts, is what follows from the rest. A worker of a release that does not
// know the summary changes the rest alone. What is to end, and was settled before Holdfast was upgraded, counts as consistent
// without a summary: to complete all of these objects would start a workflow for each.
func Consistent(object client.Object) bool {
	s, of := statusOf(object)
	if !of {
		return true
	}
	present, _ := s.split()
	if len(present) == 0 {
		return s.aim != ConditionReady
	}
	return slices.EqualFunc(present, s.summary(), func(is, follows metav1.Condition) bool {
		return is.Type == follows.Type && is.Status == follows.Status && is.Reason == follows.Reason &&
			is.ObservedGeneration == follows.ObservedGeneration
	})
}

// Others are the conditions of one of OADP's kinds from which the summary follows.
func Others(all []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(all), func(c metav1.Condition) bool { return slices.Contains(Types, c.Type) })
}
