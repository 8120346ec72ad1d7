package plan

import (
	"time"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
)

// Objective is what a plan's objective is judged by.
type Objective struct {
	// RecoveryPoint is the age at which the newest good backup is too old.
	RecoveryPoint time.Duration
	// LastGood is the begin of the newest good backup; zero if there is none.
	LastGood time.Time
	// Created is when the plan was made.
	Created time.Time
	Paused  bool
}

// Verdict is a reason of the condition ObjectiveMet.
type Verdict string

// The verdicts on an objective; they are the reasons of the API.
const (
	Met            Verdict = holdfastv1alpha1.ReasonMet
	Stale          Verdict = holdfastv1alpha1.ReasonStale
	NeverSucceeded Verdict = holdfastv1alpha1.ReasonNeverSucceeded
	Unknown        Verdict = holdfastv1alpha1.ReasonUnknown
	Paused         Verdict = holdfastv1alpha1.ReasonPaused
)

// Judge judges the objective, and returns when the verdict may change without an event; zero if it cannot. A plan without a good
// backup has as long as the recovery point from its creation.
func (o Objective) Judge(now time.Time) (verdict Verdict, changes time.Time) {
	since, fresh, old := o.LastGood, Met, Stale
	if since.IsZero() {
		since, fresh, old = o.Created, Unknown, NeverSucceeded
	}
	if deadline := since.Add(o.RecoveryPoint); now.Before(deadline) {
		return fresh, deadline
	}
	if o.Paused {
		return Paused, time.Time{}
	}
	return old, time.Time{}
}
