package objectstore

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"path"
	"time"
)

const (
	// ArchiveTimeout limits how long the reading of one archive takes.
	ArchiveTimeout = 5 * time.Minute
	// maxArchiveBytes limits an archive as it is unpacked: far beyond what a namespace can hold.
	maxArchiveBytes = 8 << 30
)

// BackupArchive reads the archive of a backup piece by piece. For every file that wanted accepts it calls do with the content,
// which is do's only until it returns.
func (s *Store) BackupArchive(
	ctx context.Context, backup string, wanted func(file string) bool, do func(file string, content []byte) error,
) error {
	key, err := keyOf("read", "backups", backup, backup+archiveFile)
	if err != nil {
		return err
	}
	action := "read " + key
	ctx, cancel := context.WithTimeout(ctx, ArchiveTimeout)
	defer cancel()
	reader, err := s.bucket.NewReader(ctx, path.Join(s.prefix, key), nil)
	if err != nil {
		return s.failed(action, err)
	}
	defer reader.Close()
	file := &observed{from: reader}
	err = eachArchived(file, wanted, do)
	var callers *callersError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &callers):
		return callers.error
	case errors.Is(err, errTooLarge):
		return unusable(action, "it is larger than what is read of an archive: %d GiB, %d files, %d MiB for each",
			maxArchiveBytes>>30, maxEntries, maxEntryBytes>>20)
	case file.err != nil: // not read to its end
		return s.failed(action, file.err)
	}
	return unusable(action, "it is not the gzipped archive that Velero writes")
}

// callersError is an error of the caller's function.
type callersError struct{ error }

func eachArchived(packed io.Reader, wanted func(string) bool, do func(string, []byte) error) error {
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return err
	}
	whole := &limited{from: unpacked, left: maxArchiveBytes}
	archive := tar.NewReader(whole)
	for files := 0; ; files++ {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			_, err := io.Copy(io.Discard, whole) // to the checksum at the end
			return err
		case err != nil:
			return err
		case files >= maxEntries:
			return errTooLarge
		case header.Typeflag != tar.TypeReg || !wanted(header.Name):
			continue
		}
		content, err := io.ReadAll(&limited{from: archive, left: maxEntryBytes})
		if err != nil {
			return err
		}
		if err := do(header.Name, content); err != nil {
			return &callersError{err}
		}
	}
}
