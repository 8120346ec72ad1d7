package deploy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// process is a container of a Deployment, run on this machine.
type process struct {
	pod       corev1.PodSpec
	command   *exec.Cmd
	addresses map[string]string // by the name of the port
}

// runDeployments does what a kubelet would: it runs the containers' commands with the containers' environment and the rights of
// their service accounts. Only addresses differ, and there is nothing else in the environment, no HOME either.
func runDeployments(ctx context.Context, t *testing.T, stack *env.Env, base objects) []process {
	t.Helper()
	programs, err := binaries()
	require.NoError(t, err)
	var running []process
	for _, name := range []string{workerName, watcherName} {
		pod := base.deployment(t, name).Spec.Template.Spec
		p := process{pod: pod, addresses: map[string]string{"health": freeAddress(t), "metrics": freeAddress(t)}}
		variables := environment(t, base, pod.Containers[0])
		require.Equal(t, env.OADPNamespace, variables["HOLDFAST_OADP_NAMESPACE"])
		variables["HOLDFAST_KUBECONFIG"] = stack.Kubeconfig(pod.ServiceAccountName)
		variables["HOLDFAST_HEALTH_PROBE_BIND_ADDRESS"] = p.addresses["health"]
		variables["HOLDFAST_METRICS_BIND_ADDRESS"] = p.addresses["metrics"]
		variables["TEMPORAL_ADDRESS"] = stack.TemporalAddress()

		words := slices.Concat(pod.Containers[0].Command, pod.Containers[0].Args)
		p.command = exec.CommandContext(ctx, programs[path.Base(words[0])], words[1:]...)
		p.command.SysProcAttr = childAttributes()
		p.command.Env = []string{}
		for variable, value := range variables {
			p.command.Env = append(p.command.Env, variable+"="+value)
		}
		log, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
		require.NoError(t, err)
		p.command.Stdout, p.command.Stderr = log, log
		require.NoError(t, p.command.Start())
		t.Cleanup(func() {
			_ = p.command.Process.Kill()
			_ = p.command.Wait()
			_ = log.Close()
			env.TellPanic(os.Stderr, name, log.Name())
			if content, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
				t.Logf("%s said:\n%s", name, content)
			}
		})
		running = append(running, p)
	}
	return running
}

// environment is what the kubelet gives a container: what the ConfigMap says, then its own variables.
func environment(t *testing.T, base objects, container corev1.Container) map[string]string {
	t.Helper()
	variables := map[string]string{}
	for variable, value := range base.settings(t).Data {
		variables[variable] = value
	}
	for _, variable := range container.Env {
		switch {
		case variable.ValueFrom == nil:
			variables[variable.Name] = variable.Value
		case variable.ValueFrom.FieldRef != nil:
			require.Equal(t, "metadata.namespace", variable.ValueFrom.FieldRef.FieldPath)
			variables[variable.Name] = base.settings(t).Namespace
		case variable.ValueFrom.SecretKeyRef != nil: // there is no such Secret
			require.True(t, *variable.ValueFrom.SecretKeyRef.Optional)
		default:
			require.Fail(t, "a kind of variable that this test does not know: "+variable.String())
		}
	}
	return variables
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

// ask requests what a probe of the kubelet, or Prometheus, would.
func (p process) ask(ctx context.Context, port, path string) (status int, body string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.addresses[port]+path, nil)
	if err != nil {
		return 0, err.Error()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(content)
}

// With the rights that the base grants, both become ready.
func becomeReady(ctx context.Context, t *testing.T, running []process) {
	for _, p := range running {
		container := p.pod.Containers[0]
		for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
			eventually.Succeeds(t, 3*time.Minute, func() error {
				status, body := p.ask(ctx, probe.HTTPGet.Port.String(), probe.HTTPGet.Path)
				if status != http.StatusOK {
					return fmt.Errorf("%s: %s: %d: %s", container.Name, probe.HTTPGet.Path, status, body)
				}
				return nil
			})
		}
		status, body := p.ask(ctx, "metrics", "/metrics")
		assert.Equal(t, http.StatusOK, status)
		assert.Contains(t, body, "holdfast_")
	}
}

// Events to end, as a Pod is, they do so by themselves and in time.
func stopInTime(t *testing.T, running []process) {
	for _, p := range running {
		require.NoError(t, p.command.Process.Signal(syscall.SIGTERM))
	}
	for _, p := range running {
		ended, begin := make(chan error, 1), time.Now()
		go func() { ended <- p.command.Wait() }()
		name, grace := p.pod.Containers[0].Name, time.Duration(*p.pod.TerminationGracePeriodSeconds)*time.Second
		limit := grace
		if !sample.Whole() { // on a busy machine, that it ends is enough
			limit += 2 * time.Minute
		}
		select {
		case err := <-ended:
			require.NoError(t, err, "%s ends without complaint", name)
			t.Logf("%s has ended after %s, of %s", name, time.Since(begin).Round(time.Second/10), grace)
		case <-time.After(limit):
			require.Fail(t, "still running after the grace period", name)
		}
	}
}
