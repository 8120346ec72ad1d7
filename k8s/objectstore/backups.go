package objectstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"gocloud.dev/blob"
)

const (
	// maxListed limits how many files of backups are listed.
	maxListed = 50_000
	// maxMetadataBytes limits the file that holds a Velero Backup: more than the spec of a NonAdminBackup may have.
	maxMetadataBytes = 512 << 10
	// maxMetadataValues limits the objects and arrays in it.
	maxMetadataValues = 20_000
	// maxPodVolumesBytes, maxPodVolumes and maxPodVolumeBytes limit a list of PodVolumeBackups, unpacked, and one of them.
	maxPodVolumesBytes = 8 << 20
	maxPodVolumes      = 1000
	maxPodVolumeBytes  = 8 << 10
	// maxKeyBytes is how long a key may be in S3; other stores' are not longer.
	maxKeyBytes = 1024
	// listTimeout limits a list of all backups.
	listTimeout = time.Minute
)

const (
	metadataFile         = "velero-backup.json"
	podVolumeBackupsFile = "-podvolumebackups.json.gz"
)

// BackupFile is a file of a backup that Velero reads.
type BackupFile struct {
	Name string
	Size int64
	// Version differs between contents, as far as the store shows it.
	Version string
}

// BackupFiles are those of one backup. Each is asked for by its name: who may read it, as Velero, has an answer.
func (s *Store) BackupFiles(ctx context.Context, name string) ([]BackupFile, error) {
	ctx, cancel := context.WithTimeout(boundBodies(ctx), listTimeout)
	defer cancel()
	var files []BackupFile
	for _, file := range filesOf(name) {
		key, err := keyOf("read", "backups", name, file)
		if err != nil {
			return nil, err
		}
		found, err := s.bucket.Attributes(ctx, path.Join(s.prefix, key))
		if err == nil {
			files = append(files, BackupFile{Name: file, Size: found.Size, Version: version(found.Size, found.MD5, found.ModTime)})
			continue
		}
		if err := s.failed("read "+key, err); !errors.Is(err, ErrNotFound) {
			return nil, err
		}
	}
	return files, nil
}

// Backups lists the files of all backups, by the backup's name: none of one that has other files. ErrUnusable says that there
// are more than it lists.
func (s *Store) Backups(ctx context.Context) (map[string][]BackupFile, error) {
	const action = "list backups"
	ctx, cancel := context.WithTimeout(boundBodies(ctx), listTimeout)
	defer cancel()
	folder := path.Join(s.prefix, "backups") + "/"
	files, listed := map[string][]BackupFile{}, 0
	for pages := s.bucket.List(&blob.ListOptions{Prefix: folder}); ; listed++ {
		object, err := pages.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return files, nil
		case err != nil:
			return nil, s.failed(action, err)
		case listed >= maxListed:
			return nil, unusable(action, "there are more than %d files", maxListed)
		}
		name, file, _ := strings.Cut(strings.TrimPrefix(object.Key, folder), "/")
		if name == "" || file == "" || len(object.Key) > maxKeyBytes {
			continue
		}
		name = strings.Clone(name) // not all that the store has answered
		of, names := files[name], filesOf(name)
		if at := slices.Index(names, file); at >= 0 {
			of = append(of, BackupFile{
				Name: names[at], Size: object.Size, Version: version(object.Size, object.MD5, object.ModTime),
			})
		}
		files[name] = of
	}
}

// version: lists may show times more exactly than files do.
func version(size int64, sum []byte, modified time.Time) string {
	return fmt.Sprintf("%d/%x/%d", size, sum, modified.Unix())
}

// HasMetadata reports whether there is the file which makes a folder a backup.
func HasMetadata(files []BackupFile) bool {
	return slices.ContainsFunc(files, func(file BackupFile) bool { return file.Name == metadataFile })
}

// BackupMetadata reads the Velero Backup that the store holds under a name.
func (s *Store) BackupMetadata(ctx context.Context, name string) (*velerov1.Backup, error) {
	key, err := keyOf("read", "backups", name, metadataFile)
	if err != nil {
		return nil, err
	}
	action := "read " + key
	ctx, cancel := context.WithTimeout(boundBodies(ctx), RequestTimeout)
	defer cancel()
	content, err := s.readAll(ctx, key, maxMetadataBytes)
	switch {
	case errors.Is(err, errTooLarge):
		return nil, unusable(action, "it is larger than %d KiB", maxMetadataBytes>>10)
	case err != nil:
		return nil, s.failed(action, err)
	}
	if _, err := (&counter{left: maxMetadataValues}).Write(content); err != nil {
		return nil, unusable(action, "it has more than %d objects", maxMetadataValues)
	}
	made := &velerov1.Backup{}
	if err := json.Unmarshal(content, made); err != nil || made.Kind != "Backup" {
		return nil, unusable(action, "it is not a Velero Backup")
	}
	return made, nil
}

// PodVolumeBackups returns the PodVolumeBackups that a backup lists; it may have no list.
func (s *Store) PodVolumeBackups(ctx context.Context, name string) (listed []*velerov1.PodVolumeBackup, err error) {
	err = s.read(ctx, "backups", name, name+podVolumeBackupsFile, maxPodVolumesBytes, func(decoder *json.Decoder) error {
		return eachElement(decoder, func(piece json.RawMessage) error {
			var one velerov1.PodVolumeBackup
			if len(listed) == maxPodVolumes || len(piece) > maxPodVolumeBytes {
				return errTooLarge
			}
			if err := json.Unmarshal(piece, &one); err != nil {
				return err
			}
			listed = append(listed, &one)
			return nil
		})
	})
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return listed, err
}

// readAll reads a file of at most limit bytes.
func (s *Store) readAll(ctx context.Context, key string, limit int) ([]byte, error) {
	reader, err := s.bucket.NewReader(ctx, path.Join(s.prefix, key), nil)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	return io.ReadAll(&limited{from: reader, left: limit})
}
