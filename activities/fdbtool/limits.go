package fdbtool

import (
	"time"

	"holdfast.dev/holdfast/workflows/contract"
)

// Operation is the purpose of a run. Each has its own limit.
type Operation string

// The operations.
const (
	Status   Operation = "status"
	Describe Operation = "describe"
	// Probe is a describe without the cluster, to find out whether a container is used.
	Probe Operation = "probe"
	Start Operation = "start"
	// DryStart and DryWrite check, before a backup is aborted, whether another can be started. They change no backup.
	DryStart Operation = "dry-start"
	DryWrite Operation = "dry-write"
	// LastStart is a query by fdbcli, before an abort as well.
	LastStart Operation = "last-start"
	Modify    Operation = "modify"
	Abort     Operation = "abort"
	Pause     Operation = "pause"
	Resume    Operation = "resume"

	// Contents is a describe without the cluster: versions have no times.
	Contents Operation = "contents"
	// RestoreStatus is a command of fdbrestore for the destination, as are the next two.
	RestoreStatus Operation = "restore-status"
	RestoreStart  Operation = "restore-start"
	RestoreAbort  Operation = "restore-abort"
	// RestoreVersion is a dry run of fdbrestore, to find the version of the database at a time. It changes nothing.
	RestoreVersion Operation = "restore-version"
	// DatabaseStatus and RangeKeys are queries by fdbcli.
	DatabaseStatus Operation = "database-status"
	RangeKeys      Operation = "range-keys"
	// ReadRange reads keys and values by fdbcli.
	ReadRange Operation = "read-range"
	// ClearKeys clears all keys by fdbcli.
	ClearKeys Operation = "clear-keys"
)

// Limits of the operations. Each takes a tenth of a second if nothing is wrong.
const (
	// StatusLimit: a cluster that does not answer makes any command hang for ever.
	StatusLimit = 20 * time.Second
	// DescribeLimit: a deep describe lists every file of the container.
	DescribeLimit = 5 * time.Minute
	// ProbeLimit: a store may need 30 s to answer.
	ProbeLimit = 45 * time.Second
	// StartLimit: making a bucket may take 30 s, and the wait for agents 5 s.
	StartLimit = 90 * time.Second
	// ChangeLimit is that of modify, which opens the store too, of abort, pause and resume, and of what is tried before an abort.
	ChangeLimit = 45 * time.Second
	// QueryLimit is that of fdbcli, which gives up by itself after AnswerLimit: its own error says more than a kill.
	QueryLimit  = 25 * time.Second
	AnswerLimit = 20 * time.Second
	// RestoreStartLimit: a start lists every file of the container before it has any effect, as a describe does. The rest of the
	// time is for reading the state of the destination: before the start, a second time under the lock, and after it.
	RestoreStartLimit = contract.FDBRestoreRun - restoreReads
	restoreReads      = 3 * time.Minute

	// stopGrace is how long a process group has to end after SIGTERM, before it is killed.
	stopGrace = 2 * time.Second
)

// CheckReserve is the time that is kept to stop a command and to read the state after it.
const CheckReserve = StatusLimit + 2*stopGrace

// Limits of a tool's output; the rest is read and dropped.
const (
	maxStdout = 1 << 20
	maxStderr = 64 << 10
	// maxDocument is that of the status document of a database, which grows with its processes.
	maxDocument = 32 << 20
	// maxRange is that of keys with their values, which are printed with up to four characters for a byte.
	maxRange = 16 << 20
)

func (o Operation) maxStdout() int {
	switch o {
	case DatabaseStatus:
		return maxDocument
	case ReadRange:
		return maxRange
	}
	return maxStdout
}

const (
	toolBackup  = "fdbbackup"
	toolRestore = "fdbrestore"
	toolCLI     = "fdbcli"
)

// run is how an operation is run.
type run struct {
	// tool is the program, and sub its sub-command, for messages.
	tool, sub string
	limit     time.Duration
	// cluster are the options that name the cluster file.
	cluster []string
}

var (
	database    = []string{"-C"}
	destination = []string{"--dest-cluster-file"}
	// A dry run for a time queries the source database and does not touch the destination: so the source stands for both, and no
	// other database has to answer.
	source = []string{"--dest-cluster-file", "--orig-cluster-file"}
)

var runs = map[Operation]run{
	Status:    {toolBackup, "status", StatusLimit, database},
	Describe:  {toolBackup, "describe", DescribeLimit, database},
	Probe:     {toolBackup, "describe", ProbeLimit, nil},
	Contents:  {toolBackup, "describe", DescribeLimit, nil},
	Start:     {toolBackup, "start", StartLimit, database},
	DryStart:  {toolBackup, "start", ChangeLimit, database},
	DryWrite:  {toolBackup, "modify", ChangeLimit, database},
	Modify:    {toolBackup, "modify", ChangeLimit, database},
	Abort:     {toolBackup, "abort", ChangeLimit, database},
	Pause:     {toolBackup, "pause", ChangeLimit, database},
	Resume:    {toolBackup, "resume", ChangeLimit, database},
	LastStart: {toolCLI, "get", QueryLimit, database},

	RestoreStatus:  {toolRestore, "status", StatusLimit, destination},
	RestoreStart:   {toolRestore, "start", RestoreStartLimit, destination},
	RestoreAbort:   {toolRestore, "abort", ChangeLimit, destination},
	RestoreVersion: {toolRestore, "start", DescribeLimit, source},
	DatabaseStatus: {toolCLI, "status json", QueryLimit, database},
	RangeKeys:      {toolCLI, "getrangekeys", QueryLimit, database},
	ReadRange:      {toolCLI, "getrange", QueryLimit, database},
	ClearKeys:      {toolCLI, "clearrange", QueryLimit, database},
}
