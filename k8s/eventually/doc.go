// Package eventually waits in tests for what becomes true some time after it was asked for.
//
// Only tests import it, of both modules. It imports nothing of ours.
package eventually
