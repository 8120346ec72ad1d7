package objectstore

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gocloud.dev/blob/memblob"
)

// archiveOf packs files, given as name and content in turns, as Velero does.
func archiveOf(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for i := 0; i < len(files); i += 2 {
		header := &tar.Header{Name: files[i], Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(files[i+1]))}
		require.NoError(t, archive.WriteHeader(header))
		_, err := archive.Write([]byte(files[i+1]))
		require.NoError(t, err)
	}
	require.NoError(t, errors.Join(archive.Close(), zipped.Close()))
	return out.Bytes()
}

func TestAnArchiveIsReadPieceByPiece(t *testing.T) {
	bucket := memblob.OpenBucket(nil)
	put(t, bucket, "backups/b/b.tar.gz", archiveOf(t, "metadata/version", "1", "resources/a.json", "{}", "resources/b.json", "[]"))
	read := map[string]string{}
	err := NewStore(bucket, "").BackupArchive(t.Context(), "b",
		func(file string) bool { return strings.HasPrefix(file, "resources/") },
		func(file string, content []byte) error { read[file] = string(content); return nil })
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"resources/a.json": "{}", "resources/b.json": "[]"}, read)

	own := errors.New("enough")
	err = NewStore(bucket, "").BackupArchive(t.Context(), "b",
		func(string) bool { return true }, func(string, []byte) error { return own })
	require.Equal(t, own, err, "the caller's error is the caller's")
}

func TestAnArchiveThatIsNotWhatItShouldBe(t *testing.T) {
	whole := archiveOf(t, "a", strings.Repeat("x", 10_000))
	for title, test := range map[string]struct {
		content []byte
		kind    error
		want    string
	}{
		"is not there":   {nil, ErrNotFound, "there is no such file"},
		"is no archive":  {packed(t, "marker"), ErrUnusable, "not the gzipped archive"},
		"is not gzipped": {[]byte("marker"), ErrUnusable, "not the gzipped archive"},
		"is cut short":   {whole[:len(whole)-6], ErrUnusable, "not the gzipped archive"},
		"has a bomb":     {archiveOf(t, "a", strings.Repeat("x", maxEntryBytes+1)), ErrUnusable, "larger than"},
	} {
		t.Run(title, func(t *testing.T) {
			bucket := memblob.OpenBucket(nil)
			if test.content != nil {
				put(t, bucket, "backups/b/b.tar.gz", test.content)
			}
			err := NewStore(bucket, "").BackupArchive(t.Context(), "b",
				func(string) bool { return true }, func(string, []byte) error { return nil })
			require.ErrorIs(t, err, test.kind)
			require.ErrorContains(t, err, test.want)
			assert.NotContains(t, err.Error(), "marker")
		})
	}
}
