package agents

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/fdb/gather"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
)

// Names by which a user's template refers to our containers.
const (
	// MainContainer runs backup_agent.
	MainContainer = "foundationdb"
	// InitContainer copies the cluster file.
	InitContainer = "foundationdb-kubernetes-init"

	// VolumeConfigMap has the cluster file, which InitContainer copies into ConfDir.
	VolumeConfigMap = "config-map"

	volumeLogs        = "logs"
	volumeConf        = "dynamic-conf"
	volumeCredentials = "backup-credentials"
)

const (
	mainImage = "foundationdb/foundationdb"
	initImage = "foundationdb/foundationdb-kubernetes-sidecar"
	// initTagSuffix: releases of the sidecar's image have a number of their own.
	initTagSuffix = "-1"

	// ConfDir is where an empty volume is mounted.
	ConfDir = "/var/dynamic-conf"

	logsDir         = "/var/log/fdb-trace-logs"
	inputDir        = "/var/input-files"
	outputDir       = "/var/output-files"
	credentialsDir  = "/var/backup-credentials"
	clusterFile     = "fdb.cluster"
	clusterFileKey  = "cluster-file" // in the operator's ConfigMap
	configMapSuffix = "-config"      // after the cluster's name
	// credentialsFile does not depend on the name of the Secret's key: FDB_BLOB_CREDENTIALS is separated by colons.
	credentialsFile = "credentials"

	// EnvClusterFile has the path of the cluster file.
	EnvClusterFile = "FDB_CLUSTER_FILE"

	envCredentials = "FDB_BLOB_CREDENTIALS"
	envZone        = "FDB_ZONE_ID"
	envMachine     = "FDB_MACHINE_ID"

	// fdbUser is user and group "fdb" in the official images, some of which would run as root by default.
	fdbUser int64 = 4059
	// secretMode allows reading by the group only, which is fsGroup.
	secretMode int32 = 0o440
)

// base is our pod template, before the user's is merged into it.
func base(object *fdbv1alpha1.FoundationDBBackup, version string) (*corev1.PodTemplateSpec, error) {
	method, known := fdb.MethodOf(object.Spec.BackupType)
	if !known {
		return nil, fmt.Errorf("there is no backup type %q", object.Spec.BackupType)
	}
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: marked(object)},
		Spec: corev1.PodSpec{
			InitContainers:               []corev1.Container{initContainer(version)},
			Containers:                   []corev1.Container{mainContainer(object, method, version)},
			Volumes:                      volumes(object),
			AutomountServiceAccountToken: new(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(fdbUser), RunAsGroup: new(fdbUser), FSGroup: new(fdbUser),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
		},
	}, nil
}

func mainContainer(object *fdbv1alpha1.FoundationDBBackup, method fdb.Method, version string) corev1.Container {
	most := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("8Gi"),
	}
	command, args := method.AgentCommand()
	return corev1.Container{
		Name: MainContainer, Image: mainImage + ":" + version,
		Command: command, Args: args,
		Env: []corev1.EnvVar{
			{Name: EnvClusterFile, Value: ConfDir + "/" + clusterFile},
			{Name: envCredentials, Value: credentialsDir + "/" + credentialsFile},
			{Name: envZone, Value: object.Name},
			{Name: envMachine, ValueFrom: &corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"},
			}},
		},
		// backup_agent exits above 8 GiB, unless --memory says otherwise.
		Resources: corev1.ResourceRequirements{Requests: most.DeepCopy(), Limits: most},
		VolumeMounts: []corev1.VolumeMount{
			{Name: volumeLogs, MountPath: logsDir},
			{Name: volumeConf, MountPath: ConfDir},
			{Name: volumeCredentials, MountPath: credentialsDir, ReadOnly: true},
		},
		SecurityContext: restricted(),
	}
}

func initContainer(version string) corev1.Container {
	return corev1.Container{
		Name: InitContainer, Image: initImage + ":" + version + initTagSuffix,
		Args: []string{"--copy-file", clusterFile, "--require-not-empty", clusterFile, "--init-mode"},
		VolumeMounts: []corev1.VolumeMount{
			{Name: VolumeConfigMap, MountPath: inputDir, ReadOnly: true},
			{Name: volumeConf, MountPath: outputDir},
		},
		SecurityContext: restricted(),
	}
}

func restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

func volumes(object *fdbv1alpha1.FoundationDBBackup) []corev1.Volume {
	return []corev1.Volume{
		{Name: volumeLogs, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: volumeConf, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: VolumeConfigMap, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: gather.ClusterName(object) + configMapSuffix},
			Items:                []corev1.KeyToPath{{Key: clusterFileKey, Path: clusterFile}},
		}}},
		{Name: volumeCredentials, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName:  object.Spec.Credentials.SecretName,
			Items:       []corev1.KeyToPath{{Key: keyOf(object), Path: credentialsFile}},
			DefaultMode: new(secretMode),
		}}},
	}
}

func keyOf(object *fdbv1alpha1.FoundationDBBackup) string {
	return cmp.Or(object.Spec.Credentials.Key, "credentials")
}
