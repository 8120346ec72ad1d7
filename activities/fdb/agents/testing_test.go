package agents_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"holdfast.dev/holdfast/activities/fdb/agents"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
)

const version = "7.3.63"

// backup returns an object with this pod template in JSON; without one if it is empty.
func backup(template string) *fdbv1alpha1.FoundationDBBackup {
	object := &fdbv1alpha1.FoundationDBBackup{
		ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "team-a", UID: "uid-1"},
		Spec: fdbv1alpha1.FoundationDBBackupSpec{
			ClusterName: "prod", BackupType: fdbv1alpha1.BackupTypeAgent, AgentCount: new(int32(2)),
			Credentials: fdbv1alpha1.CredentialsReference{SecretName: "store", Key: "blob.json"},
		},
	}
	if template != "" {
		object.Spec.PodTemplateSpec = &runtime.RawExtension{Raw: []byte(template)}
	}
	return object
}

func build(t *testing.T, object *fdbv1alpha1.FoundationDBBackup) *appsv1.Deployment {
	t.Helper()
	deployment, err := agents.Deployment(object, version)
	require.NoError(t, err)
	return deployment
}

// podOf returns the agents' pod with this template.
func podOf(t *testing.T, template string) corev1.PodSpec {
	t.Helper()
	return build(t, backup(template)).Spec.Template.Spec
}

func container(t *testing.T, containers []corev1.Container, name string) corev1.Container {
	t.Helper()
	for _, c := range containers {
		if c.Name == name {
			return c
		}
	}
	require.Failf(t, "no container", "%s in %v", name, containers)
	return corev1.Container{}
}

func environment(c corev1.Container) map[string]corev1.EnvVar {
	all := map[string]corev1.EnvVar{}
	for _, v := range c.Env {
		all[v.Name] = v
	}
	return all
}

// inMain returns a pod template with these fields of container "foundationdb".
func inMain(fields string) string {
	return `{"spec":{"containers":[{"name":"foundationdb",` + fields + `}]}}`
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	content, err := json.Marshal(value)
	require.NoError(t, err)
	return string(content)
}
