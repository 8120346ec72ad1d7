//go:build !fdb

package fdblock

import (
	"holdfast.dev/holdfast/activities/fdb/tools"
)

// New returns nil: without build tag fdb there are no bindings to the database. The owner of the database alone keeps commands
// apart.
func New() tools.FDBLocker { return nil }
