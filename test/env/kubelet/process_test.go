package kubelet

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/eventually"
)

// reaperChild makes this test program a process that runs a container and then dies.
const reaperChild = "HOLDFAST_TEST_REAPER_CHILD"

func TestContainersDieWithTheTestProcess(t *testing.T) {
	if dir := os.Getenv(reaperChild); dir != "" {
		runContainerForever(t, dir)
		return
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestContainersDieWithTheTestProcess$")
	cmd.Env = append(os.Environ(), reaperChild+"="+t.TempDir())
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	silent := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }) // then there is nothing to read
	line, err := bufio.NewReader(output).ReadString('\n')
	silent.Stop()
	require.NoError(t, err)
	pids := strings.Fields(line)
	require.Len(t, pids, 2, line)
	for _, text := range pids {
		require.True(t, lives(t, text))
	}
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	for _, text := range pids {
		eventually.IsTrue(t, time.Minute, "process "+text+" has ended", func() bool { return !lives(t, text) })
	}
}

// runContainerForever prints the process IDs of a container and of its child in the background.
func runContainerForever(t *testing.T, dir string) {
	reaper, err := newReaper()
	require.NoError(t, err)
	k := &Kubelet{reaper: reaper}
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	e, err := k.execute(program{path: "/bin/sh", args: []string{"-c", "sleep 1000 & echo $! > pid.new; mv pid.new pid; wait"}},
		environment{{name: "PATH", value: "/usr/bin:/bin"}}, nil, dir, log)
	require.NoError(t, err)
	var child []byte
	for len(child) == 0 {
		child, _ = os.ReadFile(filepath.Join(dir, "pid"))
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println(e.pid, strings.TrimSpace(string(child)))
	<-e.exited
}

func lives(t *testing.T, text string) bool {
	t.Helper()
	pid, err := strconv.Atoi(text)
	require.NoError(t, err)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(status), ") Z ")
}
