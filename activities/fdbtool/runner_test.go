package fdbtool_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/activities/fdbtool"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestToolIsThatOfTheClustersVersion(t *testing.T) {
	cases := map[string]struct {
		version string
		prepare func(t *testing.T, r *fdbtool.Runner)
		says    string // empty: it is found
	}{
		"another patch release":    {version: "7.3.99"},
		"a release to come":        {version: "7.3.0-rc1"},
		"a version without tools":  {version: "7.1.63", says: "/7.1/fdbbackup (--fdb-bin-dir)"},
		"a way out of the folder":  {version: "../../bin", says: "is not a version"},
		"a way out at the end":     {version: "7.3.48/../../../bin", says: "is not a version"},
		"a line more":              {version: "7.3.48\n", says: "is not a version"},
		"two numbers":              {version: "7.3", says: "is not a version"},
		"none":                     {version: "", says: "is not a version"},
		"a worker without tools":   {"7.3.48", func(_ *testing.T, r *fdbtool.Runner) { r.BinDir = "" }, "start it with --fdb-bin-dir"},
		"a folder in their place":  {"7.3.48", folderInPlace, "is not an executable file"},
		"a file that cannot run":   {"7.3.48", notExecutable, "is not an executable file"},
		"a folder, named relative": {"7.3.48", relative, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			runner := tool(t, "exit 0")
			if c.prepare != nil {
				c.prepare(t, runner)
			}
			all := access()
			all.Version = c.version
			session, trouble, err := runner.Open(all)
			require.NoError(t, err)
			if c.says != "" {
				require.NotNil(t, trouble)
				assert.Equal(t, contract.FDBClassToolMissing, trouble.Class)
				assert.Contains(t, trouble.Message, c.says)
				return
			}
			require.Nil(t, trouble)
			_, trouble = session.Run(t.Context(), fdbtool.Status, []string{"status"})
			assert.Nil(t, trouble)
			require.NoError(t, session.Close())
		})
	}
}

func folderInPlace(t *testing.T, r *fdbtool.Runner) {
	t.Helper()
	path := filepath.Join(r.BinDir, "7.3", "fdbbackup")
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o755))
}

func notExecutable(t *testing.T, r *fdbtool.Runner) {
	t.Helper()
	require.NoError(t, os.Chmod(filepath.Join(r.BinDir, "7.3", "fdbbackup"), 0o644))
}

func relative(t *testing.T, r *fdbtool.Runner) {
	t.Helper()
	t.Chdir(filepath.Dir(r.BinDir))
	r.BinDir = filepath.Base(r.BinDir)
}

func TestToolThatIsNoProgramIsMissing(t *testing.T) {
	runner := tool(t)
	lay(t, runner.BinDir, "\x7fELF no more")
	_, trouble := open(t, runner, access()).Run(t.Context(), fdbtool.Status, []string{"status"})
	require.NotNil(t, trouble)
	assert.Equal(t, contract.FDBClassToolMissing, trouble.Class)
	assert.Contains(t, trouble.Message, "cannot be run")
}

func TestConnectionStringIsOneLine(t *testing.T) {
	for name, text := range map[string]string{
		"none": "", "a second line": connection + "\nother:id@10.0.0.1:4500", "a blank": "lab:abc @127.0.0.1:4500",
		"a null": "lab:abc\x00@127.0.0.1:4500",
	} {
		t.Run(name, func(t *testing.T) {
			all := access()
			all.ConnectionString = text
			session, trouble, err := tool(t, "exit 0").Open(all)
			require.NoError(t, err)
			require.NotNil(t, trouble)
			assert.Nil(t, session)
			assert.Equal(t, contract.FDBClassClusterFile, trouble.Class)
		})
	}
}

func TestCharactersOfShellsInAConnectionStringAreOnlyText(t *testing.T) {
	all := access()
	all.ConnectionString = "lab:$(touch${IFS}/tmp/x);`id`@127.0.0.1:4500"
	session := open(t, tool(t, `while read -r line; do printf '%s' "$line"; done <"$3"`), all)
	output, trouble := session.Run(t.Context(), fdbtool.Status, []string{"status"})
	require.Nil(t, trouble)
	assert.Equal(t, all.ConnectionString, string(output))
}

func TestFolderThatWasClearedIsRecreated(t *testing.T) {
	runner := tool(t, "exit 0")
	require.NoError(t, runner.Prepare())
	entries, err := os.ReadDir(runner.TempDir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.NoError(t, os.RemoveAll(filepath.Join(runner.TempDir, entries[0].Name())))
	_, trouble := open(t, runner, access()).Run(t.Context(), fdbtool.Status, []string{"status"})
	assert.Nil(t, trouble)
}

func TestFoldersOfLivingWorkersStay(t *testing.T) {
	runner := tool(t, "exit 0")
	session := open(t, runner, access())
	other := &fdbtool.Runner{BinDir: runner.BinDir, TempDir: runner.TempDir}
	require.NoError(t, other.Prepare())
	assert.FileExists(t, session.ClusterFile())
	require.NoError(t, other.Close())
	assert.FileExists(t, session.ClusterFile())
}

func TestTemporaryFolderThatToolsCannotName(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "a:b")
	require.NoError(t, os.Mkdir(parent, 0o700))
	_, _, err := (&fdbtool.Runner{BinDir: tool(t, "exit 0").BinDir, TempDir: parent}).Open(access())
	require.ErrorContains(t, err, "colon")
}

// Variables with which a test starts its own program as a worker.
const (
	envWorkerBin  = "HOLDFAST_TEST_WORKER_BIN"
	envWorkerTemp = "HOLDFAST_TEST_WORKER_TEMP"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "fdbbackup" {
		os.Exit(steal(os.Args[1]))
	}
	if bin := os.Getenv(envWorkerBin); bin != "" {
		os.Exit(work(bin, os.Getenv(envWorkerTemp)))
	}
	os.Exit(m.Run())
}

// work runs a tool that never ends, in a worker that is going to be killed.
func work(bin, temp string) int {
	runner := &fdbtool.Runner{BinDir: bin, TempDir: temp, Folders: shell}
	session, trouble, err := runner.Open(access())
	if err != nil || trouble != nil {
		return 1
	}
	_, _ = os.Stdout.WriteString(filepath.Dir(session.ClusterFile()) + "\n")
	session.Run(context.Background(), fdbtool.Describe, []string{"describe"})
	return 1
}

func TestNothingOfAKilledWorkerStays(t *testing.T) {
	runner := tool(t, "echo $$ >own", "exec sleep 1000")
	worker := exec.CommandContext(t.Context(), os.Args[0])
	worker.Env = append(os.Environ(), envWorkerBin+"="+runner.BinDir, envWorkerTemp+"="+runner.TempDir)
	output, err := worker.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, worker.Start())
	folder, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	folder = folder[:len(folder)-1]
	started := pids(t, filepath.Join(folder, "own"))

	require.NoError(t, worker.Process.Kill())
	require.Error(t, worker.Wait())
	requireGone(t, started)
	assert.FileExists(t, filepath.Join(folder, "credentials.json"), "nobody was there to remove it")

	require.NoError(t, runner.Prepare())
	assert.NoDirExists(t, filepath.Dir(folder))
	entries, err := os.ReadDir(runner.TempDir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "only the new worker's")
}

func TestFolderOfAWorkerKilledWhileMakingItIsRemovedInTheEnd(t *testing.T) {
	runner := tool(t, "exit 0")
	for name, age := range map[string]time.Duration{".holdfast-fdb-new-1": 2 * time.Hour, ".holdfast-fdb-new-2": 0} {
		path := filepath.Join(runner.TempDir, name)
		require.NoError(t, os.Mkdir(path, 0o700))
		require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(-age)))
	}
	require.NoError(t, runner.Prepare())
	assert.NoDirExists(t, filepath.Join(runner.TempDir, ".holdfast-fdb-new-1"))
	assert.DirExists(t, filepath.Join(runner.TempDir, ".holdfast-fdb-new-2"), "it may be on its way")
}
