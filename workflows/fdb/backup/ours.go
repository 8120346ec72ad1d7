package backup

import (
	"slices"

	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

// current returns the state of the spec's tag, and whether a backup runs on it.
func (s Situation) current() (contract.FDBTag, bool) {
	for _, tag := range s.Seen.Tags {
		if tag.Tag == s.View.Desired.Tag {
			return tag, tag.Running
		}
	}
	return contract.FDBTag{Tag: s.View.Desired.Tag}, false
}

// Current returns the state of the spec's tag, and whether a backup of this object runs on it.
func (s Situation) Current() (contract.FDBTag, bool) {
	current, runs := s.current()
	return current, runs && s.ours(current)
}

// TagTaken reports whether somebody else's backup runs on the spec's tag.
func (s Situation) TagTaken() bool {
	current, runs := s.current()
	return runs && !s.ours(current)
}

// outdated returns the first running backup of this object that is not what the spec asks for: destination, tag or ranges differ.
func (s Situation) outdated() (contract.FDBTag, bool) {
	for _, tag := range s.Seen.Tags {
		if tag.Running && s.ours(tag) && !s.wanted(tag) {
			return tag, true
		}
	}
	return contract.FDBTag{}, false
}

// ours: the backup was started for this object, or it goes where this object's backups go, no matter who started it: several
// Kubernetes clusters may have the same object.
func (s Situation) ours(tag contract.FDBTag) bool {
	if _, known := s.known(tag); known {
		return true
	}
	return tag.Tag == s.View.Desired.Tag && s.here(tag.URL)
}

// wanted: tag, destination and ranges are those of the spec. Unknown ranges count as those of the spec.
func (s Situation) wanted(tag contract.FDBTag) bool {
	if tag.Tag != s.View.Desired.Tag || !s.here(tag.URL) {
		return false
	}
	entry, known := s.known(tag)
	return !known || slices.Equal(entry.KeyRanges, []string{RangesUnknown}) ||
		fdb.SameKeys(entry.KeyRanges, s.View.Desired.KeyRanges)
}

// RangesUnknown stands in status.backups for the ranges of a backup that somebody else has started, for example Holdfast in
// another Kubernetes cluster that has the same object: FoundationDB does not report them. They count as those of the spec.
const RangesUnknown = "unknown"

// known returns the entry of status.backups for a tag's backup. A backup at a URL where none of ours can be has no entry, even if
// the status lists it.
func (s Situation) known(tag contract.FDBTag) (contract.FDBBackup, bool) {
	if _, err := fdb.ParseURL(tag.URL); err != nil {
		return contract.FDBBackup{}, false
	}
	for _, entry := range slices.Backward(s.View.Backups) {
		if entry.Tag == tag.Tag && SamePlace(entry.URL, tag.URL) {
			return entry, true
		}
	}
	return contract.FDBBackup{}, false
}
