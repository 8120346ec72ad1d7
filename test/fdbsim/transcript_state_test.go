package fdbsim_test

import (
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/fdbsim/container"
	"holdfast.dev/holdfast/test/fdbsim/state"
)

func number(value any) int64 {
	n, _ := value.(float64)
	return int64(n)
}

// version reads the version of a point in a document; 0 when there is none.
func version(parent map[string]any, name string) int64 {
	p, _ := parent[name].(map[string]any)
	return number(p["Version"])
}

// statusOf makes the backup that a status --json tells of. That the versions are those of the recording is not compared.
func statusOf(l *lab) {
	d := l.object(l.tr.stdout)
	status, used := d["Status"].(map[string]any)
	l.change(l.cluster(), func(c *state.Cluster) { c.Paused = d["BackupAgentsPaused"] == true })
	if !used {
		return
	}
	name, _ := status["Name"].(string)
	tag, _ := d["Tag"].(string)
	l.backup(tag, name)
	l.change(l.cluster(), func(c *state.Cluster) {
		b := c.Backup(tag)
		url, _ := d["DestinationURL"].(string)
		b.URL = strings.ReplaceAll(url, "$LAB", l.dir)
		if d["Restorable"] != true {
			b.FirstEnd = 0
		}
		snapshot, going := d["CurrentSnapshot"].(map[string]any)
		if !going {
			return
		}
		b.StopWhenDone, b.IntervalSeconds = d["StopAfterSnapshot"] == true, number(d["SnapshotIntervalSeconds"])
		b.SnapshotEnd = version(d, "LatestSnapshotEnd")
		b.Snapshot.Begin, b.Snapshot.EndTarget = version(snapshot, "Begin"), version(snapshot, "EndTarget")
		b.Snapshot.IntervalSeconds = number(snapshot["IntervalSeconds"])
	})
}

var (
	onTag     = regexp.MustCompile("backup on tag `([^']*)' (?:at|is) (?:(\\S+) |)(has been aborted|completed at|in progress|restorable but)")
	backupURL = regexp.MustCompile(`BackupURL: (\S+)`)
	intervals = regexp.MustCompile(`Snapshot interval is (\d+) seconds`)
	problems  = regexp.MustCompile(`second\(s\) ago : '([^']*)' on '([^']*)'`)
)

// statusTextOf makes the backup that a status tells of.
func statusTextOf(l *lab) {
	text := l.tr.stdout
	found := onTag.FindStringSubmatch(text)
	l.change(l.cluster(), func(c *state.Cluster) { c.Paused = strings.Contains(text, "agents have been paused") })
	if found == nil {
		require.Contains(l.t, text, "No previous backups found")
		return
	}
	name := map[string]string{
		"has been aborted": state.Aborted, "completed at": state.Completed, "in progress": state.Running,
		"restorable but": state.RunningDifferentially,
	}[found[3]]
	tag := found[1]
	l.backup(tag, name)
	l.change(l.cluster(), func(c *state.Cluster) {
		b := c.Backup(tag)
		b.URL = strings.ReplaceAll(backupURL.FindStringSubmatch(text)[1], "$LAB", l.dir)
		b.StopWhenDone = strings.Contains(text, "completion - Yes")
		if name == state.Running && !strings.Contains(text, "snapshot version and timestamp   - N/A") {
			b.SnapshotEnd = b.LogBegin + 1_000_000
		}
		if seconds := intervals.FindStringSubmatch(text); seconds != nil {
			b.IntervalSeconds = parse(l, seconds[1])
		}
		for _, p := range problems.FindAllStringSubmatch(text, -1) {
			b.Errors = append(b.Errors, state.Problem{At: l.tr.date, Message: p[1], Task: p[2]})
		}
	})
}

var restoreLine = regexp.MustCompile(`Tag: (\S*)  UID: \S+  State: (\w+)  Blocks: (\d+)/(\d+)  BlocksInProgress: (\d+)  Files: (\d+)  ` +
	`BytesWritten: (\d+)  CurrentVersion: (-?\d+) FirstConsistentVersion: (\d+)  ApplyVersionLag: (\d+)  LastError: (.*)`)

var (
	restoreURL   = regexp.MustCompile(`  URL: (\S+)`)
	restoreError = regexp.MustCompile(`''(.*)' on '(.*)'' `)
)

// restoreOf makes the restore that a status or wait tells of.
func restoreOf(l *lab) {
	found := restoreLine.FindStringSubmatch(l.tr.stdout)
	if found == nil || found[2] == "unitialized" {
		return
	}
	r := l.restore(found[1], found[2])
	l.change(l.cluster(), func(c *state.Cluster) {
		r := c.Restore(r.Tag)
		r.BlocksDone, r.Blocks, r.InProgress = int(parse(l, found[3])), int(parse(l, found[4])), int(parse(l, found[5]))
		r.Files, r.BytesWritten = int(parse(l, found[6])), parse(l, found[7])
		r.CurrentVersion, r.FirstConsistent, r.ApplyVersionLag = parse(l, found[8]), parse(l, found[9]), parse(l, found[10])
		if url := restoreURL.FindStringSubmatch(l.tr.stdout); url != nil {
			r.URL = strings.ReplaceAll(url[1], "$LAB", l.dir)
		}
		if problem := restoreError.FindStringSubmatch(found[11]); problem != nil {
			r.Error = &state.Problem{At: l.tr.date, Message: problem[1], Task: problem[2]}
		}
	})
	if l.tr.file == "62-wait-completes.txt" {
		recordedContainer(l)
		l.change(l.cluster(), func(c *state.Cluster) { c.Restore(r.Tag).URL = "file://" + l.path("cp1") })
		l.agent("run2", destination, nil)
	}
}

// restore makes a restore of everything, which holds the database's lock while it runs.
func (l *lab) restore(tag, name string) *state.Restore {
	r := &state.Restore{
		Tag: tag, UID: container.NewUID(), State: name, URL: "file://" + l.path("cp1"), Version: 478643908, Ranges: wholeDatabase(),
		CurrentVersion: -1,
	}
	l.change(l.cluster(), func(c *state.Cluster) {
		if r.Runnable() {
			c.LockUID = r.UID
		}
		c.SetRestore(r)
	})
	return r
}

// wholeDatabase are the ranges of a restore without -k.
func wholeDatabase() []state.Range {
	var all []state.Range
	for _, r := range systemParts {
		all = append(all, state.Range{Begin: []byte(r[0]), End: []byte(r[1])})
	}
	return all
}

// systemParts are the ranges of a snapshot, in their order.
var systemParts = [][2]string{
	{"", "\xff"},
	{"\xff\x02/blobRange/", "\xff\x02/blobRange0"},
	{"\xff/metacluster/clusterRegistration", "\xff/metacluster/clusterRegistration\x00"},
	{"\xff/tagQuota/", "\xff/tagQuota0"},
	{"\xff/tenant/", "\xff/tenant0"},
}

// abortedRestoreOf makes a restore that abort then finds as it was recorded.
func abortedRestoreOf(l *lab) {
	tag := l.tr.option("-t", "default")
	switch {
	case strings.Contains(l.tr.stdout, "State: aborted"):
		l.restore(tag, state.RestoreRunning)
	case strings.Contains(l.tr.stdout, "State: completed"):
		l.restore(tag, state.RestoreCompleted)
	}
}
