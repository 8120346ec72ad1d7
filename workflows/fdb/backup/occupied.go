package backup

import (
	"slices"
	"time"

	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

// Occupied returns why a backup cannot be started at that time; nil if it can. It would be written into a container that has been
// written to, and nothing could be restored from it (apple/foundationdb#1740). A format with nothing finer than the day gives all
// starts of a day the same place.
func Occupied(s Situation, at time.Time) *contract.FDBFailure {
	place, err := fdb.PlaceAt(s.View.Desired, at)
	if err != nil || !s.written(place) {
		return nil
	}
	message := "there is a backup at " + place + " already, and a second one in the same place could not be restored: set " +
		"destination.timestampFormat to one with seconds, or another destination.path"
	return &contract.FDBFailure{Class: contract.FDBClassUsed, Message: fdb.Bound(message, MaxMessage)}
}

// written: something was written there, or may have been.
func (s Situation) written(url string) bool {
	return slices.ContainsFunc(s.View.Backups, func(entry contract.FDBBackup) bool {
		return (!IsPlan(entry) || hasData(entry)) && SamePlace(entry.URL, url)
	}) || slices.ContainsFunc(s.Seen.Tags, func(tag contract.FDBTag) bool { return SamePlace(tag.URL, url) })
}

func hasData(entry contract.FDBBackup) bool { return entry.Oldest != nil || entry.Latest != nil }
