package objectstore

import (
	"context"
	"encoding/json"
	"path"
	"strings"
)

// How a volume's data were backed up: values of VolumeInfo.BackupMethod.
const (
	MethodPodVolumeBackup = "PodVolumeBackup"
	MethodCSISnapshot     = "CSISnapshot"
)

// VolumeInfo is what Velero recorded about one volume of a backup, as far as it is used here.
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

// ResourceList holds `<namespace>/<name>` of objects by `<group>/<version>/<Kind>`, `<version>/<Kind>` in the core group. In a
// restore's list the result for the object follows, for example `(created)`.
type ResourceList map[string][]string

// BackupVolumes reads what Velero recorded about the volumes of a namespace's claims.
func (s *Store) BackupVolumes(ctx context.Context, backup, namespace string) ([]VolumeInfo, error) {
	var infos []VolumeInfo
	err := s.read(ctx, "backups", backup, backup+"-volumeinfo.json.gz", maxListBytes, decodeVolumes(namespace, &infos))
	return infos, err
}

// BackupResources reads the list of a namespace's objects in a backup.
func (s *Store) BackupResources(ctx context.Context, backup, namespace string) (ResourceList, error) {
	var list ResourceList
	err := s.read(ctx, "backups", backup, backup+"-resource-list.json.gz", maxListBytes, decodeResources(namespace, &list))
	return list, err
}

// RestoreResources reads the list of a namespace's objects that a restore tried to restore.
func (s *Store) RestoreResources(ctx context.Context, restore, namespace string) (ResourceList, error) {
	var list ResourceList
	file := "restore-" + restore + "-resource-list.json.gz"
	err := s.read(ctx, "restores", restore, file, maxListBytes, decodeResources(namespace, &list))
	return list, err
}

// RestoreResults reads a restore's warnings and errors.
func (s *Store) RestoreResults(ctx context.Context, restore string) (Results, error) {
	results := Results{}
	err := s.read(ctx, "restores", restore, resultsFile(restore), maxResultsBytes, func(decoder *json.Decoder) error {
		return (&resultsDecoder{Decoder: decoder}).results(&results)
	})
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

func (s *Store) read(
	ctx context.Context, folder, name, file string, limit int, decode func(*json.Decoder) error,
) error {
	key, err := keyOf("read", folder, name, file)
	if err != nil {
		return err
	}
	return s.readJSON(ctx, key, limit, decode)
}

// keyOf returns a file's key in Velero's layout: `<folder>/<name>/<file>`. A name that leads elsewhere is refused.
func keyOf(verb, folder, name, file string) (string, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\`) {
		return "", unusable(verb+" "+folder, "%q is no name of a backup or restore", name)
	}
	return path.Join(folder, name, file), nil
}
