// Package property checks properties over values that rapid draws: the same in every `make test`, others in every
// `make test-long`.
//
// Only tests import it.
package property
