package fdb_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestTheDescriptionOfAContainerIsRead(t *testing.T) {
	const url = "file://$LAB/backups/backup-2026-11-20-15-57-01.309416"
	for transcript, want := range map[string]contract.FDBContainer{
		"40-describe-json-version-timestamps": {
			URL: url, Restorable: true, Oldest: &contract.FDBPoint{Version: 91792507, Time: 1795190221},
			Latest: &contract.FDBPoint{Version: 278643908, Time: 1795190408},
			LogEnd: &contract.FDBPoint{Version: 278643909, Time: 1795190408},
		},
		"40-describe-deep-json": {
			URL: url, Restorable: true, Oldest: &contract.FDBPoint{Version: 91792507}, Latest: &contract.FDBPoint{Version: 278643908},
			LogEnd: &contract.FDBPoint{Version: 278643909},
		},
		"41-describe-baseurl": {URL: "file://$LAB/backups"},
	} {
		t.Run(transcript, func(t *testing.T) {
			container, err := fdb.ParseDescription([]byte(readTranscript(t, transcript).stdout))
			require.NoError(t, err)
			assert.Equal(t, want, container)
		})
	}
}

func TestEveryDescriptionOfARealToolIsRead(t *testing.T) {
	read := 0
	for _, name := range transcriptsOf(t, "fdbbackup describe") {
		said := readTranscript(t, name)
		if said.exit != 0 || said.hung || !strings.Contains(said.command, "--json") {
			_, err := fdb.ParseDescription([]byte(said.stdout))
			require.EqualError(t, err, "the answer of fdbbackup describe is not the JSON description of a backup", name)
			continue
		}
		container, err := fdb.ParseDescription([]byte(said.stdout))
		require.NoError(t, err, name)
		require.NotEmpty(t, container.URL, name)
		require.Equal(t, container.Restorable, container.Oldest != nil, name)
		require.Equal(t, container.Restorable, container.Latest != nil, name)
		read++
	}
	require.Greater(t, read, 5)
}

func TestADescriptionIsReadWhateverIsMissingOrNew(t *testing.T) {
	container, err := fdb.ParseDescription([]byte(`note
		{"Restorable":true,"URL":"blobstore://lab:s3cr3t@h/p?bucket=b","FileLevelEncryption":false,"MutationLogType":"x",
		 "MaxRestorablePoint":{"Version":7,"Timestamp":"2026/11/20.17:57:21+0200"}}`))
	require.NoError(t, err)
	assert.Equal(t, contract.FDBContainer{
		URL: "blobstore://lab@h/p?bucket=b", Restorable: true, Latest: &contract.FDBPoint{Version: 7, Time: 1795190241},
	}, container)
	for title, output := range map[string]string{"nothing": "", "another document": `{"Tag":"x"}`, "no document": "Restorable: true"} {
		_, err := fdb.ParseDescription([]byte(output))
		assert.Error(t, err, title)
	}
}
