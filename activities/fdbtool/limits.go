package fdbtool

import (
	"time"

	"holdfast.dev/holdfast/workflows/contract"
)

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

	// Contents is a describe without the cluster: versions have no times.
	Contents Operation = "contents"
	// RestoreStatus, RestoreStart and RestoreAbort are what fdbrestore does to the database.
	RestoreStatus Operation = "restore-status"
	RestoreStart  Operation = "restore-start"
	RestoreAbort  Operation = "restore-abort"
	// RestoreVersion is a dry run of fdbrestore for learning which version of the database a time stands for. It changes nothing.
	RestoreVersion Operation = "restore-version"
	// DatabaseStatus and RangeKeys ask fdbcli.
	DatabaseStatus Operation = "database-status"
	RangeKeys      Operation = "range-keys"
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
	// AskLimit is that of fdbcli, which is told to give up after AnswerLimit: it says more than one that is killed.
	AskLimit    = 25 * time.Second
	AnswerLimit = 20 * time.Second
	// RestoreStartLimit: a start lists every file of the container before it has any effect, as a describe does. The rest of the
	// time is for looking at the destination before, twice where others are to be locked out, and what became of it.
	RestoreStartLimit = contract.FDBRestoreRun - restoreLooks
	restoreLooks      = 3 * time.Minute

	// stopGrace is how long a process group may take to end when it is told to, before it is killed.
	stopGrace = 2 * time.Second
)

// CheckReserve is what is kept of the time for a changing command to stop it and look what became of it.
const CheckReserve = StatusLimit + 2*stopGrace

// Output that is kept of a tool; the rest is read and dropped.
const (
	maxStdout = 1 << 20
	maxStderr = 64 << 10
	// maxDocument is that of the status document of a database, which grows with its processes.
	maxDocument = 32 << 20
)

func (o Operation) limit() time.Duration {
	switch o {
	case Status, RestoreStatus:
		return StatusLimit
	case Describe, Contents, RestoreVersion:
		return DescribeLimit
	case Probe:
		return ProbeLimit
	case Start:
		return StartLimit
	case RestoreStart:
		return RestoreStartLimit
	case DatabaseStatus, RangeKeys:
		return AskLimit
	}
	return ChangeLimit
}

func (o Operation) maxStdout() int {
	if o == DatabaseStatus {
		return maxDocument
	}
	return maxStdout
}

// Names of the tools.
const (
	toolBackup  = "fdbbackup"
	toolRestore = "fdbrestore"
	toolCLI     = "fdbcli"
)

// tool is the program that is run.
func (o Operation) tool() string {
	switch o {
	case RestoreStatus, RestoreStart, RestoreAbort, RestoreVersion:
		return toolRestore
	case DatabaseStatus, RangeKeys:
		return toolCLI
	}
	return toolBackup
}

// command is the tool with its sub-command, for people.
func (o Operation) command() string {
	sub := string(o)
	switch o {
	case Probe, Contents:
		sub = string(Describe)
	case RestoreStatus:
		sub = "status"
	case RestoreStart, RestoreVersion:
		sub = "start"
	case RestoreAbort:
		sub = "abort"
	case DatabaseStatus:
		sub = "status json"
	case RangeKeys:
		sub = "getrangekeys"
	}
	return o.tool() + " " + sub
}

// clusterOptions name the cluster file. To a dry run for a time, the database that is asked for the time stands for the one that
// is restored into, which it does not touch: so no other has to answer.
func (o Operation) clusterOptions(file string) []string {
	switch o {
	case Probe, Contents:
		return nil
	case RestoreStatus, RestoreStart, RestoreAbort:
		return []string{"--dest-cluster-file", file}
	case RestoreVersion:
		return []string{"--dest-cluster-file", file, "--orig-cluster-file", file}
	}
	return []string{"-C", file}
}
