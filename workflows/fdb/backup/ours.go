package backup

import (
	"slices"

	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

// current is the spec's tag, and whether a backup runs on it.
func (s Situation) current() (contract.FDBTag, bool) {
	for _, tag := range s.Seen.Tags {
		if tag.Tag == s.View.Desired.Tag {
			return tag, tag.Running
		}
	}
	return contract.FDBTag{Tag: s.View.Desired.Tag}, false
}

// Current is the state of the spec's tag if a backup of this object runs on it.
func (s Situation) Current() (contract.FDBTag, bool) {
	current, runs := s.current()
	return current, runs && s.ours(current)
}

// TagTaken reports whether somebody else's backup runs on the spec's tag.
func (s Situation) TagTaken() bool {
	current, runs := s.current()
	return runs && !s.ours(current)
}

// outdated is the first running backup of this object that is not what the spec asks for: destination, tag or ranges differ.
func (s Situation) outdated() (contract.FDBTag, bool) {
	for _, tag := range s.Seen.Tags {
		if tag.Running && s.ours(tag) && !s.wanted(tag) {
			return tag, true
		}
	}
	return contract.FDBTag{}, false
}

// ours: it was made for this object, or it goes where this object's backups go, whoever started it: several Kubernetes clusters
// may hold the same object.
func (s Situation) ours(tag contract.FDBTag) bool {
	if _, known := s.known(tag); known {
		return true
	}
	return tag.Tag == s.View.Desired.Tag && s.here(tag.URL)
}

// wanted: tag, destination and ranges are those of the spec. Ranges that nobody has written down are taken to be.
func (s Situation) wanted(tag contract.FDBTag) bool {
	if tag.Tag != s.View.Desired.Tag || !s.here(tag.URL) {
		return false
	}
	entry, known := s.known(tag)
	return !known || slices.Equal(entry.KeyRanges, []string{RangesUnknown}) ||
		slices.Equal(entry.KeyRanges, s.View.Desired.KeyRanges)
}

// RangesUnknown stands in status.backups for the ranges of a backup that somebody else has started, for example Holdfast in
// another Kubernetes cluster that holds the same object: FoundationDB does not tell them. They are taken to be right.
const RangesUnknown = "unknown"

// known finds the entry of status.backups that describes a tag's backup. What goes where no backup of ours can go is none,
// whatever the status says.
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
