package objectstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
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
	// maxPodVolumesBytes limits a list of PodVolumeBackups, unpacked: some thousands.
	maxPodVolumesBytes = 8 << 20
	// listTimeout limits a list of all backups.
	listTimeout = time.Minute
)

const (
	metadataFile         = "velero-backup.json"
	podVolumeBackupsFile = "-podvolumebackups.json.gz"
)

// BackupFile is a file of a backup as the bucket lists it.
type BackupFile struct {
	Name string
	Size int64
	// Version differs between contents, as far as the bucket's list shows it.
	Version string
}

// Backups lists the files of all backups, by the backup's name. ErrUnusable says that there are more than it lists.
func (s *Store) Backups(ctx context.Context) (map[string][]BackupFile, error) {
	return s.backups(ctx, "")
}

// BackupFiles lists the files of one backup.
func (s *Store) BackupFiles(ctx context.Context, name string) ([]BackupFile, error) {
	all, err := s.backups(ctx, name+"/")
	return all[name], err
}

func (s *Store) backups(ctx context.Context, within string) (map[string][]BackupFile, error) {
	const action = "list backups"
	ctx, cancel := context.WithTimeout(boundBodies(ctx), listTimeout)
	defer cancel()
	folder := path.Join(s.prefix, "backups") + "/"
	files, listed := map[string][]BackupFile{}, 0
	for pages := s.bucket.List(&blob.ListOptions{Prefix: folder + within}); ; listed++ {
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
		if name != "" && file != "" {
			files[name] = append(files[name], BackupFile{Name: file, Size: object.Size, Version: versionOf(object)})
		}
	}
}

func versionOf(object *blob.ListObject) string {
	return fmt.Sprintf("%d/%x/%s", object.Size, object.MD5, object.ModTime.UTC().Format(time.RFC3339Nano))
}

// HasMetadata reports whether there is the file which makes a folder a backup.
func HasMetadata(files []BackupFile) bool {
	for _, file := range files {
		if file.Name == metadataFile {
			return true
		}
	}
	return false
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

// PodVolumeBackups calls keep for each PodVolumeBackup that a backup lists; it may have no list.
func (s *Store) PodVolumeBackups(ctx context.Context, name string, keep func(*velerov1.PodVolumeBackup)) error {
	err := s.read(ctx, "backups", name, name+podVolumeBackupsFile, maxPodVolumesBytes, func(decoder *json.Decoder) error {
		return eachElement(decoder, func(piece json.RawMessage) error {
			var one velerov1.PodVolumeBackup
			if err := json.Unmarshal(piece, &one); err != nil {
				return err
			}
			keep(&one)
			return nil
		})
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
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
