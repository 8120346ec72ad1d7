package content

import (
	"slices"
	"time"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
)

const (
	// maxUsual is how many backups are the measure. A namespace has more in it on some days, or hours, than on others: less than
	// the least of several is rarely chance.
	maxUsual = 5
	// A namespace may have shrunk for good, and nobody says so. That is usual after so many good backups in a row, over so long a
	// time: somebody has seen the condition by then. It is as long as Velero's own time to live.
	usualAfterRuns = 7
	usualAfter     = 30 * 24 * time.Hour
)

// Run is a good backup of the plan that is stored.
type Run struct {
	holdfastv1alpha1.RunContent
	// Ended: it was not good when the plan was last judged.
	Ended bool
	// Declared: a person has said that it holds what is usual.
	Declared bool
}

// Judge returns what the good backups of a plan hold; nil if there is none. before is what it has returned last. If nothing is
// left of what that compares with, all that are stored are judged. The same again changes nothing.
func Judge(before *holdfastv1alpha1.Content, stored []Run) *holdfastv1alpha1.Content {
	if len(stored) == 0 {
		return nil
	}
	stored = slices.SortedFunc(slices.Values(stored), func(a, b Run) int { return a.Time.Compare(b.Time.Time) })
	isUsual := func(run Run) bool { return Usual(before, run.Name) }
	all := before == nil || before.Newest == nil || !slices.ContainsFunc(stored, isUsual)
	state := &holdfastv1alpha1.Content{}
	if !all {
		state = before.DeepCopy()
		if !slices.ContainsFunc(stored, func(run Run) bool { return run.Name == before.Newest.Name }) {
			state.Newest = &stored[len(stored)-1].RunContent // a person has deleted the newest
		}
	}
	for _, run := range stored {
		if run.Ended || all {
			add(state, run.RunContent)
		}
		if run.Declared && !Usual(state, run.Name) && (len(state.Usual) == 0 || run.Time.After(state.Usual[0].Time.Time)) {
			begin(state, run.RunContent)
		}
		if state.Newest.Name == run.Name {
			again(state, run.RunContent)
		}
	}
	return state
}

// Usual reports whether a backup is one of those that hold what is usual.
func Usual(state *holdfastv1alpha1.Content, name string) bool {
	return state != nil && slices.ContainsFunc(state.Usual, func(one holdfastv1alpha1.RunContent) bool { return one.Name == name })
}

// begin makes a backup the measure.
func begin(state *holdfastv1alpha1.Content, usual holdfastv1alpha1.RunContent) {
	state.Usual = []holdfastv1alpha1.RunContent{usual}
	state.Less, state.LessSince = 0, nil
}

// add judges a backup that has just ended. One that began before the newest one may be a measure, and does not say how the newest
// is.
func add(state *holdfastv1alpha1.Content, run holdfastv1alpha1.RunContent) {
	before, verdict := state.Newest, Verdict(run, state.Usual)
	late := before != nil && run.Time.Before(&before.Time)
	if !late {
		state.Newest = &run
	}
	switch {
	case !less(verdict):
		measure(state, run, late)
	case late || len(state.Usual) == 0:
	default:
		if state.Less == 0 || Verdict(*before, state.Usual) != verdict {
			state.Less, state.LessSince = 0, &run.Time
		}
		state.Less++
		if verdict == holdfastv1alpha1.ReasonFarLess && state.Less >= usualAfterRuns &&
			run.Time.Sub(state.LessSince.Time) >= usualAfter {
			begin(state, run)
		}
	}
}

// again judges the newest backup again: its volumes may have been counted since, and the measure may be another one.
func again(state *holdfastv1alpha1.Content, run holdfastv1alpha1.RunContent) {
	state.Newest = &run
	at := slices.IndexFunc(state.Usual, func(one holdfastv1alpha1.RunContent) bool { return one.Name == run.Name })
	switch {
	case at >= 0:
		state.Usual[at], state.Less, state.LessSince = run, 0, nil
	case !less(Verdict(run, state.Usual)):
		measure(state, run, false)
	}
}

// measure adds a backup to those that hold what is usual.
func measure(state *holdfastv1alpha1.Content, run holdfastv1alpha1.RunContent, late bool) {
	state.Usual = append(state.Usual, run)
	slices.SortStableFunc(state.Usual, func(a, b holdfastv1alpha1.RunContent) int { return b.Time.Compare(a.Time.Time) })
	state.Usual = state.Usual[:min(len(state.Usual), maxUsual)]
	if !late {
		state.Less, state.LessSince = 0, nil
	}
}

func less(verdict string) bool {
	return verdict == holdfastv1alpha1.ReasonEmpty || verdict == holdfastv1alpha1.ReasonFarLess
}

// Verdict compares a backup with the usual ones. It is a reason of the condition ContentUsual. What Velero has not counted is
// neither empty nor less.
func Verdict(run holdfastv1alpha1.RunContent, usual []holdfastv1alpha1.RunContent) string {
	if run.Items == nil {
		return holdfastv1alpha1.ReasonUnknown
	}
	items, volumes := Least(usual)
	isEmpty := func(one holdfastv1alpha1.RunContent) bool { return one.Empty }
	isIt := func(one holdfastv1alpha1.RunContent) bool { return one.Name == run.Name }
	switch {
	case slices.ContainsFunc(usual, isIt):
		return holdfastv1alpha1.ReasonUsual
	case run.Empty && !slices.ContainsFunc(usual, isEmpty): // nobody has said that this is usual
		return holdfastv1alpha1.ReasonEmpty
	case *run.Items < half(items), run.Volumes < half(volumes):
		return holdfastv1alpha1.ReasonFarLess
	}
	return holdfastv1alpha1.ReasonUsual
}

// half is half of a number, rounded up: of one volume, only none is less.
func half(n int64) int64 { return (n + 1) / 2 }

// Least is how many items and volumes each of these backups has at least, of those that were counted.
func Least(of []holdfastv1alpha1.RunContent) (items, volumes int64) {
	first := true
	for _, run := range of {
		switch {
		case run.Items == nil:
		case first:
			items, volumes, first = *run.Items, run.Volumes, false
		default:
			items, volumes = min(items, *run.Items), min(volumes, run.Volumes)
		}
	}
	return items, volumes
}
