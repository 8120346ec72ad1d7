package size

// Quantity is one thing that work needs.
type Quantity int

// CPU is in seconds of one core.
const (
	WorkerCPU   Quantity = iota
	WatcherCPU           // all watchers of a cluster
	TemporalCPU          // its services, without the database
	DatabaseCPU
	APIServerCPU
	EtcdCPU
	Requests         // of the API server
	FrontendRequests // at Temporal, polls too
	Statements
	Transactions  // of the database, that write: each waits for the disk
	LogBytes      // that the database writes ahead
	DatabaseBytes // kept by Temporal's database until the end of retention
	quantities
)

// Needs is what some work needs of each quantity; of a rate of work, what it needs a second.
type Needs [quantities]float64

func (n Needs) plus(more Needs) Needs {
	for i := range n {
		n[i] += more[i]
	}
	return n
}

func (n Needs) times(factor float64) Needs {
	for i := range n {
		n[i] *= factor
	}
	return n
}
