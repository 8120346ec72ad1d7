//go:build !fdb

package fdblock

import "holdfast.dev/holdfast/activities"

// New returns nil: without build tag fdb there are no bindings to the database, and its owner alone keeps commands apart.
func New() activities.FDBLocker { return nil }
