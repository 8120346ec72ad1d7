package fdbtool_test

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/activities/fdbtool"
	"holdfast.dev/holdfast/activities/fdbtool/cage"
)

// lair is a worker with a run in progress, and a compromised tool.
type lair struct {
	loot
	runner  *fdbtool.Runner
	thief   string
	session *fdbtool.Session
}

func newLair(t *testing.T) *lair {
	t.Helper()
	runner := &fdbtool.Runner{BinDir: t.TempDir(), TempDir: t.TempDir()}
	t.Cleanup(func() { assert.NoError(t, runner.Close()) })
	thief := filepath.Join(runner.BinDir, "7.3", "fdbbackup")
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Dir(thief), 0o755))
	require.NoError(t, os.Symlink(self, thief))

	l := &lair{runner: runner, thief: thief}
	l.Worker, l.Variable, l.Outside = os.Getpid(), "HOLDFAST_TEST_OF_THE_WORKER", t.TempDir()
	t.Setenv(l.Variable, "set")
	l.Token = filepath.Join(l.Outside, "token")
	for _, path := range []string{l.Token, filepath.Join(l.Outside, "worker's")} {
		require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	}
	fd, err := unix.Open(l.Token, unix.O_RDONLY, 0) // without O_CLOEXEC
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, unix.Close(fd)) })

	l.Temporal, l.Database = server(t, "tcp4", "127.0.0.1:0"), server(t, "tcp4", "127.0.0.1:0")
	l.Abstract = server(t, "unix", "@"+filepath.Base(runner.TempDir)+"-of-the-worker")
	all := access()
	l.Secret = filepath.Join(filepath.Dir(open(t, runner, all).ClusterFile()), "credentials.json")
	all.ConnectionString = "lab:abc123@" + l.Database
	l.session = open(t, runner, all)
	return l
}

// server accepts connections and returns its address.
func server(t *testing.T, network, address string) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, listener.Close()) })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_ = connection.Close()
		}
	}()
	return listener.Addr().String()
}

func (l *lair) argument(t *testing.T) string {
	t.Helper()
	argument, err := json.Marshal(l.loot)
	require.NoError(t, err)
	return string(argument)
}

// results returns what the thief printed.
func results(t *testing.T, output []byte) map[string]string {
	t.Helper()
	var found map[string]string
	require.NoError(t, json.Unmarshal(output, &found), "%s", output)
	return found
}

// A compromised tool can do nothing but its work. Run like any other program of the worker, it reaches everything.
func TestACagedToolReachesNothingButWhatItNeeds(t *testing.T) {
	if err := cage.Lacking(); err != nil {
		t.Skip(err)
	}
	l := newLair(t)
	output, trouble := l.session.Run(t.Context(), fdbtool.Status, []string{l.argument(t)})
	require.Nil(t, trouble)
	caged := results(t, output)
	for what := range l.crimes() {
		assert.NotEmpty(t, caged[what], "%s: not prevented", what)
	}
	for what := range l.needs() {
		assert.Empty(t, caged[what], what)
	}

	command := exec.CommandContext(t.Context(), l.thief, l.argument(t))
	command.Dir = filepath.Dir(l.session.ClusterFile())
	command.Env = append(os.Environ(), "FDB_BLOB_CREDENTIALS="+filepath.Join(command.Dir, "credentials.json"))
	output, err := command.Output()
	require.NoError(t, err)
	for what, failure := range results(t, output) {
		if failure != "" && slices.Contains(optional, what) {
			t.Logf("%s: this machine does not have it (%s)", what, failure)
			continue
		}
		assert.Empty(t, failure, "%s: the cage makes no difference", what)
	}
}
