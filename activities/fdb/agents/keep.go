package agents

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
)

// keepOurs refuses a merged template whose pods would not be this backup's agents, and puts our credentials before the user's.
func keepOurs(ours, merged *corev1.PodTemplateSpec) error {
	label := fdbv1alpha1.LabelBackup
	if merged.Labels[label] != ours.Labels[label] {
		return refused("must not change or remove label %s: the Deployment finds its pods by it", label)
	}
	if err := keepContainers(merged); err != nil {
		return err
	}
	for _, name := range []string{volumeConf, VolumeConfigMap, volumeCredentials} {
		if err := keepVolume(name, ours.Spec.Volumes, merged.Spec.Volumes); err != nil {
			return err
		}
	}
	pairs := []struct{ ours, merged *corev1.Container }{
		{Container(ours.Spec.Containers, MainContainer), Container(merged.Spec.Containers, MainContainer)},
		{Container(ours.Spec.InitContainers, InitContainer), Container(merged.Spec.InitContainers, InitContainer)},
	}
	for _, pair := range pairs {
		if err := keepMounts(pair.ours, pair.merged); err != nil {
			return err
		}
	}
	return keepEnvironment(pairs[0].ours, pairs[0].merged)
}

func keepContainers(merged *corev1.PodTemplateSpec) error {
	if Container(merged.Spec.Containers, MainContainer) == nil {
		return refused("must not remove container %s, which runs the agent", MainContainer)
	}
	if Container(merged.Spec.InitContainers, InitContainer) == nil {
		return refused("must not remove init container %s, which brings the cluster file", InitContainer)
	}
	for _, containers := range [][]corev1.Container{merged.Spec.Containers, merged.Spec.InitContainers} {
		for _, container := range containers {
			if container.Image == "" {
				return refused("must name the image of container %.63q", container.Name)
			}
		}
	}
	return nil
}

func keepVolume(name string, ours, merged []corev1.Volume) error {
	named := func(v corev1.Volume) bool { return v.Name == name }
	want, got := slices.IndexFunc(ours, named), slices.IndexFunc(merged, named)
	if got < 0 || !equality.Semantic.DeepEqual(ours[want], merged[got]) {
		return refused("must not change or remove volume %s: give yours another name", name)
	}
	return nil
}

// keepMounts checks our mounts, except that of the logs, which the user may change.
func keepMounts(ours, merged *corev1.Container) error {
	for _, want := range ours.VolumeMounts {
		if want.Name != volumeLogs && !slices.ContainsFunc(merged.VolumeMounts, func(got corev1.VolumeMount) bool {
			return equality.Semantic.DeepEqual(want, got)
		}) {
			return refused("must not change or remove the mount of volume %s at %s in container %s",
				want.Name, want.MountPath, ours.Name)
		}
	}
	return nil
}

func keepEnvironment(ours, merged *corev1.Container) error {
	want, got := variable(ours.Env, EnvClusterFile), variable(merged.Env, EnvClusterFile)
	if got == nil || got.Value != want.Value || got.ValueFrom != nil {
		return refused("must not change or remove %s in container %s: the cluster is that of spec.clusterName",
			EnvClusterFile, MainContainer)
	}
	want, got = variable(ours.Env, envCredentials), variable(merged.Env, envCredentials)
	if got == nil {
		return refused("must not remove %s in container %s", envCredentials, MainContainer)
	}
	if got.ValueFrom != nil {
		return refused("must give %s in container %s as a value, so that it can be put after the credentials of this backup",
			envCredentials, MainContainer)
	}
	got.Value = afterOurs(want.Value, got.Value)
	return nil
}

// afterOurs lists the credentials files, ours first: FoundationDB reads an account from the first file that has it.
func afterOurs(ours, theirs string) string {
	files := []string{ours}
	for file := range strings.SplitSeq(theirs, ":") {
		if file != "" && !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	return strings.Join(files, ":")
}

func variable(env []corev1.EnvVar, name string) *corev1.EnvVar {
	i := slices.IndexFunc(env, func(v corev1.EnvVar) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return &env[i]
}
