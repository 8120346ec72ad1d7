package fdb_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestTheStatusOfATagIsRead(t *testing.T) {
	const uid, url = "12c0c95d84f8e298e11fe77b55d867cf", "file://$LAB/backups/backup-2026-11-20-15-57-01.309416"
	for transcript, want := range map[string]fdb.Status{
		"00-status-json-before-any-backup": {Tag: contract.FDBTag{Tag: "t1", State: "NeverRan"}},
		"94-status-unknown-tag-json":       {Tag: contract.FDBTag{Tag: "nosuch", State: "NeverRan"}},
		"99-noagent-status-json-tn": {Tag: contract.FDBTag{
			Tag: "tn", UID: "9f66ceacc06d8a71f98963b91438da41", State: "Submitted", Running: true, URL: "file://$LAB/backups/backup-2026-11-20-16-16-02.403318",
		}},
		"11-status-json-after-start-1": {Tag: contract.FDBTag{
			Tag: "t1", UID: uid, State: "Running", Running: true, URL: url, SnapshotPeriodSeconds: 40, RangeBytes: 609102,
		}},
		"15-status-json-restorable": {Tag: contract.FDBTag{
			Tag: "t1", UID: uid, State: "RunningDifferentially", Running: true, Restorable: true, URL: url, SnapshotPeriodSeconds: 40,
			RangeBytes: 1218091, Latest: &contract.FDBPoint{Version: 111668673, Time: 1795190241},
		}},
	} {
		t.Run(transcript, func(t *testing.T) {
			status, err := fdb.ParseStatus([]byte(readTranscript(t, transcript).stdout))
			require.NoError(t, err)
			assert.Equal(t, want, status)
		})
	}
}

func TestEveryStatusOfARealToolIsRead(t *testing.T) {
	states := map[string]int{}
	paused := 0
	for _, name := range transcriptsOf(t, "fdbbackup status") {
		said := readTranscript(t, name)
		if !strings.Contains(said.command, "--json") {
			_, err := fdb.ParseStatus([]byte(said.stdout))
			require.Error(t, err, name)
			continue
		}
		if said.exit != 0 || said.hung {
			continue
		}
		status, err := fdb.ParseStatus([]byte(said.stdout))
		require.NoError(t, err, name)
		var raw struct {
			Tag    string
			Status struct{ Name string }
		}
		require.NoError(t, json.Unmarshal([]byte(said.stdout), &raw))
		require.Equal(t, raw.Tag, status.Tag.Tag, name)
		states[status.Tag.State]++
		require.Equal(t, status.Tag.Restorable, status.Tag.Latest != nil, name)
		require.Equal(t, status.Tag.State == "NeverRan", status.Tag.UID == "", name)
		if raw.Status.Name != "" {
			require.Equal(t, raw.Status.Name, status.Tag.State, name)
		}
		if status.AgentsPaused {
			paused++
		}
	}
	for _, state := range []string{"NeverRan", "Submitted", "Running", "RunningDifferentially", "Completed", "Aborted"} {
		assert.NotZero(t, states[state], "no transcript of state %s", state)
	}
	assert.NotZero(t, paused, "no transcript with the agents paused")
}

func TestAStatusIsReadWhateverIsMissingOrNew(t *testing.T) {
	for title, test := range map[string]struct {
		output string
		want   fdb.Status
	}{
		"almost nothing": {`{"Tag":"x"}`, fdb.Status{Tag: contract.FDBTag{Tag: "x", State: "NeverRan"}}},
		"after a warning, before another": {
			"Warning: old client\n{\"Tag\":\"x\",\"BackupAgentsPaused\":true}\nbye {",
			fdb.Status{AgentsPaused: true, Tag: contract.FDBTag{Tag: "x", State: "NeverRan"}},
		},
		"fields that are new": {
			`{"Tag":"x","New":{"a":[1]},"Status":{"Name":"Errored","Running":false,"New":1},"UID":"u"}`,
			fdb.Status{Tag: contract.FDBTag{Tag: "x", UID: "u", State: "Errored"}},
		},
		"a point with a time in words only": {
			`{"Tag":"x","LatestRestorablePoint":{"Version":5,"Timestamp":"2026/11/20.15:57:21+0000"}}`,
			fdb.Status{Tag: contract.FDBTag{Tag: "x", State: "NeverRan", Latest: &contract.FDBPoint{Version: 5, Time: 1795190241}}},
		},
		"a point without a time": {
			`{"Tag":"x","LatestRestorablePoint":{"Version":5,"Timestamp":"(unknown)","EpochSeconds":-1}}`,
			fdb.Status{Tag: contract.FDBTag{Tag: "x", State: "NeverRan", Latest: &contract.FDBPoint{Version: 5}}},
		},
		"a point that is none": {
			`{"Tag":"x","LatestRestorablePoint":{"Version":-1}}`, fdb.Status{Tag: contract.FDBTag{Tag: "x", State: "NeverRan"}},
		},
		"secrets in the URL": {
			`{"Tag":"x","DestinationURL":"blobstore://lab:s3cr3t:t0ken@h:1/p?bucket=b&header=Auth:s3cr3t"}`,
			fdb.Status{Tag: contract.FDBTag{Tag: "x", State: "NeverRan", URL: "blobstore://lab@h:1/p?bucket=b&header=***"}},
		},
		"a URL without a secret stays as it is": {
			`{"Tag":"x","DestinationURL":"blobstore://lab@h:1/p?bucket=b&sc=0"}`,
			fdb.Status{Tag: contract.FDBTag{Tag: "x", State: "NeverRan", URL: "blobstore://lab@h:1/p?bucket=b&sc=0"}},
		},
		"texts that are too long": {
			`{"Tag":"x","UID":"` + strings.Repeat("u", 10_000) + `","DestinationURL":"blobstore://` + strings.Repeat("u", 10_000) + `"}`,
			fdb.Status{Tag: contract.FDBTag{Tag: "x", State: "NeverRan", UID: strings.Repeat("u", 125) + "..."}},
		},
	} {
		t.Run(title, func(t *testing.T) {
			status, err := fdb.ParseStatus([]byte(test.output))
			require.NoError(t, err)
			assert.Equal(t, test.want, status)
		})
	}
	for title, output := range map[string]string{
		"nothing": "", "no JSON": "The backup on tag `x' is in progress", "a list": "[]", "a cut document": `{"Tag":"x","UID"`,
		"a document of something else": `{"SchemaVersion":"1.0.0"}`, "another kind of value": `{"Tag":"x","Restorable":"yes"}`,
	} {
		_, err := fdb.ParseStatus([]byte(output))
		assert.EqualError(t, err, "the answer of fdbbackup status is not the JSON document of a tag", title)
	}
}

func TestRecentErrorsAreFoundInTheTextOfTheStatus(t *testing.T) {
	said := map[string][]string{}
	for _, name := range transcriptsOf(t, "fdbbackup status") {
		if errors := fdb.RecentErrors([]byte(readTranscript(t, name).stdout)); len(errors) > 0 {
			said[name] = errors
		}
	}
	unwritable := []string{"'Platform error' on 'file_backup_write_range_5.2'"}
	assert.Equal(t, map[string][]string{
		"96-status-unwritable": unwritable,
		"c2-status-errors":     unwritable,
		"97-full-status":       {"'Disk i/o operation failed' on 'file_backup_write_range_5.2'"},
	}, said)

	assert.Equal(t, []string{"'a' on 'blobstore://lab@h/p'", "'b'"}, fdb.RecentErrors([]byte(
		"1 second(s) ago : 'before'\nRecent Errors (since latest restorable point 12 second(s) ago)\n"+
			"9 second(s) ago : 'a' on 'blobstore://lab:s3cr3t@h/p'\r\n10 second(s) ago : 'a' on 'blobstore://lab:s3cr3t@h/p'\n"+
			"1.25 minute(s) ago : 'b'\nnothing\nOlder Errors\n2.00 hour(s) ago : 'c'\n",
	)))
	many := "Recent Errors (since initialization)\n"
	for i := range 50 {
		many += "9 second(s) ago : " + strings.Repeat("x", 300+i) + string(rune('a'+i%26)) + "\n" + "8 second(s) ago : " + strings.Repeat("y", i+1) + "\n"
	}
	errors := fdb.RecentErrors([]byte(many))
	assert.Len(t, errors, 5)
	for _, text := range errors {
		assert.LessOrEqual(t, len(text), 200)
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add([]byte(`{"Tag":"x","Status":{"Name":"Running"},"LatestRestorablePoint":{"Version":1,"Timestamp":"2026/11/20.15:57:21+0000"}}`))
	f.Add([]byte("Recent Errors\n9 second(s) ago : blobstore://a:b@c"))
	f.Fuzz(func(t *testing.T, output []byte) {
		for _, text := range fdb.RecentErrors(output) {
			require.NotEmpty(t, text)
			require.LessOrEqual(t, len(text), 200)
		}
		status, err := fdb.ParseStatus(output)
		if err != nil {
			require.Zero(t, status)
			return
		}
		payload, err := json.Marshal(status.Tag)
		require.NoError(t, err)
		require.Less(t, len(payload), 32*1024)
		require.NotEmpty(t, status.Tag.State)
	})
}
