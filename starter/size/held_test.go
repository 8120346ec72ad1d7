package size

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// held is a measurement that is not in the model: what was done, and what that needed.
type held struct {
	name                              string
	seconds, backups, deletions, runs float64
	needed                            Needs
	// within is how far the model may be off, as a part.
	within float64
}

// heldPoints were measured as the model was: with
//
//	make bench TEMPORAL=server BENCH_ARGS="-profile long -long 4m -long-rate 12 -long-keep 0 -long-every 2m -long-rest 30s"
//
// and in the second two minutes of the measurement of plans, of which only the last four went into the model.
var heldPoints = []held{
	{
		name:    "backups created and deleted at the same time",
		seconds: 90.0, backups: 540, deletions: 492, runs: 0,
		needed: Needs{
			WorkerCPU:        16.03,
			WatcherCPU:       12.03,
			TemporalCPU:      44.27,
			DatabaseCPU:      27.4,
			APIServerCPU:     48.17,
			EtcdCPU:          9.34,
			Requests:         21565,
			FrontendRequests: 7052,
			Statements:       104006,
			Transactions:     16968,
			LogBytes:         97005488,
			DatabaseBytes:    49267868,
		},
		within: 0.65,
	},
	{
		name:    "plans, before their first deletions",
		seconds: 120.0, backups: 355, deletions: 2, runs: 355,
		needed: Needs{
			WorkerCPU:        24.67,
			WatcherCPU:       9.22,
			TemporalCPU:      61.03,
			DatabaseCPU:      33.77,
			APIServerCPU:     37.03,
			EtcdCPU:          8.75,
			Requests:         12009,
			FrontendRequests: 7752,
			Statements:       112774,
			Transactions:     20707,
			LogBytes:         107974872,
			DatabaseBytes:    37691392,
		},
		within: 0.6,
	},
}

var quantityNames = [quantities]string{
	"worker CPU", "watchers' CPU", "Temporal's CPU", "PostgreSQL's CPU", "API server's CPU", "etcd's CPU",
	"requests at the API server", "requests at Temporal's frontend", "statements", "writing transactions", "write-ahead log", "database bytes",
}

// The model predicts measurements from which it was not made (docs/capacity.md). go test ./starter/size -run HeldOut -v prints them.
func TestHeldOutMeasurementsArePredicted(t *testing.T) {
	for _, point := range heldPoints {
		t.Run(point.name, func(t *testing.T) {
			predicted := idle.times(point.seconds).plus(ofBackup.times(point.backups)).plus(ofDeletion.times(point.deletions)).
				plus(ofRun.times(point.runs))
			for of, needed := range point.needed {
				if needed == 0 {
					continue // not measured
				}
				ratio := predicted[of] / needed
				t.Logf("%-32s predicted %12.0f, measured %12.0f: %.2f", quantityNames[of], predicted[of], needed, ratio)
				if Quantity(of) == DatabaseBytes { // the most: vacuum gives some back
					assert.Greater(t, ratio, 1-point.within)
					continue
				}
				assert.InDelta(t, 1, ratio, point.within, quantityNames[of])
			}
		})
	}
}
