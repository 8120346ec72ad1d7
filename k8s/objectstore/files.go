package objectstore

import (
	"context"
	"path"
	"strings"
)

// How a volume's data were backed up, as VolumeInfo.BackupMethod says it.
const (
	MethodPodVolumeBackup = "PodVolumeBackup"
	MethodCSISnapshot     = "CSISnapshot"
)

// VolumeInfo is what Velero noted about one volume of a backup, as far as it is used here.
type VolumeInfo struct {
	PVCName      string      `json:"pvcName,omitempty"`
	PVCNamespace string      `json:"pvcNamespace,omitempty"`
	PVName       string      `json:"pvName,omitempty"`
	BackupMethod string      `json:"backupMethod,omitempty"`
	Skipped      bool        `json:"skipped,omitempty"`
	PVInfo       *PVSettings `json:"pvInfo,omitempty"`
}

// PVSettings are settings of a PersistentVolume that a newly provisioned one lacks.
type PVSettings struct {
	ReclaimPolicy string            `json:"reclaimPolicy,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"`
}

// ResourceList holds `<namespace>/<name>` of objects by `<group>/<version>/<Kind>`, `<version>/<Kind>` in the core group; in
// a restore's list followed by what became of the object, for example `(created)`.
type ResourceList map[string][]string

// BackupVolumes reads what Velero noted about a backup's volumes.
func (s *Store) BackupVolumes(ctx context.Context, backup string) ([]VolumeInfo, error) {
	return read[[]VolumeInfo](ctx, s, "backups", backup, backup+"-volumeinfo.json.gz")
}

// BackupResources reads the list of what a backup holds.
func (s *Store) BackupResources(ctx context.Context, backup string) (ResourceList, error) {
	return read[ResourceList](ctx, s, "backups", backup, backup+"-resource-list.json.gz")
}

// RestoreResources reads the list of what a restore tried to restore.
func (s *Store) RestoreResources(ctx context.Context, restore string) (ResourceList, error) {
	return read[ResourceList](ctx, s, "restores", restore, "restore-"+restore+"-resource-list.json.gz")
}

// RestoreResults reads a restore's warnings and errors.
func (s *Store) RestoreResults(ctx context.Context, restore string) (Results, error) {
	results, err := read[Results](ctx, s, "restores", restore, resultsFile(restore))
	if err == nil && results == nil {
		results = Results{}
	}
	return results, err
}

// PutRestoreResults replaces a restore's warnings and errors.
func (s *Store) PutRestoreResults(ctx context.Context, restore string, results Results) error {
	key, err := keyOf("write", "restores", restore, resultsFile(restore))
	if err != nil {
		return err
	}
	return s.writeJSON(ctx, key, results)
}

func resultsFile(restore string) string { return "restore-" + restore + "-results.gz" }

func read[T any](ctx context.Context, s *Store, folder, name, file string) (T, error) {
	var content, none T
	key, err := keyOf("read", folder, name, file)
	if err != nil {
		return none, err
	}
	if err := s.readJSON(ctx, key, &content); err != nil {
		return none, err
	}
	return content, nil
}

// keyOf is Velero's layout: `<folder>/<name>/<file>`. A name that would lead elsewhere is refused.
func keyOf(verb, folder, name, file string) (string, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\`) {
		return "", unusable(verb+" "+folder, "%q is no name of a backup or restore", name)
	}
	return path.Join(folder, name, file), nil
}
