package retention

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// State is how a backup ended.
type State int

// The states of a backup.
const (
	// Unfinished backups are never deleted.
	Unfinished State = iota
	// Good is Velero's phase Completed, and no other.
	Good
	// Failed is every other end, PartiallyFailed too.
	Failed
)

// Backup is a backup that the plan has made.
type Backup struct {
	Name  string
	State State
	// Begin is when Velero began it; of one that never began, when its object was made.
	Begin time.Time
	// Held: its label keeps it.
	Held bool
	// Usual: it is among those that hold what the plan's backups usually hold. One that holds far less, and is good, does not take
	// their place.
	Usual bool
	// Used names the object that reads it now: a restore, a download; empty if there is none.
	Used string
}

// Keep is how many are kept by each rule; 0 is none. A rule over a span of time keeps the newest good backup of each of the last
// spans that have one.
type Keep struct {
	Last, Hourly, Daily, Weekly, Monthly, Yearly int
	// MinGood of the newest good backups stay whatever the other rules say, and as many of the newest that are Usual.
	MinGood int
	// Failed of the newest failed backups stay.
	Failed int
}

// Most is how many backups the rules name at most.
func (k Keep) Most() int {
	return max(k.MinGood, k.Last+k.Hourly+k.Daily+k.Weekly+k.Monthly+k.Yearly+k.Failed)
}

// Named is a backup and the reason for its verdict.
type Named struct{ Name, Why string }

// Verdict says of each backup once what becomes of it.
type Verdict struct {
	// Kept are the backups that stay, newest first, with the rules that keep them.
	Kept []Named
	// Due are those to be deleted, oldest first.
	Due []Named
	// Blocked would be due, but must not be deleted now, oldest first.
	Blocked []Named
	// MinGood are those that MinGood keeps, whatever else does: they must not expire at Velero.
	MinGood []string
}

const (
	ruleMinGood = "minGood"
	whyBeyond   = "no rule of keep names it"
	whyFailed   = "failed, and not among the newest %d"
	whyClock    = "the clock is behind: %s is later than now"
)

// Decide judges the backups of a plan. seen is the latest time at which they were judged before: nothing is due while the clock
// is behind that, or behind the begin of a backup. The verdict depends on now in no other way.
func Decide(keep Keep, zone *time.Location, backups []Backup, now, seen time.Time) Verdict {
	backups = newestFirst(backups)
	rules := keptBy(keep, zone, backups)
	latest := seen
	for _, b := range backups {
		if b.Begin.After(latest) {
			latest = b.Begin
		}
	}
	var v Verdict
	for _, b := range backups {
		by := rules[b.Name]
		if slices.Contains(by, ruleMinGood) {
			v.MinGood = append(v.MinGood, b.Name)
		}
		why := whyBeyond
		if b.State == Failed {
			why = fmt.Sprintf(whyFailed, keep.Failed)
		}
		switch {
		case len(by) > 0:
			v.Kept = append(v.Kept, Named{b.Name, strings.Join(by, ", ")})
		case latest.After(now):
			v.Blocked = append(v.Blocked, Named{b.Name, fmt.Sprintf(whyClock, latest.UTC().Format(time.RFC3339))})
		case b.Used != "":
			v.Blocked = append(v.Blocked, Named{b.Name, "used by " + b.Used})
		default:
			v.Due = append(v.Due, Named{b.Name, why})
		}
	}
	slices.Reverse(v.Due)
	slices.Reverse(v.Blocked)
	return v
}

func newestFirst(backups []Backup) []Backup {
	return slices.SortedFunc(slices.Values(backups), func(a, b Backup) int {
		return cmp.Or(b.Begin.Compare(a.Begin), cmp.Compare(b.Name, a.Name))
	})
}

// keptBy returns the rules that keep each backup.
func keptBy(keep Keep, zone *time.Location, backups []Backup) map[string][]string {
	by := map[string][]string{}
	mark := func(b Backup, rule string) {
		if !slices.Contains(by[b.Name], rule) {
			by[b.Name] = append(by[b.Name], rule)
		}
	}
	for _, r := range rules(keep) {
		spans := map[string]bool{}
		for _, b := range backups {
			if span := r.span(b, zone); b.State == r.state && (b.Usual || !r.usual) && !spans[span] && len(spans) < r.count {
				spans[span] = true
				mark(b, r.name)
			}
		}
	}
	for _, b := range backups {
		if b.State == Unfinished {
			mark(b, "unfinished")
		}
		if b.Held {
			mark(b, "hold")
		}
	}
	return by
}

// rule keeps the newest backup of a state in each of the newest spans that have one; only Usual ones count if it says so.
type rule struct {
	name  string
	count int
	state State
	span  func(b Backup, zone *time.Location) string
	usual bool
}

func rules(keep Keep) []rule {
	each := func(b Backup, _ *time.Location) string { return b.Name }
	layout := func(layout string) func(Backup, *time.Location) string {
		return func(b Backup, zone *time.Location) string { return b.Begin.In(zone).Format(layout) }
	}
	week := func(b Backup, zone *time.Location) string {
		year, week := b.Begin.In(zone).ISOWeek()
		return fmt.Sprintf("%d-W%d", year, week)
	}
	return []rule{
		{name: "last", count: keep.Last, state: Good, span: each},
		// Autumn's second hour is another one.
		{name: "hourly", count: keep.Hourly, state: Good, span: layout("2006-01-02T15-07:00")},
		{name: "daily", count: keep.Daily, state: Good, span: layout("2006-01-02")},
		{name: "weekly", count: keep.Weekly, state: Good, span: week},
		{name: "monthly", count: keep.Monthly, state: Good, span: layout("2006-01")},
		{name: "yearly", count: keep.Yearly, state: Good, span: layout("2006")},
		{name: ruleMinGood, count: keep.MinGood, state: Good, span: each},
		{name: ruleMinGood, count: keep.MinGood, state: Good, span: each, usual: true},
		{name: "failed", count: keep.Failed, state: Failed, span: each},
	}
}
