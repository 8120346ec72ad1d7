package agents

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
)

// Names in the agents' template, for packages that make other pods from it.
const (
	// VolumeConf is an empty volume, mounted at ConfDir. InitContainer copies the cluster file into it from VolumeConfigMap.
	VolumeConf      = volumeConf
	VolumeConfigMap = volumeConfigMap
	ConfDir         = confDir
	// EnvClusterFile is the variable with the path of the cluster file.
	EnvClusterFile = envClusterFile
)

// PodTemplate returns the agents' template, with the user's merged into it. Other pods of the backup are made from it: they run
// with the same image, rights, secrets and node constraints. resources are used for container "foundationdb" where the user sets
// none. A *TemplateError says that the user's template cannot be used.
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
