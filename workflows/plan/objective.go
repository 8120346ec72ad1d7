package plan

import (
	"time"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
)

// Objective is what a plan's objective is judged by.
type Objective struct {
	// RecoveryPoint is the age at which the newest good backup is too old; zero if any age will do.
	RecoveryPoint time.Duration
	// LastGood is the begin of the newest good backup; zero if there is none.
	LastGood time.Time
	// Verified is the age at which the newest verified backup is too old; zero if none need be verified.
	Verified time.Duration
	// LastVerified is when the newest verified backup was complete; zero if there is none.
	LastVerified time.Time
	// Created is when the plan was made, and Drilled since when it has had drills.
	Created, Drilled time.Time
	Paused           bool
}

// Verdict is a reason of the condition ObjectiveMet.
type Verdict string

// The verdicts on an objective; they are the reasons of the API.
const (
	Met               Verdict = holdfastv1alpha1.ReasonMet
	Stale             Verdict = holdfastv1alpha1.ReasonStale
	NeverSucceeded    Verdict = holdfastv1alpha1.ReasonNeverSucceeded
	VerificationStale Verdict = holdfastv1alpha1.ReasonVerificationStale
	NeverVerified     Verdict = holdfastv1alpha1.ReasonNeverVerified
	Unknown           Verdict = holdfastv1alpha1.ReasonUnknown
	Paused            Verdict = holdfastv1alpha1.ReasonPaused
)

// worst are all verdicts, the worst first.
var worst = []Verdict{NeverSucceeded, Stale, NeverVerified, VerificationStale, Paused, Unknown, Met}

// Judged are the verdicts on an objective.
type Judged struct {
	// Recovery is that on the recovery point, empty without one; Verification that on the newest verified backup, empty if
	// none need be verified.
	Recovery, Verification Verdict
	// Changes is when a verdict may change without an event; zero if none can.
	Changes time.Time
}

// Worst is the worse of the verdicts. It is the reason of the condition.
func (j Judged) Worst() Verdict {
	for _, verdict := range worst {
		if verdict == j.Recovery || verdict == j.Verification {
			return verdict
		}
	}
	return ""
}

// Judge judges the recovery point, and returns when the verdict may change without an event; zero if it cannot. A plan without a
// good backup has as long as the recovery point from its creation.
func (o Objective) Judge(now time.Time) (verdict Verdict, changes time.Time) {
	return o.judge(now, o.RecoveryPoint, o.LastGood, o.Created)
}

// JudgeAll judges the newest verified backup, too. A plan without one has as long as the objective allows since it has had
// drills.
func (o Objective) JudgeAll(now time.Time) Judged {
	var j Judged
	if o.RecoveryPoint != 0 {
		j.Recovery, j.Changes = o.Judge(now)
	}
	if o.Verified == 0 {
		return j
	}
	verdict, changes := o.judge(now, o.Verified, o.LastVerified, o.Drilled)
	switch verdict {
	case Stale:
		verdict = VerificationStale
	case NeverSucceeded:
		verdict = NeverVerified
	}
	j.Verification = verdict
	if j.Changes.IsZero() || (!changes.IsZero() && changes.Before(j.Changes)) {
		j.Changes = changes
	}
	return j
}

// judge judges by the time of the newest backup of a kind, and returns when the verdict may change without an event. There may be
// one since the plan began.
func (o Objective) judge(now time.Time, most time.Duration, newest, began time.Time) (verdict Verdict, changes time.Time) {
	since, fresh, old := newest, Met, Stale
	if since.IsZero() {
		since, fresh, old = began, Unknown, NeverSucceeded
	}
	if deadline := since.Add(most); now.Before(deadline) {
		return fresh, deadline
	}
	if o.Paused {
		return Paused, time.Time{}
	}
	return old, time.Time{}
}
