package kubelet

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	kindConfigMap = "configmap"
	kindSecret    = "secret"
)

// source is a ConfigMap or Secret whose keys become files or variables.
type source struct {
	kind, name string
	items      []corev1.KeyToPath
	mode       *int32
	optional   bool
}

// read returns the data of a ConfigMap or Secret; an optional one that is not there has none.
func (k *Kubelet) read(ctx context.Context, namespace string, from source) (map[string][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	data := map[string][]byte{}
	var err error
	if from.kind == kindSecret {
		var secret *corev1.Secret
		if secret, err = k.client.CoreV1().Secrets(namespace).Get(ctx, from.name, metav1.GetOptions{}); err == nil {
			data = secret.Data
		}
	} else {
		var configMap *corev1.ConfigMap
		if configMap, err = k.client.CoreV1().ConfigMaps(namespace).Get(ctx, from.name, metav1.GetOptions{}); err == nil {
			for key, value := range configMap.BinaryData {
				data[key] = value
			}
			for key, value := range configMap.Data {
				data[key] = []byte(value)
			}
		}
	}
	if from.optional && apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", from.kind, from.name, err)
	}
	return data, nil
}

// sources returns where the files of a volume come from; false for a volume that the stand-in does not know.
func sources(volume *corev1.Volume) ([]source, bool) {
	switch {
	case volume.EmptyDir != nil:
		return nil, true
	case volume.ConfigMap != nil:
		v := volume.ConfigMap
		return []source{{kindConfigMap, v.Name, v.Items, v.DefaultMode, isTrue(v.Optional)}}, true
	case volume.Secret != nil:
		v := volume.Secret
		return []source{{kindSecret, v.SecretName, v.Items, v.DefaultMode, isTrue(v.Optional)}}, true
	case volume.Projected != nil:
		var all []source
		for _, p := range volume.Projected.Sources {
			switch {
			case p.ConfigMap != nil:
				all = append(all, source{
					kindConfigMap, p.ConfigMap.Name, p.ConfigMap.Items, volume.Projected.DefaultMode,
					isTrue(p.ConfigMap.Optional),
				})
			case p.Secret != nil:
				all = append(all, source{
					kindSecret, p.Secret.Name, p.Secret.Items, volume.Projected.DefaultMode,
					isTrue(p.Secret.Optional),
				})
			default:
				return nil, false
			}
		}
		return all, true
	}
	return nil, false
}

// layOut makes the folder of a volume and puts its files in it; files whose key is gone are removed. Called again, it changes
// only what differs.
func (k *Kubelet) layOut(ctx context.Context, namespace string, volume *corev1.Volume, dir string) error {
	from, ok := sources(volume)
	if !ok {
		return fmt.Errorf("MountVolume.SetUp failed for volume %q: the kubelet stand-in knows only emptyDir, configMap, secret "+
			"and projected ones of these", volume.Name)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if len(from) == 0 {
		return nil
	}
	var keep []string
	for _, src := range from {
		data, err := k.read(ctx, namespace, src)
		if err != nil {
			return fmt.Errorf("MountVolume.SetUp failed for volume %q: %w", volume.Name, err)
		}
		files, err := src.files(data)
		if err != nil {
			return fmt.Errorf("MountVolume.SetUp failed for volume %q: %w", volume.Name, err)
		}
		for _, file := range files {
			keep = append(keep, filepath.Join(dir, file.path))
			if err := file.write(dir); err != nil {
				return err
			}
		}
	}
	return removeOthers(dir, keep)
}

type volumeFile struct {
	path    string
	content []byte
	mode    os.FileMode
}

func (s source) files(data map[string][]byte) ([]volumeFile, error) {
	mode := os.FileMode(0o644)
	if s.mode != nil {
		mode = os.FileMode(*s.mode) //nolint:gosec // the API server checks that it is a mode
	}
	var files []volumeFile
	if len(s.items) == 0 {
		for key, content := range data {
			files = append(files, volumeFile{key, content, mode})
		}
		return files, nil
	}
	for _, item := range s.items {
		content, ok := data[item.Key]
		if !ok {
			if s.optional {
				continue
			}
			return nil, fmt.Errorf("references non-existent key of %s %q: %s", s.kind, s.name, item.Key)
		}
		file := volumeFile{item.Path, content, mode}
		if item.Mode != nil {
			file.mode = os.FileMode(*item.Mode) //nolint:gosec // the API server checks that it is a mode
		}
		files = append(files, file)
	}
	return files, nil
}

// write puts the file in place at once: nobody reads half of it.
func (f volumeFile) write(dir string) error {
	target := filepath.Join(dir, f.path)
	if old, err := os.ReadFile(target); err == nil && bytes.Equal(old, f.content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	temporary := filepath.Join(filepath.Dir(target), ".new-"+filepath.Base(target))
	if err := os.WriteFile(temporary, f.content, 0o600); err != nil {
		return err
	}
	if err := os.Chmod(temporary, f.mode); err != nil {
		return err
	}
	return os.Rename(temporary, target)
}

func removeOthers(dir string, keep []string) error {
	return filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || slices.Contains(keep, path) {
			return err
		}
		return os.Remove(path)
	})
}

// refresh renews the volumes that show a ConfigMap or Secret; nil renews all.
func (k *Kubelet) refresh(object any) {
	var kind, namespace, name string
	switch o := object.(type) {
	case nil:
	case *corev1.ConfigMap:
		kind, namespace, name = kindConfigMap, o.Namespace, o.Name
	case *corev1.Secret:
		kind, namespace, name = kindSecret, o.Namespace, o.Name
	default:
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, worker := range k.workers {
		if kind == "" || worker.shows(kind, namespace, name) {
			worker.renew()
		}
	}
}
