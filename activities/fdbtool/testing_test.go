package fdbtool_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/activities/fdbtool"
	"holdfast.dev/holdfast/k8s/eventually"
)

const (
	connection = "lab:abc123@127.0.0.1:4500"
	// patience is how long a test waits for an event; no result depends on it.
	patience = time.Minute
	secret   = `s3cr3t/+"\key`
	// file is a credentials file; its secret is the one above, as JSON writes it.
	file = `{"accounts":{"lab@127.0.0.1":{"secret":"s3cr3t/+\"\\key","token":"t0ken-of-lab"},"eve@h:9000":{"secret":"xis"}}}`
)

// shell are the paths that scripts need in a cage besides those of every program.
var shell = []string{"/bin", "/usr/bin", "/dev/zero"}

// tool writes a shell script as the fdbbackup of version 7.3 and returns a runner for it.
func tool(t *testing.T, lines ...string) *fdbtool.Runner {
	t.Helper()
	runner := &fdbtool.Runner{BinDir: t.TempDir(), TempDir: t.TempDir(), Folders: shell}
	lay(t, runner.BinDir, "#!/bin/sh\n"+strings.Join(lines, "\n")+"\n")
	t.Cleanup(func() { assert.NoError(t, runner.Close()) })
	return runner
}

func lay(t *testing.T, binDir, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(binDir, "7.3"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(binDir, "7.3", "fdbbackup"), []byte(content), 0o755))
}

func access() fdbtool.Access {
	return fdbtool.Access{ConnectionString: connection, Version: "7.3.48", Credentials: []byte(file)}
}

func open(t *testing.T, runner *fdbtool.Runner, access fdbtool.Access) *fdbtool.Session {
	t.Helper()
	session, trouble, err := runner.Open(access)
	require.NoError(t, err)
	require.Nil(t, trouble)
	t.Cleanup(func() { assert.NoError(t, session.Close()) })
	return session
}

// pids reads the process IDs that a script has written, one in each file.
func pids(t *testing.T, files ...string) []int {
	t.Helper()
	var found []int
	for _, name := range files {
		var pid int
		eventually.Succeeds(t, patience, func() error {
			content, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			if !strings.HasSuffix(string(content), "\n") {
				return fmt.Errorf("%s is not written to its end", name)
			}
			_, err = fmt.Sscan(string(content), &pid)
			return err
		})
		found = append(found, pid)
	}
	return found
}

// requireGone waits until processes have ended. A zombie counts as ended.
func requireGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		eventually.IsTrue(t, patience, fmt.Sprintf("process %d has ended", pid), func() bool {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err != nil {
				return true
			}
			_, state, _ := strings.Cut(string(stat), ") ")
			return strings.HasPrefix(state, "Z")
		})
	}
}
