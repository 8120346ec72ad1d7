package fdbtool

import "time"

// Operation is what a tool is run for. It has a limit of its own.
type Operation string

// The operations.
const (
	Status   Operation = "status"
	Describe Operation = "describe"
	// Probe is a describe that only tells whether a container is used, without the cluster.
	Probe  Operation = "probe"
	Start  Operation = "start"
	Modify Operation = "modify"
	Abort  Operation = "abort"
	Pause  Operation = "pause"
	Resume Operation = "resume"
)

// Limits of the operations, which all take a tenth of a second when all is well.
const (
	// StatusLimit: a cluster that does not answer makes any command hang for ever.
	StatusLimit = 20 * time.Second
	// DescribeLimit: a deep one lists every file of the container.
	DescribeLimit = 5 * time.Minute
	// ProbeLimit: a store may need 30 s to answer.
	ProbeLimit = 45 * time.Second
	// StartLimit: making a bucket may take 30 s and waiting for agents 5 s.
	StartLimit = 90 * time.Second
	// ChangeLimit is that of modify, which opens the store too, and of abort, pause and resume.
	ChangeLimit = 45 * time.Second

	// stopGrace is how long a process group may take to end when it is told to, before it is killed.
	stopGrace = 2 * time.Second
)

// CheckReserve is what is kept of the time for a changing command to stop it and look what became of it.
const CheckReserve = StatusLimit + 2*stopGrace

// Output that is kept of a tool; the rest is read and dropped.
const (
	maxStdout = 1 << 20
	maxStderr = 64 << 10
)

func (o Operation) limit() time.Duration {
	switch o {
	case Status:
		return StatusLimit
	case Describe:
		return DescribeLimit
	case Probe:
		return ProbeLimit
	case Start:
		return StartLimit
	}
	return ChangeLimit
}

// command is the sub-command of fdbbackup, for people.
func (o Operation) command() string {
	if o == Probe {
		return string(Describe)
	}
	return string(o)
}
