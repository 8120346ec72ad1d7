package agents

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
)

// Names in the agents' template, for those who make other pods of it.
const (
	// VolumeConf is an empty folder, mounted at ConfDir, into which InitContainer brings the cluster file from VolumeConfigMap.
	VolumeConf      = volumeConf
	VolumeConfigMap = volumeConfigMap
	ConfDir         = confDir
	// EnvClusterFile is the variable with the path of the cluster file.
	EnvClusterFile = envClusterFile
)

// PodTemplate returns the agents' template, with the user's merged into it, for making other pods of the backup from: they run
// with the same image, rights, secrets and place. resources are those of container "foundationdb" as far as the user says
// nothing of them. A *TemplateError says that the user's template cannot be used.
func PodTemplate(
	object *fdbv1alpha1.FoundationDBBackup, version string, resources corev1.ResourceRequirements,
) (*corev1.PodTemplateSpec, error) {
	if !versionFormat.MatchString(version) {
		return nil, fmt.Errorf("%.80q is not a version of FoundationDB, such as 7.3.63", version)
	}
	ours, err := base(object, version)
	if err != nil {
		return nil, err
	}
	find(ours.Spec.Containers, MainContainer).Resources = resources
	return withTheirs(object, ours, version)
}
