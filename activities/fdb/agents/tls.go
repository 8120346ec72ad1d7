package agents

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
)

// Variables by which FoundationDB's programs find their TLS files.
const (
	EnvTLSCertificate = "FDB_TLS_CERTIFICATE_FILE"
	EnvTLSKey         = "FDB_TLS_KEY_FILE"
	EnvTLSCA          = "FDB_TLS_CA_FILE"
	EnvTLSPassword    = "FDB_TLS_PASSWORD"
	EnvTLSVerifyPeers = "FDB_TLS_VERIFY_PEERS"
)

// TLS says where the agents' TLS files come from, by the user's template: tools that run elsewhere for the backup need the same
// ones.
type TLS struct {
	// Certificate, Key and CA are nil where the template names no such file.
	Certificate, Key, CA *Source
	// Password opens the key; nil if there is none.
	Password *Source
	// VerifyPeers is FDB_TLS_VERIFY_PEERS.
	VerifyPeers string
}

// Source is a key of a Secret or of a ConfigMap in the backup's namespace.
type Source struct {
	// One of the two is set.
	Secret, ConfigMap string
	Key               string
}

// TLSFiles determines which objects the TLS files of container "foundationdb" come from. A *TemplateError names one for which
// that is not possible.
func TLSFiles(object *fdbv1alpha1.FoundationDBBackup) (TLS, error) {
	var tls TLS
	template, err := PodTemplate(object, "0.0.0", nil) // the image is not used here
	if err != nil {
		return tls, err
	}
	container := Container(template.Spec.Containers, MainContainer)
	files := []struct {
		name   string
		source **Source
	}{{EnvTLSCertificate, &tls.Certificate}, {EnvTLSKey, &tls.Key}, {EnvTLSCA, &tls.CA}}
	for _, file := range files {
		value, err := literal(container, file.name)
		if err != nil {
			return TLS{}, err
		}
		if value == "" {
			continue
		}
		if *file.source, err = sourceOf(template, container, file.name, value); err != nil {
			return TLS{}, err
		}
	}
	if tls.VerifyPeers, err = literal(container, EnvTLSVerifyPeers); err != nil {
		return TLS{}, err
	}
	tls.Password, err = password(container)
	if err != nil {
		return TLS{}, err
	}
	return tls, nil
}

// literal returns a variable's value, empty if it is not set.
func literal(container *corev1.Container, name string) (string, error) {
	v := variable(container.Env, name)
	if v == nil {
		return "", nil
	}
	if v.ValueFrom != nil || strings.Contains(v.Value, "$(") {
		return "", refused("must give %s in container %s as a plain value, without valueFrom and $(...)", name, container.Name)
	}
	return v.Value, nil
}

func password(container *corev1.Container) (*Source, error) {
	v := variable(container.Env, EnvTLSPassword)
	if v == nil || (v.Value == "" && v.ValueFrom == nil) {
		return nil, nil //nolint:nilnil // no password is valid
	}
	if v.ValueFrom == nil || v.ValueFrom.SecretKeyRef == nil {
		return nil, refused("must set %s in container %s from a Secret (valueFrom.secretKeyRef)", EnvTLSPassword, container.Name)
	}
	return &Source{Secret: v.ValueFrom.SecretKeyRef.Name, Key: v.ValueFrom.SecretKeyRef.Key}, nil
}

// sourceOf follows a file's path through the container's mounts to the volume that holds it.
func sourceOf(template *corev1.PodTemplateSpec, container *corev1.Container, name, file string) (*Source, error) {
	mount, inside := mountOf(container.VolumeMounts, file)
	if mount == nil {
		return nil, refused("sets %s to %.200q, which no volume mount of container %s holds", name, file, container.Name)
	}
	if mount.SubPathExpr != "" {
		return nil, refused("mounts volume %s with subPathExpr, so what %s names cannot be determined: use subPath",
			mount.Name, name)
	}
	i := slices.IndexFunc(template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
	if i < 0 {
		return nil, refused("mounts volume %s in container %s, but has no such volume", mount.Name, container.Name)
	}
	source, known := inVolume(template.Spec.Volumes[i].VolumeSource, path.Join(mount.SubPath, inside))
	if !known {
		return nil, refused("sets %s to %.200q in volume %s, which is no Secret and no ConfigMap", name, file, mount.Name)
	}
	if source == nil {
		return nil, refused("sets %s to %.200q, but volume %s has no such file", name, file, mount.Name)
	}
	return source, nil
}

// mountOf returns the mount that holds a file, the innermost of several, and the file's path within the mount.
func mountOf(mounts []corev1.VolumeMount, file string) (best *corev1.VolumeMount, inside string) {
	file = path.Clean(file)
	longest := -1
	for i := range mounts {
		dir := path.Clean(mounts[i].MountPath)
		rest, within := strings.CutPrefix(file, strings.TrimSuffix(dir, "/"))
		if within && (rest == "" || rest[0] == '/') && len(dir) > longest {
			best, inside, longest = &mounts[i], strings.TrimPrefix(rest, "/"), len(dir)
		}
	}
	return best, inside
}

// inVolume returns the source of a file, nil if the volume has none of that path. Unknown volumes hold no keys.
func inVolume(volume corev1.VolumeSource, file string) (source *Source, known bool) {
	switch {
	case volume.Secret != nil:
		return from(Source{Secret: volume.Secret.SecretName}, volume.Secret.Items, file), true
	case volume.ConfigMap != nil:
		return from(Source{ConfigMap: volume.ConfigMap.Name}, volume.ConfigMap.Items, file), true
	case volume.Projected != nil:
		for _, part := range volume.Projected.Sources { // of two with the same path the last one wins
			var found *Source
			if part.Secret != nil {
				found = from(Source{Secret: part.Secret.Name}, part.Secret.Items, file)
			} else if part.ConfigMap != nil {
				found = from(Source{ConfigMap: part.ConfigMap.Name}, part.ConfigMap.Items, file)
			}
			if found != nil {
				source = found
			}
		}
		return source, true
	}
	return nil, false
}

// from returns a source with the key that becomes a file; nil if none does.
func from(source Source, items []corev1.KeyToPath, file string) *Source {
	if source.Key = keyAt(items, file); source.Key == "" {
		return nil
	}
	return &source
}

// keyAt returns the key that becomes a file, empty if none does: without items every key becomes a file of its name.
func keyAt(items []corev1.KeyToPath, file string) string {
	if len(items) == 0 {
		if strings.Contains(file, "/") {
			return ""
		}
		return file
	}
	for _, item := range items {
		if path.Clean(item.Path) == file {
			return item.Key
		}
	}
	return ""
}
