package fdbsim_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// atOnce is how many tests run at once. Most of them wait most of the time.
const atOnce = "12"

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Set("test.parallel", atOnce) != nil {
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// folder holds what the real tools printed.
const folder = "testdata/transcripts"

// notReplayed are the files that no run of the stand-in can be compared with.
var notReplayed = map[string]string{
	"97-df.txt":                         "the output of df, no command of ours",
	"a6-dead-agent-layers-timeline.txt": "a summary of two minutes of status json; TestLayersOutliveTheirAgent covers what it shows",
	"a4-expire-readonly.txt":            "needs a file system that is mounted read-only",
	"a4-delete-readonly.txt":            "needs a file system that is mounted read-only",
	"s3-start-no-bucket-us-east-1.txt":  "needs an S3 server: TestABucketThatCannotBeMade",
	"s3-modify-no-bucket-us-east-1.txt": "needs an S3 server: TestABucketThatCannotBeMade",
	"d1-start-last-in-the-future.txt":   "needs an earlier start by a clock that was ahead: TestAStartBeforeTheLastOne",
}

// transcript is one recorded run of a tool.
type transcript struct {
	file   string
	args   []string // with the tool's name
	date   time.Time
	stdout string
	stderr string
	code   int
}

func (tr *transcript) hung() bool { return tr.code == 124 }

// has says whether the command line holds these words one after the other.
func (tr *transcript) has(words ...string) bool {
	for i := range tr.args {
		if i+len(words) <= len(tr.args) && slices.Equal(tr.args[i:i+len(words)], words) {
			return true
		}
	}
	return false
}

// option is the value after a word.
func (tr *transcript) option(name, otherwise string) string {
	if at := slices.Index(tr.args, name); at >= 0 && at+1 < len(tr.args) {
		return tr.args[at+1]
	}
	return otherwise
}

var exitCode = regexp.MustCompile(`^--- exit code: (\d+)`)

func readTranscript(t *testing.T, file string) *transcript {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, file))
	require.NoError(t, err)
	tr := &transcript{file: file}
	if strings.HasSuffix(file, ".json") {
		// The whole document of a status json whose part on layers lies beside.
		tr.args, tr.stdout = []string{"fdbcli", "-C", "$LAB/run/fdb.cluster", "--exec", "status json"}, string(content)
		if strings.Contains(tr.stdout, "$LAB/run2/") {
			tr.args[2] = "$LAB/run2/fdb.cluster"
		} else if strings.Contains(tr.stdout, "$LAB/run3/") {
			tr.args[2] = "$LAB/run3/fdb.cluster"
		}
		tr.date = time.Date(2026, 11, 20, 16, 10, 0, 0, time.UTC)
		return tr
	}
	head, rest, found := strings.Cut(string(content), "--- stdout\n")
	require.True(t, found, "%s has no output", file)
	var last string
	tr.stdout, last, found = strings.Cut(rest, "--- stderr\n")
	require.True(t, found, "%s has no errors", file)
	at := strings.LastIndex(last, "--- exit code: ")
	require.GreaterOrEqual(t, at, 0, "%s has no exit code", file)
	tr.stderr = last[:at]
	tr.code, err = strconv.Atoi(exitCode.FindStringSubmatch(last[at:])[1])
	require.NoError(t, err)
	lines := strings.Split(head, "\n")
	tr.args = shellWords(strings.TrimPrefix(lines[0], "$ "))
	if len(tr.args) > 2 && tr.args[0] == "env" {
		tr.args = tr.args[3:] // env -u NAME
	}
	_, stamp, _ := strings.Cut(lines[1], "# date: ")
	stamp, _, _ = strings.Cut(stamp, " ")
	tr.date, err = time.Parse(time.RFC3339, stamp)
	require.NoError(t, err)
	return tr
}

// shellWords splits a line as bash's printf %q wrote it.
func shellWords(line string) []string {
	var words []string
	word, inWord, quoted := "", false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\'':
			quoted, inWord = !quoted, true
		case quoted:
			word += string(c)
		case c == '\\' && i+1 < len(line):
			i++
			word, inWord = word+string(line[i]), true
		case c == ' ':
			if inWord {
				words = append(words, word)
			}
			word, inWord = "", false
		default:
			word, inWord = word+string(c), true
		}
	}
	if inWord {
		words = append(words, word)
	}
	return words
}

// TestEveryTranscriptIsReplayed runs each recorded command against the stand-in, in the state that the recording was made in,
// and compares what is printed: text line by line, JSON key by key, and the exit code.
func TestEveryTranscriptIsReplayed(t *testing.T) {
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for name := range notReplayed {
		require.FileExists(t, filepath.Join(folder, name))
	}
	for _, entry := range entries {
		if _, left := notReplayed[entry.Name()]; left {
			continue
		}
		t.Run(entry.Name(), func(t *testing.T) {
			t.Parallel()
			tr := readTranscript(t, entry.Name())
			prepare, known := setUpOf(tr)
			require.True(t, known, "no set-up for this transcript, and no reason in notReplayed: %q", tr.args)
			l := newLab(t, tr)
			prepare(l)
			l.replay()
		})
	}
}

// leastHang is how long a command that hung for ever must do nothing else.
const leastHang = 500 * time.Millisecond

func (l *lab) replay() {
	tr := l.tr
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	if tr.hung() {
		go l.killWhenAllIsSaid(ctx, cancel)
	}
	code := l.runInto(ctx, &l.stdout, &l.stderr, tr.args...)
	stdout, stderr := l.stdout.String(), l.stderr.String()
	require.Equal(l.t, tr.code, code, "exit code; it printed %s%s", stdout, stderr)
	require.Equal(l.t, l.normal(tr.stderr), l.normal(stderr), "standard error")
	switch {
	case strings.HasPrefix(tr.stdout, "(reduced to cluster.layers"):
		l.compareLayers(tr.stdout, stdout)
	case strings.HasPrefix(tr.stdout, "{\n"):
		l.compareDocument(tr.stdout, stdout)
	case strings.HasPrefix(tr.stdout, "{"):
		require.Equal(l.t, l.shape(tr.stdout), l.shape(stdout))
		require.Equal(l.t, strings.HasSuffix(tr.stdout, "\n"), strings.HasSuffix(stdout, "\n"))
	case tr.hung() || tr.has("dump"):
		// It printed the same lines until it was killed; or one for each file.
		require.Equal(l.t, squeeze(l.normal(tr.stdout)), squeeze(l.normal(stdout)))
	case tr.has("fdbrestore") && (tr.has("-w") || tr.has("wait")):
		l.compareFollowed(strings.Split(l.normal(tr.stdout), "\n"), strings.Split(l.normal(stdout), "\n"))
	default:
		require.Equal(l.t, l.normal(tr.stdout), l.normal(stdout))
	}
}

// killWhenAllIsSaid ends a command that is to hang, not before it has printed what it is to print.
func (l *lab) killWhenAllIsSaid(ctx context.Context, kill context.CancelFunc) {
	want := squeeze(l.normal(l.tr.stdout))
	for begin := time.Now(); ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if time.Since(begin) > leastHang && squeeze(l.normal(l.stdout.String())) == want {
			kill()
		}
	}
}

// compareFollowed compares what tells of a restore on its way, once a second and whenever its state changes: how often it did so,
// and whether it saw every state, depends on the machine.
func (l *lab) compareFollowed(recorded, ours []string) {
	isState := func(line string) bool { return strings.HasPrefix(line, "Tag: ") }
	require.Equal(l.t, slices.DeleteFunc(slices.Clone(recorded), isState), slices.DeleteFunc(slices.Clone(ours), isState))
	at := 0
	for _, line := range slices.Compact(ours) {
		for at < len(recorded) && recorded[at] != line {
			at++
		}
		require.Less(l.t, at, len(recorded), "nothing like this was recorded at its place: %s", line)
	}
	states := slices.DeleteFunc(slices.Clone(recorded), func(line string) bool { return !isState(line) })
	if len(states) > 0 {
		require.Contains(l.t, ours, states[len(states)-1])
	}
}

// squeeze leaves one of lines that are the same, and no empty ones.
func squeeze(text string) string {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return line == "" })
	return strings.Join(slices.Compact(lines), "\n")
}

var normalizations = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "UID"},
	{regexp.MustCompile(`backup-\d{4}(-\d\d){5}\.\d{6}`), "backup-STAMP"},
	{regexp.MustCompile(`\d{4}/\d\d/\d\d\.\d\d:\d\d:\d\d[+-]\d{4}`), "TIME"},
	{regexp.MustCompile(`\blab:[a-z0-9]{8}@`), "lab:ID@"},
	{regexp.MustCompile(`(maxLogEnd \+?-)\d+\.\d\d days`), "${1}N days"},
	{regexp.MustCompile(`(Blocks|BlocksInProgress|Files|BytesWritten|FirstConsistentVersion|ApplyVersionLag): [\d/]+`), "$1: N"},
	{regexp.MustCompile(`(totalBytes=|SnapshotBytes: |ytes written - )\d+`), "${1}N"},
	{regexp.MustCompile(`\d+ second\(s\) ago`), "N second(s) ago"},
	{regexp.MustCompile(`\d+s ago`), "Ns ago"},
	{regexp.MustCompile(`target is \d+\.\d\d%`), "target is N%"},
	{regexp.MustCompile(`\d+\.\d{4} hours`), "N hours"},
	{regexp.MustCompile(`\d+ objects deleted`), "N objects deleted"},
	{regexp.MustCompile(`snapshotManifest \d+ \S+`), "snapshotManifest"},
	{regexp.MustCompile(`(range|log) \d+ (kvranges|logs)/\S+`), "$1 N $2"},
	{regexp.MustCompile(`expiredPct=[1-9]\d*\.\d\d`), "expiredPct=N"},
	{regexp.MustCompile(`\b\d{6,}\b`), "N"},
}

// normal takes out of a text what differs from run to run.
func (l *lab) normal(text string) string {
	text = strings.ReplaceAll(text, l.dir, "$LAB")
	for _, n := range normalizations {
		text = n.pattern.ReplaceAllString(text, n.by)
	}
	return text
}
