package objectstore

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gocloud.dev/blob/fileblob"
)

const maxArchive = 32 << 20

// archived is an archive of files of those sizes. Of one whose size is negative, only the header is there.
func archived(t *testing.T, sizes ...int64) []byte {
	t.Helper()
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	archive := tar.NewWriter(packed)
	for i, size := range sizes {
		header := &tar.Header{Name: fmt.Sprintf("resources/configmaps/namespaces/team/%d.json", i), Mode: 0o644, Size: max(size, -size)}
		require.NoError(t, archive.WriteHeader(header))
		if size > 0 {
			_, err := archive.Write(bytes.Repeat([]byte(" "), int(size)))
			require.NoError(t, err)
		}
	}
	if sizes[len(sizes)-1] > 0 {
		require.NoError(t, archive.Close())
	}
	require.NoError(t, packed.Close())
	return out.Bytes()
}

func TestWhatVeleroReadsIsWithinLimits(t *testing.T) {
	list := packed(t, `[{"metadata":{"name":"b-1"}}]`)
	for name, tt := range map[string]struct {
		file    string
		content []byte
		size    int64 // of a sparse file instead
		want    string
	}{
		"a backup's files":                {file: "b.tar.gz", content: archived(t, 100, 200)},
		"a list":                          {file: "b-volumesnapshots.json.gz", content: list},
		"one that is not packed":          {file: "b-volumesnapshots.json.gz", content: []byte("[]")},
		"one that was cut off":            {file: "b-podvolumebackups.json.gz", content: list[:len(list)-9]},
		"a log, which Velero never reads": {file: "b-logs.gz", size: 8 << 30},
		"another's file":                  {file: "c.tar.gz", size: 8 << 30},
		"metadata of 3 GB":                {file: "velero-backup.json", size: 3 << 30, want: "a Backup may be"},
		"a list of 3 GB":                  {file: "b-volumeinfo.json.gz", size: 3 << 30}, // zeros are no gzip: Velero stops, too
		"a list that unpacks to more":     {file: "b-itemoperations.json.gz", content: packed(t, strings.Repeat(" ", maxListBytes+1)), want: "a list"},
		"a list of nothing, often": {
			file: "b-results.gz", content: packed(t, "["+strings.Repeat("{},", maxValues)+"{}]"), want: "a list may be",
		},
		"a list in two parts": {
			file: "b-csi-volumesnapshots.json.gz", want: "a list",
			content: append(packed(t, strings.Repeat(" ", maxListBytes)), packed(t, "  ")...),
		},
		"an archive that unpacks to more":  {file: "b.tar.gz", content: archived(t, 7<<20, 7<<20, 7<<20, 7<<20, 7<<20), want: "an archive may be"},
		"an object beyond what etcd holds": {file: "b.tar.gz", content: archived(t, 9<<20), want: "an archive"},
		"a header that promises much":      {file: "b.tar.gz", content: archived(t, -1<<40), want: "an archive"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "backups", "b", tt.file)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, tt.content, 0o600))
			if tt.size > 0 {
				require.NoError(t, os.Truncate(path, tt.size))
			}
			bucket, err := fileblob.OpenBucket(dir, &fileblob.Options{Metadata: fileblob.MetadataDontWrite})
			require.NoError(t, err)
			store := NewStore(bucket, "")
			files, err := store.Backups(t.Context())
			require.NoError(t, err)
			require.Contains(t, files, "b")
			alone, err := store.BackupFiles(t.Context(), "b")
			require.NoError(t, err)
			require.Equal(t, files["b"], alone, "by a list, and by name")
			err = store.Inspect(t.Context(), "b", files["b"], maxArchive)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrUnusable)
			assert.Contains(t, err.Error(), tt.want)
		})
	}
}

// A bucket that cannot be read on says nothing about a file.
func TestAFileThatIsGoneIsNotJudged(t *testing.T) {
	bucket, err := fileblob.OpenBucket(t.TempDir(), nil)
	require.NoError(t, err)
	err = NewStore(bucket, "").Inspect(t.Context(), "b", []BackupFile{{Name: "b.tar.gz"}}, maxArchive)
	require.ErrorIs(t, err, ErrNotFound)
}
