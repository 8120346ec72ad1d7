package objectstore

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"
)

func packed(t *testing.T, content string) []byte {
	t.Helper()
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	_, err := writer.Write([]byte(content))
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	return out.Bytes()
}

func put(t *testing.T, bucket *blob.Bucket, key string, content []byte) {
	t.Helper()
	require.NoError(t, bucket.WriteAll(t.Context(), key, content, nil))
}

func TestFilesAreWhereVeleroPutsThem(t *testing.T) {
	bucket := memblob.OpenBucket(nil)
	store := NewStore(bucket, "/team/velero/")
	put(t, bucket, "team/velero/backups/b/b-volumeinfo.json.gz", packed(t,
		`[{"pvcName":"data","pvcNamespace":"team","pvName":"pv-1","backupMethod":"PodVolumeBackup","snapshotDataMoved":false,
		   "skipped":false,"pvInfo":{"reclaimPolicy":"Retain","labels":{"disk":"fast"}},"novelty":{}}]`))
	put(t, bucket, "team/velero/backups/b/b-resource-list.json.gz", packed(t, `{"v1/ConfigMap":["team/settings"]}`))
	put(t, bucket, "team/velero/restores/r/restore-r-resource-list.json.gz", packed(t, `{"v1/ConfigMap":["team/settings(created)"]}`))
	put(t, bucket, "team/velero/restores/r/restore-r-results.gz", packed(t, `{"errors":{"namespaces":{"team":["x"]}},"warnings":{}}`))

	volumes, err := store.BackupVolumes(t.Context(), "b", "team")
	require.NoError(t, err)
	assert.Equal(t, []VolumeInfo{{
		PVCName: "data", PVCNamespace: "team", PVName: "pv-1", BackupMethod: MethodPodVolumeBackup,
		PVInfo: &PVSettings{ReclaimPolicy: "Retain", Labels: map[string]string{"disk": "fast"}},
	}}, volumes)
	resources, err := store.BackupResources(t.Context(), "b", "team")
	require.NoError(t, err)
	assert.Equal(t, ResourceList{"v1/ConfigMap": {"team/settings"}}, resources)
	restored, err := store.RestoreResources(t.Context(), "r", "team")
	require.NoError(t, err)
	assert.Equal(t, ResourceList{"v1/ConfigMap": {"team/settings(created)"}}, restored)
	results, err := store.RestoreResults(t.Context(), "r")
	require.NoError(t, err)
	assert.Equal(t, []string{"x"}, results[ErrorsKey].Namespaces["team"])
	require.NoError(t, store.Close())
}

func TestResultsAreWrittenAsVeleroWritesThem(t *testing.T) {
	folder := t.TempDir()
	bucket, err := fileblob.OpenBucket(folder, &fileblob.Options{Metadata: fileblob.MetadataDontWrite, CreateDir: true})
	require.NoError(t, err)
	store := NewStore(bucket, "p")
	results := Results{WarningsKey: {Cluster: []string{"w"}}, ErrorsKey: {}}
	require.NoError(t, store.PutRestoreResults(t.Context(), "r", results))
	written, err := os.ReadFile(filepath.Join(folder, "p", "restores", "r", "restore-r-results.gz"))
	require.NoError(t, err)
	reader, err := gzip.NewReader(bytes.NewReader(written))
	require.NoError(t, err)
	var content bytes.Buffer
	_, err = content.ReadFrom(reader)
	require.NoError(t, err)
	assert.JSONEq(t, `{"warnings":{"cluster":["w"]},"errors":{}}`, content.String())
	again, err := store.RestoreResults(t.Context(), "r")
	require.NoError(t, err)
	assert.Equal(t, results, again)
}

func TestAFileThatIsNotWhatItShouldBe(t *testing.T) {
	whole := packed(t, `{"v1/ConfigMap":["team/settings"]}`)
	list := func(entry string, times int) []byte {
		return packed(t, `{"v1/ConfigMap":[`+strings.Repeat(entry+",", times)+`""]}`)
	}
	tests := map[string]struct {
		content []byte
		kind    error
		want    string
	}{
		"is not there":        {nil, ErrNotFound, "there is no such file"},
		"is empty":            {[]byte{}, ErrUnusable, "not the gzipped JSON"},
		"is not gzipped":      {[]byte(`{}`), ErrUnusable, "not the gzipped JSON"},
		"is cut short":        {whole[:len(whole)-6], ErrUnusable, "not the gzipped JSON"},
		"is no JSON":          {packed(t, `{"v1`), ErrUnusable, "not the gzipped JSON"},
		"is of another shape": {packed(t, `["marker"]`), ErrUnusable, "not the gzipped JSON"},
		"holds two values":    {packed(t, `{}{}`), ErrUnusable, "not the gzipped JSON"},
		"is a bomb":           {list(`"xxxxxxx"`, maxListBytes/10), ErrUnusable, "larger than"},
		"has a huge entry":    {list(`"`+strings.Repeat("x", maxPieceBytes)+`"`, 1), ErrUnusable, "larger than"},
		"has too many":        {list(`"team/x"`, maxKept+1), ErrUnusable, "larger than"},
		"is large":            {bytes.Repeat([]byte("x"), maxFileBytes+1), ErrUnusable, "larger than"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			bucket := memblob.OpenBucket(nil)
			if test.content != nil {
				put(t, bucket, "backups/b/b-resource-list.json.gz", test.content)
			}
			_, err := NewStore(bucket, "").BackupResources(t.Context(), "b", "team")
			require.ErrorIs(t, err, test.kind)
			require.ErrorContains(t, err, test.want)
			require.ErrorContains(t, err, "read backups/b/b-resource-list.json.gz: ")
			assert.NotContains(t, err.Error(), "marker")
		})
	}
}

// Small files that unpack to millions of entries: none that is not asked for may stay in memory.
func TestWhatIsNotAskedForIsDropped(t *testing.T) {
	bucket := memblob.OpenBucket(nil)
	store := NewStore(bucket, "")
	const many = 1_000_000
	put(t, bucket, "backups/b/b-resource-list.json.gz",
		packed(t, `{"a":null,"b":[],"v1/ConfigMap":[`+strings.Repeat(`"",`, many)+`"team/a","teams/b","other/c"]}`))
	put(t, bucket, "backups/b/b-volumeinfo.json.gz",
		packed(t, `[`+strings.Repeat(`{},`, many)+`{"pvcName":"a","pvcNamespace":"team"},{"pvcName":"b","pvcNamespace":"other"}]`))
	resources, err := store.BackupResources(t.Context(), "b", "team")
	require.NoError(t, err)
	assert.Equal(t, ResourceList{"v1/ConfigMap": {"team/a"}}, resources)
	volumes, err := store.BackupVolumes(t.Context(), "b", "team")
	require.NoError(t, err)
	assert.Equal(t, []VolumeInfo{{PVCName: "a", PVCNamespace: "team"}}, volumes)

	put(t, bucket, "backups/b/b-volumeinfo.json.gz", packed(t, `[`+strings.Repeat(
		`{"pvcNamespace":"team","pvName":"`+strings.Repeat("x", maxPieceBytes/2)+`"},`, 2*maxVolumesBytes/maxPieceBytes)+`{}]`))
	_, err = store.BackupVolumes(t.Context(), "b", "team")
	require.ErrorIs(t, err, ErrUnusable)
	put(t, bucket, "backups/b/b-volumeinfo.json.gz", packed(t, `null`))
	volumes, err = store.BackupVolumes(t.Context(), "b", "team")
	require.NoError(t, err)
	assert.Empty(t, volumes)
}

func TestANameThatLeadsElsewhereIsRefused(t *testing.T) {
	bucket := memblob.OpenBucket(nil)
	put(t, bucket, "secret/secret-volumeinfo.json.gz", packed(t, `[]`))
	store := NewStore(bucket, "team")
	for _, name := range []string{"", ".", "..", "../../secret", "a/b", `a\b`} {
		_, err := store.BackupVolumes(t.Context(), name, "team")
		require.ErrorIs(t, err, ErrUnusable, name)
		require.ErrorIs(t, store.PutRestoreResults(t.Context(), name, Results{}), ErrUnusable, name)
	}
}

func TestNothingOfAnUnknownErrorIsShown(t *testing.T) {
	err := Failed("read x", errors.New("https://user:marker@host/?X-Amz-Signature=marker"), "")
	assert.Equal(t, "read x: the object store cannot be reached", err.Error())
	var shown *Error
	require.ErrorAs(t, err, &shown)
	assert.NoError(t, errors.Unwrap(err))
}
