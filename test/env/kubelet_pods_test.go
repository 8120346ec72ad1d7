package env_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env/kubelet"
)

func (s *podSuite) runsOnce(t *testing.T) {
	good := shellPod("good", "echo done > /dev/termination-log", corev1.RestartPolicyNever)
	bad := shellPod("bad", "echo the bucket is gone; exit 7", corev1.RestartPolicyNever)
	bad.Spec.Containers[0].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	missing := shellPod("no-program", "", corev1.RestartPolicyNever)
	missing.Spec.Containers[0].Command = []string{"no-such-program"}
	s.create(t, good, bad, missing)

	s.awaitPhase(t, good, corev1.PodSucceeded)
	end := good.Status.ContainerStatuses[0].State.Terminated
	require.Equal(t, "done\n", end.Message)
	require.Equal(t, "Completed", end.Reason)
	require.False(t, end.FinishedAt.Before(&end.StartedAt))
	require.Equal(t, "PodCompleted", condition(good, corev1.PodReady).Reason)

	s.awaitPhase(t, bad, corev1.PodFailed)
	end = bad.Status.ContainerStatuses[0].State.Terminated
	require.Equal(t, "the bucket is gone\n", end.Message)
	require.Equal(t, int32(7), end.ExitCode)
	require.Equal(t, "Error", end.Reason)

	s.awaitPhase(t, missing, corev1.PodFailed)
	require.Equal(t, "StartError", missing.Status.ContainerStatuses[0].State.Terminated.Reason)
	require.Contains(t, missing.Status.ContainerStatuses[0].State.Terminated.Message, "executable file not found")
	for _, pod := range []*corev1.Pod{good, bad, missing} {
		s.remove(t, pod)
	}
}

func (s *podSuite) restarts(t *testing.T) {
	// It keeps count in a volume, fails twice and then goes on.
	pod := shellPod("stubborn", "echo x >> /count/file; [ $(wc -l < /count/file) -gt 2 ] || exit 3; "+forever, corev1.RestartPolicyAlways)
	pod.Spec.Volumes = []corev1.Volume{{Name: "count", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "count", MountPath: "/count"}}
	s.create(t, pod)
	s.await(t, pod, func() bool {
		return condition(pod, corev1.PodReady).Status == corev1.ConditionTrue && s.restartsOf(pod) == 2
	})
	require.Equal(t, int32(3), pod.Status.ContainerStatuses[0].LastTerminationState.Terminated.ExitCode)
	s.remove(t, pod)
}

func (s *podSuite) restartsOf(pod *corev1.Pod) int32 {
	if len(pod.Status.ContainerStatuses) == 0 {
		return 0
	}
	return pod.Status.ContainerStatuses[0].RestartCount
}

func waitingReason(pod *corev1.Pod) string {
	if len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Waiting == nil {
		return ""
	}
	return pod.Status.ContainerStatuses[0].State.Waiting.Reason
}

func (s *podSuite) waitsForSecret(t *testing.T) {
	reads := shellPod("reads-variable", `echo "$PASSWORD" > /dev/termination-log`, corev1.RestartPolicyNever)
	reads.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "late"}, Key: "password"},
	}}}
	mounts := shellPod("mounts-it", `cat /keys/sub/here > /dev/termination-log`, corev1.RestartPolicyNever)
	mounts.Spec.Volumes = []corev1.Volume{{Name: "keys", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: "late"},
			Items:                []corev1.KeyToPath{{Key: "password", Path: "sub/here"}},
		}}},
	}}}}
	mounts.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "keys", MountPath: "/keys"}}
	s.create(t, reads, mounts)
	s.await(t, reads, func() bool { return waitingReason(reads) == "CreateContainerConfigError" })
	require.Contains(t, reads.Status.ContainerStatuses[0].State.Waiting.Message, `secret "late"`)
	s.await(t, mounts, func() bool { return waitingReason(mounts) == "ContainerCreating" })
	require.Equal(t, corev1.PodPending, mounts.Status.Phase)
	eventually.Succeeds(t, time.Minute, func() error {
		var events corev1.EventList
		if err := s.c.List(s.ctx, &events, client.InNamespace(podNamespace)); err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Reason == "FailedMount" && event.InvolvedObject.Name == mounts.Name {
				return nil
			}
		}
		return fmt.Errorf("of %d Events none says that the Secret cannot be mounted", len(events.Items))
	})

	late := secret("late", "password", "/keys is no path here")
	s.create(t, late)
	for _, pod := range []*corev1.Pod{reads, mounts} {
		s.awaitPhase(t, pod, corev1.PodSucceeded)
		require.Equal(t, "/keys is no path here",
			strings.TrimSpace(pod.Status.ContainerStatuses[0].State.Terminated.Message))
		s.remove(t, pod)
	}
	s.remove(t, late)
}

func (s *podSuite) needsImage(t *testing.T) {
	pod := shellPod("no-image", "exit 0", corev1.RestartPolicyNever)
	pod.Spec.Containers[0].Image = "example.org/tool:2"
	old := shellPod("no-version", "exit 0", corev1.RestartPolicyNever)
	old.Spec.Containers[0].Image = "foundationdb/foundationdb:6.2.1"
	s.create(t, pod, old)
	s.await(t, old, func() bool { return waitingReason(old) == "ImagePullBackOff" })
	s.await(t, pod, func() bool { return waitingReason(pod) == "ImagePullBackOff" })
	require.Equal(t, corev1.PodPending, pod.Status.Phase)
	s.k.SetImage("tool:2", kubelet.Image{})
	s.awaitPhase(t, pod, corev1.PodSucceeded)
	s.remove(t, pod)
	s.remove(t, old)
}

func (s *podSuite) staysUnbound(t *testing.T) {
	pod := shellPod("choosy", "exit 0", corev1.RestartPolicyNever)
	pod.Spec.NodeSelector = map[string]string{"disk": "fast"}
	s.create(t, pod)
	s.await(t, pod, func() bool { return condition(pod, corev1.PodScheduled).Reason == corev1.PodReasonUnschedulable })
	require.Empty(t, pod.Spec.NodeName)
	s.remove(t, pod)

	s.k.PauseBinding(true)
	patient := shellPod("patient", "exit 0", corev1.RestartPolicyNever)
	other := configMap("after-it", "a", "b")
	s.create(t, patient, other)
	s.remove(t, other)
	require.NoError(t, s.c.Get(s.ctx, client.ObjectKeyFromObject(patient), patient))
	require.Empty(t, patient.Spec.NodeName)
	s.k.PauseBinding(false)
	s.awaitPhase(t, patient, corev1.PodSucceeded)
	s.remove(t, patient)
}

func (s *podSuite) renewsVolume(t *testing.T) {
	config := configMap("changing", "a", "old")
	pod := shellPod("looks", `until grep -q new /config/a; do sleep 0.05; done`, corev1.RestartPolicyNever)
	pod.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "changing"},
	}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/config"}}
	s.create(t, config, pod)
	s.awaitPhase(t, pod, corev1.PodRunning)
	config.Data["a"] = "new"
	require.NoError(t, s.c.Update(s.ctx, config))
	s.awaitPhase(t, pod, corev1.PodSucceeded)
	s.remove(t, pod)
	s.remove(t, config)
}

func (s *podSuite) killsHanging(t *testing.T) {
	file := filepath.Join(t.TempDir(), "child")
	pod := shellPod("hangs", "trap '' TERM; sleep 1000 & echo $! > "+file+"; "+forever, corev1.RestartPolicyAlways)
	pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](60) // the stack's limit is a second
	s.create(t, pod)
	s.awaitPhase(t, pod, corev1.PodRunning)
	var child int
	eventually.Succeeds(t, time.Minute, func() error {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		child, err = strconv.Atoi(strings.TrimSpace(string(content)))
		return err
	})
	pid := s.running("hangs")
	require.True(t, processAlive(pid))
	begin := time.Now()
	s.remove(t, pod)
	require.GreaterOrEqual(t, time.Since(begin), time.Second)
	require.False(t, processAlive(pid))
	eventually.IsTrue(t, time.Minute, "the child has ended", func() bool { return !processAlive(child) })
}

func (s *podSuite) runsFunction(t *testing.T) {
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	s.k.SetImage("function", kubelet.Image{Env: map[string]string{"COLOR": "red"}, Run: func(_ context.Context, call kubelet.ImageCall) int {
		fmt.Fprintln(call.Output, call.Args, call.Env["COLOR"])
		if err := os.WriteFile(call.Path("/dev/termination-log"), []byte("written"), 0o600); err != nil {
			return 1
		}
		<-never // whatever ctx says
		return 0
	}})
	pod := shellPod("function", "", corev1.RestartPolicyNever)
	pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Command = "function:1", nil
	pod.Spec.Containers[0].Args = []string{"a", "$(COLOR)"}
	s.create(t, pod)
	s.awaitPhase(t, pod, corev1.PodRunning)
	eventually.IsTrue(t, time.Minute, "it has written to its log", func() bool {
		return strings.Contains(s.log(t, "function", "main"), "[a red] red")
	})
	require.NoError(t, s.k.Evict(podNamespace, "function"))
	s.awaitPhase(t, pod, corev1.PodFailed)
	require.Equal(t, "written", pod.Status.ContainerStatuses[0].State.Terminated.Message)
	s.remove(t, pod)
}

func (s *podSuite) endsAtDeadline(t *testing.T) {
	pod := shellPod("too-long", forever, corev1.RestartPolicyNever)
	pod.Spec.ActiveDeadlineSeconds = ptr.To[int64](1)
	s.create(t, pod)
	s.awaitPhase(t, pod, corev1.PodFailed)
	require.Equal(t, "DeadlineExceeded", pod.Status.Reason)
	require.Equal(t, int32(143), pod.Status.ContainerStatuses[0].State.Terminated.ExitCode)
	require.Zero(t, s.running("too-long"))
	s.remove(t, pod)
}

func (s *podSuite) evicts(t *testing.T) {
	pod := shellPod("unlucky", forever, corev1.RestartPolicyAlways)
	s.create(t, pod)
	s.awaitPhase(t, pod, corev1.PodRunning)
	require.NoError(t, s.k.Evict(podNamespace, "unlucky"))
	s.awaitPhase(t, pod, corev1.PodFailed)
	require.Equal(t, "Evicted", pod.Status.Reason)
	require.Equal(t, corev1.ConditionTrue, condition(pod, corev1.DisruptionTarget).Status)
	require.Zero(t, s.running("unlucky"))
	s.remove(t, pod)
	require.ErrorContains(t, s.k.Evict(podNamespace, "nobody"), "evict Pod default/nobody: it is not on the node")
}

func (s *podSuite) holds(t *testing.T) {
	release := s.k.HoldTermination(podNamespace, "held")
	pod := shellPod("held", forever, corev1.RestartPolicyAlways)
	other := shellPod("not-held", forever, corev1.RestartPolicyAlways)
	s.create(t, pod, other)
	s.awaitPhase(t, pod, corev1.PodRunning)
	s.awaitPhase(t, other, corev1.PodRunning)
	require.NoError(t, s.c.Delete(s.ctx, pod))
	s.remove(t, other) // the later deletion is through
	require.NoError(t, s.c.Get(s.ctx, client.ObjectKeyFromObject(pod), pod))
	require.NotNil(t, pod.DeletionTimestamp)
	require.True(t, processAlive(s.running("held")))
	release()
	s.awaitGone(t, pod)
	require.Zero(t, s.running("held"))
}
