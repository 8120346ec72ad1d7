package fdb

import (
	"errors"

	"holdfast.dev/holdfast/workflows/contract"
)

// ParseDescription reads the output of `fdbbackup describe --json`: what can be restored from a container. Only with --deep it is
// reliable. Fields that FoundationDB leaves out or adds do no harm. Without --version-timestamps the points have no time.
func ParseDescription(output []byte) (contract.FDBContainer, error) {
	var document struct {
		URL                string
		Restorable         *bool
		MinRestorablePoint *point
		MaxRestorablePoint *point
		ContiguousLogEnd   *point
	}
	if err := decode(output, &document); err != nil || document.Restorable == nil {
		return contract.FDBContainer{}, errors.New("the answer of fdbbackup describe is not the JSON description of a backup")
	}
	return contract.FDBContainer{
		URL:        boundURL(document.URL),
		Restorable: *document.Restorable,
		Oldest:     document.MinRestorablePoint.known(),
		Latest:     document.MaxRestorablePoint.known(),
		LogEnd:     document.ContiguousLogEnd.known(),
	}, nil
}
