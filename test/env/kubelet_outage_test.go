package env_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/env/kubelet"
)

func (s *podSuite) losesNode(t *testing.T) {
	runs := shellPod("runs", forever, corev1.RestartPolicyAlways)
	doomed := shellPod("doomed", forever, corev1.RestartPolicyAlways)
	s.create(t, runs, doomed)
	s.awaitPhase(t, runs, corev1.PodRunning)
	s.awaitPhase(t, doomed, corev1.PodRunning)
	pid := s.running("runs")

	require.NoError(t, s.k.LoseNode(s.ctx))
	s.await(t, runs, func() bool { return condition(runs, corev1.PodReady).Status == corev1.ConditionFalse })
	node := &corev1.Node{}
	require.NoError(t, s.c.Get(s.ctx, client.ObjectKey{Name: kubelet.NodeName}, node))
	require.Equal(t, corev1.ConditionUnknown, node.Status.Conditions[0].Status)
	late := shellPod("late", "exit 0", corev1.RestartPolicyNever)
	s.create(t, late)
	require.NoError(t, s.c.Delete(s.ctx, doomed))
	// What its node does later for the same Pod shows that it does not know of the deletion: it starts the container again.
	first := s.running("doomed")
	require.NoError(t, syscall.Kill(first, syscall.SIGKILL))
	eventually.IsTrue(t, time.Minute, "its node has started the container again", func() bool {
		again := s.running("doomed")
		return again != 0 && again != first
	})
	require.NoError(t, s.c.Get(s.ctx, client.ObjectKeyFromObject(doomed), doomed))

	require.NoError(t, s.k.ReturnNode(s.ctx))
	s.awaitGone(t, doomed)
	s.awaitPhase(t, late, corev1.PodSucceeded)
	s.await(t, runs, func() bool { return condition(runs, corev1.PodReady).Status == corev1.ConditionTrue })
	require.Equal(t, pid, s.running("runs"))
	s.remove(t, runs)
	s.remove(t, late)
}

func (s *podSuite) crashes(t *testing.T) {
	always := shellPod("always", forever, corev1.RestartPolicyAlways)
	never := shellPod("never", forever, corev1.RestartPolicyNever)
	s.create(t, always, never)
	s.awaitPhase(t, always, corev1.PodRunning)
	s.awaitPhase(t, never, corev1.PodRunning)
	require.NoError(t, s.k.CrashNode(s.ctx))
	eventually.IsTrue(t, time.Minute, "nothing runs", func() bool { return len(s.k.Running()) == 0 })
	require.NoError(t, s.k.ReturnNode(s.ctx))
	s.awaitPhase(t, never, corev1.PodFailed)
	require.Equal(t, int32(137), never.Status.ContainerStatuses[0].State.Terminated.ExitCode)
	s.await(t, always, func() bool {
		return condition(always, corev1.PodReady).Status == corev1.ConditionTrue && s.restartsOf(always) == 1
	})
	s.remove(t, always)
	s.remove(t, never)
}

func (s *podSuite) outlivesOutage(t *testing.T) {
	server := s.stack.Component(env.KubeAPIServer)
	for name, outage := range map[string]struct{ begin, end func() error }{
		"killed": {server.Kill, func() error { return server.Restart(s.ctx) }},
		"paused": {server.Pause, server.Resume},
	} {
		t.Run(name, func(t *testing.T) {
			stays := shellPod("stays", forever, corev1.RestartPolicyAlways)
			end := filepath.Join(t.TempDir(), "end")
			ends := shellPod("ends", "while [ ! -e "+end+" ]; do sleep 0.05; done; echo over > /dev/termination-log",
				corev1.RestartPolicyNever)
			s.create(t, stays, ends)
			s.awaitPhase(t, stays, corev1.PodRunning)
			s.awaitPhase(t, ends, corev1.PodRunning)
			pid := s.running("stays")
			require.NoError(t, outage.begin())
			require.NoError(t, os.WriteFile(end, nil, 0o600))
			eventually.IsTrue(t, time.Minute, "the container has ended", func() bool { return s.running("ends") == 0 })
			require.NoError(t, outage.end())
			s.awaitPhase(t, ends, corev1.PodSucceeded)
			require.Equal(t, "over\n", ends.Status.ContainerStatuses[0].State.Terminated.Message)
			require.Equal(t, pid, s.running("stays"))
			s.remove(t, stays)
			s.remove(t, ends)
		})
	}
}

func (s *podSuite) stops(t *testing.T) {
	pod := shellPod("left", "trap '' TERM; sleep 1000 & "+forever, corev1.RestartPolicyAlways)
	s.create(t, pod)
	s.awaitPhase(t, pod, corev1.PodRunning)
	pid := s.running("left")
	require.True(t, processAlive(pid))
	var logs strings.Builder
	s.k.DumpLogs(&logs, 5)
	require.Contains(t, logs.String(), s.k.LogPath(podNamespace, "good", "main"))
	require.Contains(t, logs.String(), "the bucket is gone")
	s.stack.Stop()
	require.False(t, processAlive(pid))
	require.Empty(t, s.k.Running())
	require.Empty(t, processesOf(t, s.stack.Dir()))
}
