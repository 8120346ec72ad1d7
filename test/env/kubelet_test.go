package env_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/env/kubelet"
)

const podNamespace = "default"

func TestKubelet(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute) // the first build is in it
	defer cancel()
	bin := filepath.Join(t.TempDir(), "7.3")
	require.NoError(t, os.Mkdir(bin, 0o755))
	agent := "#!/bin/sh\n" + `trap 'echo bye; exit 0' TERM
echo "cluster $(cat "$FDB_CLUSTER_FILE") key $(cat "$1") $2 of $ZONE home ${HOME-none} path $PATH"
while true; do sleep 0.05; done`
	require.NoError(t, os.WriteFile(filepath.Join(bin, "backup_agent"), []byte(agent), 0o755))
	stack := startStack(ctx, t, env.Options{
		Without: []string{env.Velero, env.S3, env.Temporal},
		Kubelet: &kubelet.Options{
			Images:  map[string]kubelet.Image{"busybox": {}},
			Resolve: kubelet.FDBImages(filepath.Dir(bin)), MaxGrace: time.Second,
		},
	})
	s := &podSuite{ctx: ctx, stack: stack, c: stack.Client(), k: stack.Kubelet()}

	t.Run("a Deployment becomes available, rolls, and goes with its owner", s.runsDeployment)
	t.Run("a Pod that runs once tells how it ended", s.runsOnce)
	t.Run("a failing container is restarted by its policy", s.restarts)
	t.Run("a container waits for what its configuration names", s.waitsForSecret)
	t.Run("an image that is not there keeps the Pod pending", s.needsImage)
	t.Run("a Pod whose selector fits no node stays unbound", s.staysUnbound)
	t.Run("a mounted ConfigMap changes in a running Pod", s.renewsVolume)
	t.Run("a Pod that hangs is killed after its grace, with its children", s.killsHanging)
	t.Run("an image may be a function of the test", s.runsFunction)
	t.Run("a Pod past its deadline fails", s.endsAtDeadline)
	t.Run("an evicted Pod fails", s.evicts)
	t.Run("a held Pod stays terminating", s.holds)
	t.Run("a lost node says nothing and comes back", s.losesNode)
	t.Run("a node that crashed starts its Pods again", s.crashes)
	t.Run("an outage of the API server leaves containers alone", s.outlivesOutage)
	t.Run("Stop leaves no process", s.stops)
}

type podSuite struct {
	ctx   context.Context // one test's
	stack *env.Env
	c     client.Client
	k     *kubelet.Kubelet
}

// shellPod is a Pod with one container that runs a script.
func shellPod(name, script string, policy corev1.RestartPolicy) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: podNamespace, Name: name},
		Spec: corev1.PodSpec{RestartPolicy: policy, Containers: []corev1.Container{{
			Name: "main", Image: "busybox:1.36", Command: []string{"sh", "-c", script},
		}}},
	}
}

const forever = "while true; do sleep 0.05; done"

func (s *podSuite) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		require.NoError(t, s.c.Create(s.ctx, object))
	}
}

// await polls the object until it is as wanted.
func (s *podSuite) await(t *testing.T, object client.Object, wanted func() bool) {
	t.Helper()
	eventually.Succeeds(t, 2*time.Minute, func() error {
		err := s.c.Get(s.ctx, client.ObjectKeyFromObject(object), object)
		if err == nil && !wanted() {
			err = fmt.Errorf("not as wanted: %+v", object)
		}
		return err
	})
}

func (s *podSuite) awaitPhase(t *testing.T, pod *corev1.Pod, phase corev1.PodPhase) {
	t.Helper()
	s.await(t, pod, func() bool { return pod.Status.Phase == phase })
}

func (s *podSuite) awaitGone(t *testing.T, object client.Object) {
	t.Helper()
	eventually.Succeeds(t, 2*time.Minute, func() error {
		err := s.c.Get(s.ctx, client.ObjectKeyFromObject(object), object)
		if err == nil {
			err = fmt.Errorf("still there: %+v", object)
		}
		return client.IgnoreNotFound(err)
	})
}

func (s *podSuite) remove(t *testing.T, object client.Object) {
	t.Helper()
	require.NoError(t, s.c.Delete(s.ctx, object))
	s.awaitGone(t, object)
}

// running returns the process of a Pod's only container, 0 when there is none.
func (s *podSuite) running(name string) int {
	for _, c := range s.k.Running() {
		if c.Namespace == podNamespace && c.Pod == name {
			return c.PID
		}
	}
	return 0
}

func (s *podSuite) log(t *testing.T, pod, container string) string {
	t.Helper()
	content, err := os.ReadFile(s.k.LogPath(podNamespace, pod, container))
	require.NoError(t, err)
	return string(content)
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

// processAlive tells whether a process runs; one that has ended but that nobody has waited for does not.
func processAlive(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		_, statErr := os.Stat("/proc/self/stat")
		return statErr != nil && syscall.Kill(pid, 0) == nil
	}
	return !strings.Contains(string(status), ") Z ")
}

func configMap(name, key, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: podNamespace, Name: name}, Data: map[string]string{key: value},
	}
}

func secret(name, key, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: podNamespace, Name: name}, StringData: map[string]string{key: value},
	}
}

// agents is a Deployment as Holdfast makes it for FoundationDB's backup agents.
func agents(owner *corev1.ConfigMap) *appsv1.Deployment {
	labels := map[string]string{"app": "agents"}
	volume := func(name string, from corev1.VolumeSource) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: from}
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: podNamespace, Name: "agents",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](3), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Volumes: []corev1.Volume{
						volume("config", corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
							LocalObjectReference: corev1.LocalObjectReference{Name: "sample-config"},
							Items:                []corev1.KeyToPath{{Key: "cluster-file", Path: "fdb.cluster"}},
						}}),
						volume("dynamic", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}),
						volume("keys", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
							SecretName: "bucket", DefaultMode: ptr.To[int32](0o400),
						}}),
					},
					InitContainers: []corev1.Container{{
						Name: "init", Image: "registry.example:5000/foundationdb/foundationdb-kubernetes-sidecar:7.3.48-1",
						Args: []string{"--copy-file", "fdb.cluster", "--require-not-empty", "fdb.cluster", "--init-mode"},
						VolumeMounts: []corev1.VolumeMount{
							{Name: "config", MountPath: "/var/input-files"}, {Name: "dynamic", MountPath: "/var/output-files"},
						},
					}},
					Containers: []corev1.Container{{
						Name: "agent", Image: "foundationdb/foundationdb:7.3.48",
						Command: []string{"backup_agent"}, Args: []string{"/var/keys/credentials.json", "--zone=$(ZONE)"},
						Env: []corev1.EnvVar{
							{Name: "FDB_CLUSTER_FILE", Value: "/var/dynamic-conf/fdb.cluster"},
							{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
							{Name: "ZONE", Value: "zone-$(POD)"},
						},
						VolumeMounts: []corev1.VolumeMount{
							{Name: "dynamic", MountPath: "/var/dynamic-conf"}, {Name: "keys", MountPath: "/var/keys"},
						},
					}},
				},
			},
		},
	}
}

func (s *podSuite) runsDeployment(t *testing.T) {
	owner := configMap("owner", "a", "b")
	s.create(t, owner, configMap("sample-config", "cluster-file", "lab:id@127.0.0.1:4500"), secret("bucket", "credentials.json", "k3y"))
	deployment := agents(owner)
	s.create(t, deployment)
	complete := func() bool {
		status := deployment.Status
		return status.ObservedGeneration == deployment.Generation && status.AvailableReplicas == 3 &&
			status.UpdatedReplicas == 3 && status.Replicas == 3
	}
	s.await(t, deployment, complete)
	first := s.k.Running()
	require.Len(t, first, 3)
	pod := first[0].Pod
	eventually.IsTrue(t, time.Minute, "the agent has written to its log", func() bool { return len(s.log(t, pod, "agent")) > 100 })
	require.Contains(t, s.log(t, pod, "agent"), fmt.Sprintf(
		"cluster lab:id@127.0.0.1:4500 key k3y --zone=zone-%s of zone-%s home none path %s", pod, pod, os.TempDir()))

	deployment.Spec.Template.Annotations = map[string]string{"version": "2"}
	require.NoError(t, s.c.Update(s.ctx, deployment))
	s.await(t, deployment, complete)
	eventually.IsTrue(t, time.Minute, "three agents run", func() bool { return len(s.k.Running()) == 3 })
	for _, old := range first {
		require.False(t, processAlive(old.PID))
		require.Contains(t, s.log(t, old.Pod, "agent"), "bye")
	}
	require.NoError(t, s.c.Delete(s.ctx, owner))
	s.awaitGone(t, deployment)
	eventually.IsTrue(t, time.Minute, "nothing runs", func() bool { return len(s.k.Running()) == 0 })
}
