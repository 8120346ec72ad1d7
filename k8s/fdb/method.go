package fdb

import (
	"strconv"
	"strings"
	"time"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// Command holds the arguments for starting or modifying a backup.
type Command struct {
	URL, Tag string
	// SnapshotPeriodSeconds is not changed by Modify if it is 0.
	SnapshotPeriodSeconds int64
	// KeyRanges are "start end", as FoundationDB prints keys; no range means all keys.
	KeyRanges []string
}

// Method is a way of backing FoundationDB up (spec.backupType), as arguments of its tools. They are those of fdbbackup, the first
// being the sub-command; the caller adds the option that names the cluster file. No argument holds a secret: secrets in URLs are
// removed.
type Method interface {
	Start(command Command) []string
	// DryStart has the tool check the arguments of Start, and start nothing.
	DryStart(command Command) []string
	// DryWrite makes the container of a URL, as Start does first, and changes no backup: it fails with "UID verification failed".
	// A backup must run on the tag.
	DryWrite(url, tag string) []string
	// Modify changes the period, and the URL unless it is empty.
	Modify(command Command) []string
	Abort(tag string) []string
	// Status prints JSON, or text for people; only the text has errors.
	Status(tag string, json bool) []string
	// Describe prints JSON about the real content of a container. With timestamps it queries the database for the times of versions.
	Describe(url string, timestamps bool) []string
	// Pause and Resume pause and resume all agents of the cluster.
	Pause() []string
	Resume() []string
	// AgentCommand is the command of a backup agent's container.
	AgentCommand() (command, args []string)
}

// MethodOf returns the method of a backup type; the zero value is backup_agent.
func MethodOf(kind fdbv1alpha1.BackupType) (Method, bool) {
	switch kind {
	case "", fdbv1alpha1.BackupTypeAgent:
		return agentMethod{}, true
	}
	return nil, false
}

// agentMethod backs up continuously, with the processes named backup_agent.
type agentMethod struct{}

var _ Method = agentMethod{}

// Start implements Method.
func (agentMethod) Start(c Command) []string {
	args := append([]string{"start", "-d", CleanURL(c.URL)}, tagOption(c.Tag)...)
	args = append(args, periodOption(c.SnapshotPeriodSeconds)...)
	args = append(args, "-z")
	for _, keys := range c.KeyRanges {
		args = append(args, "-k", RangeArgument(keys))
	}
	return args
}

// DryStart implements Method.
func (m agentMethod) DryStart(c Command) []string { return append(m.Start(c), "-n") }

// noUID is no backup's.
const noUID = "00000000000000000000000000000000"

// DryWrite implements Method. The tool makes the container before it compares UIDs.
func (agentMethod) DryWrite(url, tag string) []string {
	return append(append([]string{"modify"}, tagOption(tag)...), "-d", CleanURL(url), "--verify-uid", noUID)
}

// Modify implements Method.
func (agentMethod) Modify(c Command) []string {
	args := append([]string{"modify"}, tagOption(c.Tag)...)
	args = append(args, periodOption(c.SnapshotPeriodSeconds)...)
	if c.URL != "" {
		args = append(args, "-d", CleanURL(c.URL))
	}
	return args
}

// Abort implements Method.
func (agentMethod) Abort(tag string) []string { return append([]string{"abort"}, tagOption(tag)...) }

// Status implements Method.
func (agentMethod) Status(tag string, json bool) []string {
	args := append([]string{"status"}, tagOption(tag)...)
	if json {
		args = append(args, "--json")
	}
	return args
}

// Describe implements Method. Without --deep the description goes stale (apple/foundationdb#12069).
func (agentMethod) Describe(url string, timestamps bool) []string {
	args := []string{"describe", "-d", CleanURL(url), "--deep", "--json"}
	if timestamps {
		args = append(args, "--version-timestamps")
	}
	return args
}

// Pause implements Method.
func (agentMethod) Pause() []string { return []string{"pause"} }

// Resume implements Method.
func (agentMethod) Resume() []string { return []string{"resume"} }

// AgentCommand implements Method. The variables are those of the agents' pod template.
func (agentMethod) AgentCommand() (command, args []string) {
	return []string{"backup_agent"}, []string{
		"--log", "--logdir", "/var/log/fdb-trace-logs",
		"--locality_zoneid=$(FDB_ZONE_ID)", "--locality_machineid=$(FDB_MACHINE_ID)",
	}
}

// tagOption returns the option in one word: a tag may begin with a dash, and the tools read such a word as another option.
func tagOption(tag string) []string {
	if strings.HasPrefix(tag, "-") {
		return []string{"--tagname=" + tag}
	}
	return []string{"-t", tag}
}

func periodOption(seconds int64) []string {
	if seconds <= 0 {
		return nil
	}
	return []string{"-s", strconv.FormatInt(seconds, 10)}
}

// RangeArgument writes "start end" so that the tool reads the same keys: it reads a quote as the start of a quoted text, a
// semicolon as the end of the range, and a dash at the start as an option.
func RangeArgument(keys string) string {
	keys = strings.NewReplacer(`"`, `\x22`, `;`, `\x3b`).Replace(keys)
	if rest, dashed := strings.CutPrefix(keys, "-"); dashed {
		keys = `\x2d` + rest
	}
	return keys
}

// PlaceAt returns the URL of a backup that is started at a time.
func PlaceAt(desired contract.FDBDesired, at time.Time) (string, error) {
	base, err := ParseURL(desired.URL)
	if err != nil {
		return "", err
	}
	destination, err := base.At(desired.TimestampFormat, at)
	return destination.URL(), err
}
