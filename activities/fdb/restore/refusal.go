package restore

import (
	"fmt"
	"time"

	"holdfast.dev/holdfast/activities/fdb/tools"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

// within says why a version cannot be restored; nil if it can.
func within(container contract.FDBContainer, version int64, what string) *contract.FDBFailure {
	if version >= container.Oldest.Version && version <= container.Latest.Version {
		return nil
	}
	return outside(container, what)
}

func outside(container contract.FDBContainer, what string) *contract.FDBFailure {
	return notRestorable("%s cannot be restored: the backup reaches from %s to %s", what, pointText(container.Oldest),
		pointText(container.Latest))
}

// refused says why FoundationDB refuses a version. The latest that can be restored may be a snapshot of a single version, which
// needs no log. Then FoundationDB refuses what is between it and the end of the log, of which it writes a file about every 20 s.
func refused(container contract.FDBContainer, version int64, what string) *contract.FDBFailure {
	if trouble := within(container, version, what); trouble != nil {
		return trouble
	}
	if end := container.LogEnd; end != nil && version >= end.Version {
		return notRestorable("%s cannot be restored: the backup's log has no gap up to %s. Of what is later only whole snapshots can "+
			"be restored, the last one at %s. Restore an earlier point, or wait while the backup runs: FoundationDB writes its log in "+
			"files of about 20 s", what, pointText(end), pointText(container.Latest))
	}
	return notRestorable("%s cannot be restored, although the backup reaches from %s to %s: FoundationDB lacks files for it. "+
		"Restore another point", what, pointText(container.Oldest), pointText(container.Latest))
}

func pointText(point *contract.FDBPoint) string {
	if point.Time == 0 {
		return fmt.Sprintf("version %d", point.Version)
	}
	return fmt.Sprintf("version %d (about %s)", point.Version, time.Unix(point.Time, 0).UTC().Format(time.RFC3339))
}

func notRestorable(format string, values ...any) *contract.FDBFailure {
	return &contract.FDBFailure{
		Class: contract.FDBClassNotRestorable, Message: fdb.Bound(fmt.Sprintf(format, values...), tools.MaxFDBMessage),
	}
}
