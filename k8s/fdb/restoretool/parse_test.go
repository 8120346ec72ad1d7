package restoretool_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/fdb/restoretool"
	"holdfast.dev/holdfast/workflows/contract"
)

const transcripts = "../../../test/fdbsim/testdata/transcripts"

var transcriptForm = regexp.MustCompile(`(?s)^\$ (.*?)\n# date: [^\n]*\n--- stdout\n(.*)--- stderr\n`)

// said returns the command of a transcript, and the output of the real tool.
func said(t *testing.T, name string) (command string, stdout []byte) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(transcripts, name+".txt"))
	require.NoError(t, err)
	parts := transcriptForm.FindSubmatch(content)
	require.NotNil(t, parts, "%s is no transcript", name)
	return string(parts[1]), parts[2]
}

func TestWhatRealToolsSayOfARestore(t *testing.T) {
	const first, paused = "9f22d9996bb0eb917a86cef56a23e33f", "eb03223d2489037a25bfbfb18d116fd6"
	completed := &contract.FDBRestoreProgress{
		Tag: "r1", UID: first, State: "completed", Blocks: 5, BlocksDone: 5, BytesWritten: 568909, CurrentVersion: 478643908,
		Version: 478643908,
	}
	queued := &contract.FDBRestoreProgress{Tag: "r1", UID: paused, State: "queued", Version: 478643908}
	for name, tt := range map[string]struct {
		tag  string
		want *contract.FDBRestoreProgress
	}{
		"50-restore-status-none":       {"r1", nil},
		"50-restore-status-none-tag":   {"r1", nil},
		"51-restore-status-0":          {"r1", &contract.FDBRestoreProgress{Tag: "r1", UID: first, State: "queued", Version: 478643908}},
		"51-restore-status-1":          {"r1", completed},
		"51-restore-status-done":       {"r1", completed},
		"51-restore-status-done-notag": {"r1", completed},
		"61-status-paused":             {"r1", queued},
		"61-status-all":                {"r1", queued},
		"61-start-same-tag":            {"r1", nil},
		"62-status-aborted":            {"r1", &contract.FDBRestoreProgress{Tag: "r1", UID: paused, State: "aborted", Version: 478643908}},
		"62-abort":                     {"r1", &contract.FDBRestoreProgress{Tag: "r1", State: "aborted"}},
		"62-abort-unknown":             {"nosuch", nil},
		"62-wait-unknown":              {"nosuch", nil},
		"62-wait-completes": {"r1", &contract.FDBRestoreProgress{
			Tag: "r1", UID: "ea76a2d53b4a32a897c1f7e379047879", State: "completed", Blocks: 5, BlocksDone: 5, BytesWritten: 568909,
			CurrentVersion: 478643908,
		}},
		"86-big-status": {"big", &contract.FDBRestoreProgress{
			Tag: "big", UID: "5f52c70e750b09aa44f8fc3c0acfa05b", State: "aborted", Blocks: 45, BlocksDone: 45, BytesWritten: 39999689,
			Version: 818643908,
		}},
		"b3-status": {"m3", &contract.FDBRestoreProgress{
			Tag: "m3", UID: "d515f832f53201f6f0ac174e6bd2c8b3", State: "running", Blocks: 5, BlocksDone: 4, CurrentVersion: 445115872,
			Version: 478643908, LastError: "'Corrupted backup data' on 'restore_range_data'",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, output := said(t, name)
			found, err := restoretool.ParseRestoreStatus(output, tt.tag)
			if name == "61-start-same-tag" {
				require.Error(t, err, "it is the answer to another command")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.want, found)
			found, err = restoretool.ParseRestoreStatus(output, "another")
			require.NoError(t, err)
			assert.Nil(t, found, "another tag is never confused with it")
		})
	}
}

// Every status in the transcripts is understood, also those of other people's restores.
func TestEveryRealStatusIsUnderstood(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(transcripts, "*.txt"))
	require.NoError(t, err)
	queries := regexp.MustCompile(`^fdbrestore (status|wait|abort) `)
	tag := regexp.MustCompile(` -t (\S+)`)
	states, count := map[string]bool{}, 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		if !strings.HasPrefix(string(content), "$ fdbrestore ") || !transcriptForm.Match(content) {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		command, output := said(t, name)
		names := tag.FindStringSubmatch(command)
		if !queries.MatchString(command) || names == nil || strings.Contains(string(content), "exit code: 1") {
			continue
		}
		found, err := restoretool.ParseRestoreStatus(output, names[1])
		require.NoError(t, err, name)
		count++
		if found != nil {
			states[found.State] = true
			assert.Contains(t, []string{"queued", "starting", "running", "completed", "aborted"}, found.State, name)
			assert.NotContains(t, found.LastError, "ago")
		}
	}
	assert.Greater(t, count, 10)
	assert.GreaterOrEqual(t, len(states), 3)
}

func TestStatusInOtherWords(t *testing.T) {
	const uid = "00112233445566778899aabbccddeeff"
	for title, tt := range map[string]struct {
		output string
		want   *contract.FDBRestoreProgress
		fails  bool
	}{
		"nothing":            {output: "\n"},
		"no restores":        {output: "No restores found.\n"},
		"spelled right":      {output: "Tag: t  UID: " + uid + "  State: uninitialized  Blocks: 0/0"},
		"something else":     {output: "ERROR: what?", fails: true},
		"a longer tag's":     {output: "Tag: t2  UID: " + uid + "  State: running  Blocks: 1/2"},
		"a tag that ends so": {output: "Tag: xt  UID: " + uid + "  State: running  Blocks: 1/2"},
		"in capitals":        {"Tag: t  UID: " + strings.ToUpper(uid) + "  State: RUNNING  Blocks: 1/2", &contract.FDBRestoreProgress{Tag: "t", UID: uid, State: "running", Blocks: 2, BlocksDone: 1}, false},
		"fields left out":    {"Tag: t  UID: " + uid + "  State: running", &contract.FDBRestoreProgress{Tag: "t", UID: uid, State: "running"}, false},
		"a number too large": {"Tag: t  UID: " + uid + "  State: running  Blocks: 99999999999999999999/2", &contract.FDBRestoreProgress{Tag: "t", UID: uid, State: "running", Blocks: 2}, false},
		"among others' states": {
			"Tag: a  UID: " + uid + "  State: completed  Blocks: 9/9  LastError: None  URL: u  Version: 1\n\n" +
				"Tag: t  UID: " + uid + "  State: running  Blocks: 1/2  LastError: None  URL: u  Version: 2\n\n" +
				"Tag: z  UID: " + uid + "  State: aborted  Blocks: 8/8  LastError: None  URL: u  Version: 3\n",
			&contract.FDBRestoreProgress{Tag: "t", UID: uid, State: "running", Blocks: 2, BlocksDone: 1, Version: 2}, false,
		},
		"an error that contains a state, a range that contains a version": {
			"Tag: t  UID: " + uid + "  State: running  Blocks: 1/2  LastError: ''x  State: completed  Version: 9' on 'y'' 0.5 seconds ago.\n" +
				"  URL: u  Range: 'a  Version: 8'-'b'  Version: 7\n",
			&contract.FDBRestoreProgress{
				Tag: "t", UID: uid, State: "running", Blocks: 2, BlocksDone: 1, Version: 7,
				LastError: "'x State: completed Version: 9' on 'y'",
			}, false,
		},
	} {
		t.Run(title, func(t *testing.T) {
			found, err := restoretool.ParseRestoreStatus([]byte(tt.output), "t")
			assert.Equal(t, tt.fails, err != nil, "%v", err)
			assert.Equal(t, tt.want, found)
		})
	}
}

func FuzzParseRestoreStatus(f *testing.F) {
	f.Add("Tag: t  UID: 00  State: running  Blocks: 1/2  LastError: ''a' on 'b'' 2s ago.\n  URL: u  Version: 1\n", "t")
	f.Fuzz(func(t *testing.T, output, tag string) {
		found, err := restoretool.ParseRestoreStatus([]byte(output), tag)
		if found == nil {
			return
		}
		require.NoError(t, err)
		assert.LessOrEqual(t, len(found.LastError)+len(found.State)+len(found.UID), 600)
	})
}

func TestWhatRealDatabasesSayOfThemselves(t *testing.T) {
	document := func(name string) []byte {
		content, err := os.ReadFile(filepath.Join(transcripts, name))
		require.NoError(t, err)
		return content
	}
	_, locked := said(t, "61-statusjson-locked")
	for title, tt := range map[string]struct {
		output []byte
		want   restoretool.DatabaseStatus
	}{
		"locked, all agents paused": {locked, restoretool.DatabaseStatus{
			Available: true, LockUID: "eb03223d2489037a25bfbfb18d116fd6", LockKnown: true, Agents: 1, Paused: true,
		}},
		"no agent ever":      {document("99-noagent-layers-65s.json"), restoretool.DatabaseStatus{Available: true, LockKnown: true}},
		"an agent":           {document("15-layers-restorable.json"), restoretool.DatabaseStatus{Available: true, LockKnown: true, Agents: 1}},
		"agents that paused": {document("24-layers-paused.json"), restoretool.DatabaseStatus{Available: true, LockKnown: true, Agents: 1, Paused: true}},
		"one that is dead": {
			[]byte(`{"client":{"timestamp":1000,"database_status":{"available":true}},"cluster":{"layers":{"backup":{"instances":` +
				`{"a":{"last_updated":879},"b":{"last_updated":881.5}}}}}}`),
			restoretool.DatabaseStatus{Available: true, Agents: 1},
		},
		"a lock without a name": {
			[]byte(`{"client":{},"cluster":{"database_lock_state":{"locked":true}}}`), restoretool.DatabaseStatus{LockUID: "unknown", LockKnown: true},
		},
		"unavailable": {
			[]byte("WARNING: x\n" + `{"client":{"database_status":{"available":false}},"cluster":{"layers":{"_valid":false}}}`),
			restoretool.DatabaseStatus{},
		},
	} {
		t.Run(title, func(t *testing.T) {
			status, err := restoretool.ParseDatabaseStatus(tt.output)
			require.NoError(t, err)
			assert.Equal(t, tt.want, status)
		})
	}
	for _, output := range []string{"", "ERROR", "{}", "[1]", `{"client":`} {
		_, err := restoretool.ParseDatabaseStatus([]byte(output))
		require.Error(t, err, output)
	}
}

func TestWhetherARangeHasKeys(t *testing.T) {
	_, some := said(t, "00-getrangekeys")
	for output, want := range map[string]bool{
		string(some):                               true,
		"\nRange limited to 1 keys\n\n":            false,
		"\nRange limited to 1 keys\n`a\\x0ab'\n\n": true,
	} {
		found, err := restoretool.ParseRangeKeys([]byte(output))
		require.NoError(t, err)
		assert.Equal(t, want, found, output)
	}
	_, err := restoretool.ParseRangeKeys([]byte("`a' is `b'\n"))
	require.Error(t, err)
}

func TestWhichVersionATimeStandsFor(t *testing.T) {
	_, output := said(t, "53-restore-timestamp")
	version, err := restoretool.ParseResolved(output)
	require.NoError(t, err)
	assert.EqualValues(t, 337992326, version)
	_, output = said(t, "55-restore-ts-before-cluster")
	_, err = restoretool.ParseResolved(output)
	require.Error(t, err)
}
