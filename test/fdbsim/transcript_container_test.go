package fdbsim_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/fdbsim/container"
	"holdfast.dev/holdfast/test/fdbsim/state"
)

func parse(l *lab, text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(l.t, err)
	return n
}

// pair is a range of versions.
type pair struct{ begin, end int64 }

// recordedSnapshots and recordedLogs are those of the container that most of the recordings are about.
var recordedSnapshots = []pair{
	{91734595, 91792507},
	{98519639, 132753310},
	{134852955, 218632604},
	{218907329, 258784875},
	{262335353, 279958509},
	{300515496, 328887278},
	{350493795, 379230847},
	{402841261, 420651247},
	{445115872, 466359604},
}

func recordedLogs() []pair {
	ends := []int64{111668674, 131668674, 151668674, 171668674, 213000000, 218643909}
	for end := int64(238643909); end <= 478643909; end += 20_000_000 {
		ends = append(ends, end)
	}
	logs, begin := []pair{}, int64(91668674)
	for _, end := range ends {
		logs = append(logs, pair{begin, end})
		begin = end
	}
	return logs
}

// box is a container that a test builds.
type box struct {
	l *lab
	*container.Container
}

// container is that of the command.
func (l *lab) container() box {
	url := l.tr.option("-d", l.tr.option("-r", "file://$LAB/cp1"))
	u, err := container.Parse(strings.ReplaceAll(url, "$LAB", l.dir), l.dir, false)
	require.NoError(l.t, err)
	return box{l, &container.Container{Store: container.Open(u, nil), URL: u.Text}}
}

func (b box) setProperty(name string, value int64) {
	require.NoError(b.l.t, b.Write(b.l.t.Context(), "properties/"+name, strconv.AppendInt(nil, value, 10)))
}

func (b box) logs(logs []pair) {
	for _, log := range logs {
		_, err := b.WriteLog(b.l.t.Context(), log.begin, log.end, nil)
		require.NoError(b.l.t, err)
	}
}

// snapshot writes a complete snapshot as the real agents do: a file for the keys, one for each part of the system's.
func (b box) snapshot(s pair) {
	ctx := b.l.t.Context()
	keys := []state.KeyValue{
		{Key: []byte("app/000000"), Value: []byte("x")},
		{Key: []byte("app/000001"), Value: []byte("x")},
		{Key: []byte("app/000002"), Value: []byte("x")},
		{Key: []byte("marker"), Value: []byte("two")},
	}
	var files []state.RangeFile
	for i, part := range systemParts {
		version := s.begin + (s.end-s.begin)*int64(i)/int64(len(systemParts)-1)
		file, err := b.WriteRange(ctx, s.begin, version, state.Range{Begin: []byte(part[0]), End: []byte(part[1])}, keys)
		require.NoError(b.l.t, err)
		files = append(files, file)
		keys = nil
	}
	written, err := b.WriteSnapshot(ctx, files)
	require.NoError(b.l.t, err)
	require.Equal(b.l.t, pair{written.Begin, written.End}, s)
}

// recordedContainer builds the container of most recordings.
func recordedContainer(l *lab) {
	b := l.container()
	b.logs(recordedLogs())
	for _, s := range recordedSnapshots {
		b.snapshot(s)
	}
}

var (
	snapshotLine = regexp.MustCompile(`startVersion=(\d+).*endVersion=(\d+)`)
	versionLine  = regexp.MustCompile(`(?m)^(\w+)Version:\s+(\d+)`)
)

// described is what a recorded describe tells of a container.
type described struct {
	snapshots []pair
	versions  map[string]int64 // by their names in the text
}

func describedIn(l *lab, text string) described {
	d := described{versions: map[string]int64{}}
	if strings.HasPrefix(text, "{") {
		document := l.object(text)
		snapshots, _ := document["Snapshots"].([]any)
		for _, s := range snapshots {
			snapshot, _ := s.(map[string]any)
			d.snapshots = append(d.snapshots, pair{version(snapshot, "Start"), version(snapshot, "End")})
		}
		for key, name := range map[string]string{
			"ExpiredEnd": "ExpiredEnd", "UnreliableEnd": "UnreliableEnd", "MinLogBegin": "MinLogBegin",
			"ContiguousLogEnd": "ContiguousLogEnd", "MaxLogEnd": "MaxLogEnd",
		} {
			if v := version(document, key); v != 0 {
				d.versions[name] = v
			}
		}
		return d
	}
	for _, found := range snapshotLine.FindAllStringSubmatch(text, -1) {
		d.snapshots = append(d.snapshots, pair{parse(l, found[1]), parse(l, found[2])})
	}
	for _, found := range versionLine.FindAllStringSubmatch(text, -1) {
		d.versions[found[1]] = parse(l, found[2])
	}
	return d
}

// describedContainer builds the container that a describe was recorded of: its files, and what was written down about them.
func describedContainer(l *lab) { l.build(describedIn(l, l.tr.stdout)) }

func (l *lab) build(d described) box {
	b := l.container()
	for _, s := range d.snapshots {
		b.snapshot(s)
	}
	for property, name := range map[string]string{"expired_end_version": "ExpiredEnd", "unreliable_end_version": "UnreliableEnd"} {
		if v, set := d.versions[name]; set {
			b.setProperty(property, v)
		}
	}
	begin, contiguous, end := d.versions["MinLogBegin"], d.versions["ContiguousLogEnd"], d.versions["MaxLogEnd"]
	b.logs(steps(begin, contiguous))
	switch {
	case end == contiguous:
		return b
	case l.tr.has("--deep") || strings.Contains(l.tr.file, "noprops") || l.tr.has("fdbrestore"):
		b.logs(steps(contiguous+20_000_000, end)) // there is a gap
	default:
		// An earlier describe wrote down how far the logs reached then; or the test of the laboratory wrote it there.
		b.logs(steps(contiguous, end))
		b.setProperty("log_begin_version", begin)
		b.setProperty("log_end_version", contiguous)
	}
	return b
}

// steps cuts a range of versions into log files.
func steps(begin, end int64) []pair {
	var logs []pair
	for begin < end {
		next := min(begin+20_000_000, end)
		logs = append(logs, pair{begin, next})
		begin = next
	}
	return logs
}

// restorable builds what a restore was recorded of: the container, and the state of the database that it goes to.
func restorable(l *lab) {
	tr := l.tr
	if tr.file == "55-restore-container-missing.txt" {
		return
	}
	built := describedIn(l, tr.stdout)
	var b box
	switch {
	case strings.HasPrefix(tr.file, "b2-restore-version-"):
		b = l.container()
		b.logs(steps(91668674, 338643909))
		b.logs(steps(358643909, 478643909))
		for _, s := range recordedSnapshots {
			b.snapshot(s)
		}
	case len(built.snapshots) > 0:
		b = l.build(built)
	default:
		recordedContainer(l)
		b = l.container()
	}
	switch {
	case strings.HasPrefix(tr.file, "60-stale-restore-latest") || tr.file == "c1-restore-latest.txt":
		b.setProperty("log_begin_version", built.versions["MinLogBegin"])
		b.setProperty("log_end_version", map[bool]int64{true: 278643909, false: 24540170}[tr.file[0] == '6'])
	case strings.HasPrefix(tr.file, "b1-"):
		b.damage(os.Remove)
	case strings.HasPrefix(tr.file, "b3-"):
		b.damage(func(path string) error { return os.Truncate(path, 5) })
	}
	l.prepareDestination()
}

// damage harms the file with the keys of the newest snapshot.
func (b box) damage(how func(path string) error) {
	last := recordedSnapshots[len(recordedSnapshots)-1]
	pattern := filepath.Join(strings.TrimPrefix(b.URL, "file://"), "kvranges", fmt.Sprintf("snapshot.%018d", last.begin), "0",
		fmt.Sprintf("range,%d,*", last.begin))
	found, err := filepath.Glob(pattern)
	require.NoError(b.l.t, err)
	require.NotEmpty(b.l.t, found, pattern)
	for _, path := range found {
		require.NoError(b.l.t, how(path))
	}
}

func (l *lab) prepareDestination() {
	tr := l.tr
	switch {
	case strings.Contains(tr.stderr, "non-empty destination") || strings.HasPrefix(tr.file, "a5-"):
		require.NoError(l.t, l.sim.Set(destination, map[string]string{"app/000000": "x"}))
	case strings.Contains(tr.stderr, "duplicate"):
		l.restore(tr.option("-t", "default"), state.RestoreQueued)
	case tr.hung() && !strings.HasPrefix(tr.file, "b4-") && !strings.HasPrefix(tr.file, "b3-"):
		l.lock(destination)
	}
	if tr.has("-w") && !strings.HasPrefix(tr.file, "b4-") {
		l.agent("run2", destination, nil)
	}
}
