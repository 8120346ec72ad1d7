package process_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/k8s/probe"
	"holdfast.dev/holdfast/k8s/process"
)

// asProcess says in the environment of a copy of this test that it shall be a process made with Main, and of which kind.
const asProcess = "HOLDFAST_TEST_PROCESS"

func TestMain(m *testing.M) {
	kind := os.Getenv(asProcess)
	if kind == "" {
		os.Exit(m.Run())
	}
	var level string
	command := &cobra.Command{
		Use: "holdfast-test",
		RunE: func(command *cobra.Command, _ []string) error {
			switch kind {
			case "fails":
				return errors.New("it failed")
			case "waits":
				fmt.Fprintln(os.Stdout, "waiting, level", level)
				<-command.Context().Done()
				return fmt.Errorf("while waiting: %w", command.Context().Err())
			}
			return nil
		},
	}
	command.Flags().StringVar(&level, "log-level", "info", "")
	command.SetArgs(nil)
	process.Main(command)
	os.Exit(0)
}

// child is a copy of this test as such a process.
func child(t *testing.T, kind string) (command *exec.Cmd, problems *bytes.Buffer) {
	t.Helper()
	command = exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), asProcess+"="+kind, "HOLDFAST_LOG_LEVEL=warn")
	problems = &bytes.Buffer{}
	command.Stderr = problems
	return command, problems
}

func TestAProcessThatSucceedsEndsWithStatus0(t *testing.T) {
	command, problems := child(t, "succeeds")
	require.NoError(t, command.Run())
	assert.Empty(t, problems.String())
}

func TestAProcessThatFailsSaysWhyInOneLine(t *testing.T) {
	command, problems := child(t, "fails")
	err := command.Run()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 1, exit.ExitCode())
	assert.Equal(t, "holdfast-test: it failed\n", problems.String())
}

// Kubernetes ends a Pod with SIGTERM, a person a program with Ctrl-C: neither is a failure.
func TestAProcessThatIsAskedToEndEndsWithStatus0(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(signal.String(), func(t *testing.T) {
			command, problems := child(t, "waits")
			out, err := command.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, command.Start())
			line := make([]byte, len("waiting, level warn"))
			_, err = io.ReadFull(out, line)
			require.NoError(t, err)
			assert.Equal(t, "waiting, level warn", string(line), "flags come from the environment")
			require.NoError(t, command.Process.Signal(signal))
			require.NoError(t, command.Wait())
			assert.Empty(t, problems.String())
		})
	}
}

func TestProbesAndMetricsAreServedAtTheAddressesOfTheFlags(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	flags := process.Flags{HealthBindAddress: freeAddress(t), MetricsBindAddress: freeAddress(t)}
	prober := probe.New(zap.NewNop(), probe.Check{Name: "main-test", Probe: func(context.Context) error { return nil }})
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "metrics") })
	require.NoError(t, flags.ServeProbes(ctx, zap.NewNop(), prober, page))
	get := func(url string) (string, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err == nil && answer.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", answer.Status, body)
		}
		return string(body), err
	}
	body, err := get("http://" + flags.MetricsBindAddress + "/metrics")
	require.NoError(t, err)
	assert.Equal(t, "metrics", body)
	eventually.Succeeds(t, time.Minute, func() error { // once the prober runs
		_, err := get("http://" + flags.HealthBindAddress + "/readyz")
		return err
	})

	for flag, taken := range map[string]process.Flags{
		"--health-probe-bind-address": {HealthBindAddress: flags.HealthBindAddress, MetricsBindAddress: "0"},
		"--metrics-bind-address":      {HealthBindAddress: "0", MetricsBindAddress: flags.MetricsBindAddress},
	} {
		err := taken.ServeProbes(ctx, zap.NewNop(), prober, page)
		require.ErrorContains(t, err, flag)
		assert.NotContains(t, err.Error(), "\n")
	}
}
