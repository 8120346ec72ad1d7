package env

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStopLeavesTheLogsWhereTheGateWantsThem(t *testing.T) {
	kept := t.TempDir()
	t.Setenv("HOLDFAST_TEST_LOGS", kept)
	e, err := prepare(Options{})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(e.LogDir(), "velero.log"), []byte("the disk is full\n"), 0o600))
	e.Stop()
	e.Stop()
	require.NoDirExists(t, e.Dir())
	content, err := os.ReadFile(filepath.Join(kept, filepath.Base(e.Dir()), "velero.log"))
	require.NoError(t, err)
	require.Equal(t, "the disk is full\n", string(content))
}
