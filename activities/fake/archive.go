package fake

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Archive returns the archive of a backup with these files, as Velero packs it.
func Archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(files[name]))}
		require.NoError(t, archive.WriteHeader(header))
		_, err := archive.Write([]byte(files[name]))
		require.NoError(t, err)
	}
	require.NoError(t, errors.Join(archive.Close(), zipped.Close()))
	return packed.Bytes()
}
