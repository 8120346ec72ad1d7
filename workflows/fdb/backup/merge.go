package backup

import (
	"slices"

	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

// Merge returns status.backups after an inspection, the oldest first: the entries, updated, and a running backup of this object
// that had no entry. A plan stays while it may still be started. A backup that does not run and has no data any more is dropped.
func Merge(s Situation) []contract.FDBBackup {
	var merged []contract.FDBBackup
	for i, entry := range s.View.Backups {
		if s.Seen.Failure == nil {
			entry = s.seen(entry, s.View.Backups[:i])
		}
		container, described := s.container(entry.URL)
		if described {
			entry = withRange(entry, container)
		}
		entry, deleted := s.afterTurn(entry, described)
		gone := described && container.Missing && !IsPlan(entry) && !s.runsAt(entry.URL)
		stale := IsPlan(entry) && s.inspected(entry.Tag) && !hasData(entry) &&
			(Stopping(s.View) || !s.planFits(entry) || s.superseded(entry))
		if !gone && !stale && !deleted {
			merged = append(merged, entry)
		}
	}
	for _, tag := range s.Seen.Tags {
		if _, known := s.known(tag); tag.Running && !known && s.ours(tag) {
			entry := contract.FDBBackup{
				Tag: tag.Tag, URL: tag.URL, KeyRanges: []string{RangesUnknown}, State: tag.State, Latest: tag.Latest,
			}
			if container, described := s.container(entry.URL); described {
				entry = withRange(entry, container)
			}
			merged = append(merged, entry)
		}
	}
	return merged
}

// superseded: the planned backup runs elsewhere, because somebody else has started it.
func (s Situation) superseded(plan contract.FDBBackup) bool {
	current, runs := s.Current()
	return runs && s.wanted(current) && plan.Tag == current.Tag && !SamePlace(plan.URL, current.URL)
}

// inspected reports whether the state of a tag is known; it is not while the database does not answer.
func (s Situation) inspected(tag string) bool {
	return slices.ContainsFunc(s.Seen.Tags, func(seen contract.FDBTag) bool { return seen.Tag == tag })
}

// seen updates an entry's state. A backup that is not on its tag any more has ended: another backup has replaced it there.
func (s Situation) seen(entry contract.FDBBackup, earlier []contract.FDBBackup) contract.FDBBackup {
	at := slices.IndexFunc(s.Seen.Tags, func(tag contract.FDBTag) bool { return tag.Tag == entry.Tag })
	if at < 0 {
		return entry
	}
	tag := s.Seen.Tags[at]
	here := tag.URL != "" && SamePlace(tag.URL, entry.URL)
	if here && IsPlan(entry) && !tag.Running && slices.ContainsFunc(earlier, func(other contract.FDBBackup) bool {
		return other.Tag == entry.Tag && SamePlace(other.URL, entry.URL)
	}) {
		here = false // it is the earlier one that ended there
	}
	switch {
	case here:
		entry.State = tag.State
		if tag.Running {
			entry.URL = tag.URL // its parameters may have been modified
		}
	case !IsPlan(entry) && entry.State != fdb.StateCompleted:
		entry.State = fdb.StateAborted
	}
	return entry
}

// Unnoticed reports whether the status still calls a backup a plan that the database knows: its start took effect, and no
// inspection since has been written down.
func Unnoticed(s Situation) bool {
	if s.Seen.Failure != nil {
		return false
	}
	for i, entry := range s.View.Backups {
		if IsPlan(entry) && !IsPlan(s.seen(entry, s.View.Backups[:i])) {
			return true
		}
	}
	return false
}

func withRange(entry contract.FDBBackup, container contract.FDBContainer) contract.FDBBackup {
	if container.Failure == nil {
		entry.Oldest, entry.Latest = container.Oldest, container.Latest
	}
	return entry
}

func (s Situation) container(url string) (contract.FDBContainer, bool) {
	for _, container := range s.Seen.Containers {
		if SamePlace(container.URL, url) {
			return container, true
		}
	}
	return contract.FDBContainer{}, false
}

func (s Situation) runsAt(url string) bool {
	return slices.ContainsFunc(s.Seen.Tags, func(tag contract.FDBTag) bool { return tag.Running && SamePlace(tag.URL, url) })
}

// RangeDue reports whether a backup has just become restorable, and its container has not been described since: the status would
// call it reconciled without saying from when to when it can be restored.
func RangeDue(s Situation) bool {
	current, runs := s.Current()
	if s.Seen.Failure != nil || !runs || !s.complete(current) {
		return false
	}
	for _, entry := range Merge(s) {
		if SamePlace(entry.URL, current.URL) {
			container, described := s.container(entry.URL)
			return entry.Latest == nil && (!described || (container.Failure == nil && !container.Restorable))
		}
	}
	return false
}
