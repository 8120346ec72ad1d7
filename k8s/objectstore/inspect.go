package objectstore

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"path"
	"strings"
)

// Velero 1.18 reads lists into memory as a whole and unpacks archives to its disk, without limits (velero#10258, #10260, #10270).
const (
	// maxEntryBytes limits an object in an archive, which Velero reads into memory: beyond what etcd holds.
	maxEntryBytes = 8 << 20
	// maxEntries limits the objects in an archive.
	maxEntries = 1_000_000
	// maxValues limits the objects and arrays in a list: `{},` are three bytes, and some hundred in memory.
	maxValues = 200_000
)

const archiveFile = ".tar.gz"

// Logs and the list of resources are only downloaded, by their readers; PodVolumeBackups are Holdfast's to read.
var listFiles = []string{
	"-volumesnapshots.json.gz", "-itemoperations.json.gz", "-volumeinfo.json.gz", "-results.gz",
	"-csi-volumesnapshots.json.gz", "-csi-volumesnapshotcontents.json.gz", "-csi-volumesnapshotclasses.json.gz",
}

// filesOf are the files of a backup that Velero reads.
func filesOf(backup string) []string {
	names := []string{metadataFile, backup + archiveFile}
	for _, suffix := range listFiles {
		names = append(names, backup+suffix)
	}
	return names
}

// Inspect reads the files of a backup which Velero reads. ErrUnusable says that one is larger than what a backup of a namespace
// can need: maxArchive limits its archive as it is unpacked, in bytes. A file that cannot be unpacked is no fault, since Velero
// reads no further either.
func (s *Store) Inspect(ctx context.Context, backup string, files []BackupFile, maxArchive int64) error {
	for _, file := range files {
		key, err := keyOf("read", "backups", backup, file.Name)
		if err != nil {
			return err
		}
		switch {
		case file.Name == metadataFile:
			if file.Size > maxMetadataBytes {
				err = bounds{"a Backup", maxMetadataBytes, maxMetadataBytes, 1}.exceeded(key)
			}
		case strings.HasSuffix(file.Name, archiveFile):
			err = s.inspect(ctx, key, bounds{"an archive", maxArchive, maxArchive, maxEntries}, func(unpacked io.Reader) error {
				return inspectArchive(unpacked, maxArchive)
			})
		default:
			err = s.inspect(ctx, key, bounds{"a list", maxFileBytes, maxListBytes, maxValues}, func(unpacked io.Reader) error {
				_, err := io.Copy(&counter{left: maxValues}, unpacked)
				return err
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bounds say how large a file may be.
type bounds struct {
	what             string
	packed, unpacked int64
	objects          int
}

func (b bounds) exceeded(key string) error {
	return unusable("read "+key, "it is larger than %s may be: %d KiB packed, %d KiB unpacked, %d objects",
		b.what, b.packed>>10, b.unpacked>>10, b.objects)
}

// inspect has read go through a gzipped file.
func (s *Store) inspect(ctx context.Context, key string, most bounds, read func(io.Reader) error) error {
	reader, err := s.bucket.NewReader(ctx, path.Join(s.prefix, key), nil)
	if err != nil {
		return s.failed("read "+key, err)
	}
	defer reader.Close()
	file := &observed{from: &limited{from: reader, left: int(most.packed)}}
	unpacked, err := gzip.NewReader(file)
	if err == nil {
		err = read(&limited{from: unpacked, left: int(most.unpacked)})
	}
	switch {
	case errors.Is(err, errTooLarge), errors.Is(file.err, errTooLarge):
		return most.exceeded(key)
	case file.err != nil: // not read to its end
		return s.failed("read "+key, file.err)
	}
	return nil
}

// inspectArchive goes through an archive. The sizes are those that its headers name: a sparse file is written out in full.
func inspectArchive(unpacked io.Reader, limit int64) error {
	archive := tar.NewReader(unpacked)
	for entries, left := 0, limit; ; entries++ {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if left -= header.Size; entries >= maxEntries || header.Size > maxEntryBytes || left < 0 {
			return errTooLarge
		}
	}
}

// counter fails once more than left objects and arrays may have been written to it.
type counter struct{ left int }

// Write implements io.Writer.
func (c *counter) Write(list []byte) (int, error) {
	if c.left -= bytes.Count(list, []byte("{")) + bytes.Count(list, []byte("[")); c.left < 0 {
		return 0, errTooLarge
	}
	return len(list), nil
}

// observed keeps the error with which a file could not be read on.
type observed struct {
	from io.Reader
	err  error
}

// Read implements io.Reader.
func (o *observed) Read(into []byte) (int, error) {
	n, err := o.from.Read(into)
	if err != nil && !errors.Is(err, io.EOF) {
		o.err = err
	}
	return n, err
}
