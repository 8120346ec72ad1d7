package fdbtool_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/activities/fdbtool"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestEachToolGetsTheClusterFileInItsWay(t *testing.T) {
	runner := tool(t, `echo "fdbbackup $*"`)
	for _, name := range []string{"fdbrestore", "fdbcli"} {
		path := filepath.Join(runner.BinDir, "7.3", name)
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho \""+name+" $*\"\n"), 0o755))
	}
	session := open(t, runner, access())
	file := session.ClusterFile()
	for operation, want := range map[fdbtool.Operation]string{
		fdbtool.Describe:       "fdbbackup x -C " + file,
		fdbtool.Contents:       "fdbbackup x",
		fdbtool.RestoreStatus:  "fdbrestore x --dest-cluster-file " + file,
		fdbtool.RestoreStart:   "fdbrestore x --dest-cluster-file " + file,
		fdbtool.RestoreAbort:   "fdbrestore x --dest-cluster-file " + file,
		fdbtool.RestoreVersion: "fdbrestore x --dest-cluster-file " + file + " --orig-cluster-file " + file,
		fdbtool.DatabaseStatus: "fdbcli x -C " + file,
		fdbtool.RangeKeys:      "fdbcli x -C " + file,
	} {
		output, trouble := session.Run(t.Context(), operation, []string{"x"})
		require.Nil(t, trouble, operation)
		assert.Equal(t, want+"\n", string(output))
	}
	_, trouble := session.Run(t.Context(), fdbtool.RestoreStart, []string{"start", "-r", "file:///etc"})
	require.NotNil(t, trouble)
	assert.Equal(t, contract.FDBClassBadURL, trouble.Class)
}

func TestToolBesideFdbbackupThatIsMissingIsNamed(t *testing.T) {
	session := open(t, tool(t, "exit 0"), access())
	_, trouble := session.Run(t.Context(), fdbtool.RestoreStatus, []string{"status"})
	require.NotNil(t, trouble)
	assert.Equal(t, contract.FDBClassToolMissing, trouble.Class)
	assert.Contains(t, trouble.Message, "no fdbrestore for FoundationDB 7.3")
}

func TestRestoreStartFitsIntoACommand(t *testing.T) {
	reads := 2*(fdbtool.StatusLimit+fdbtool.QueryLimit) + fdbtool.CheckReserve
	assert.LessOrEqual(t, fdbtool.RestoreStartLimit+reads, contract.FDBRestoreRun)
	assert.GreaterOrEqual(t, fdbtool.RestoreStartLimit, fdbtool.DescribeLimit, "what can be described can be restored")
	assert.Greater(t, fdbtool.QueryLimit, fdbtool.AnswerLimit)
}
