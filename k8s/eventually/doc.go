// Package eventually waits in tests for what becomes true some time after it was asked for.
//
// Only tests import it, of both modules.
package eventually
