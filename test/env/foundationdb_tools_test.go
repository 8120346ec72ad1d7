package env

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// layPrograms makes a folder like one that came through an archive without links.
func layPrograms(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	folder := filepath.Join(dir, fdbRelease)
	require.NoError(t, os.Mkdir(folder, 0o755))
	for name, content := range map[string]string{
		"fdbserver": "#!/bin/sh\n",
		"fdbcli":    "#!/bin/sh\necho 'FoundationDB CLI 7.3 (v7.3.48)'\n",
		"fdbbackup": "#!/bin/sh\nbasename \"$0\"\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o555))
	}
	for _, name := range []string{"fdbrestore", "backup_agent"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte("fdbbackup"), 0o444))
	}
	return dir
}

func TestFoundationDBsProgramsAreLaidByTheirNames(t *testing.T) {
	dir := layPrograms(t)
	t.Setenv("FDB_BIN_DIR", dir)
	programs, err := FindFDBPrograms(t.Context())
	require.NoError(t, err)
	assert.Equal(t, &FDBPrograms{Dir: filepath.Join(dir, "7.3"), Version: "7.3.48"}, programs)
	bin := t.TempDir()
	require.NoError(t, programs.Install(bin))
	for _, name := range []string{"fdbbackup", "fdbrestore", "backup_agent"} {
		said, err := exec.CommandContext(t.Context(), filepath.Join(bin, "7.3", name)).Output()
		require.NoError(t, err)
		assert.Equal(t, name+"\n", string(said))
	}
}

func TestProgramsThatAreNamedMustBeThere(t *testing.T) {
	dir := layPrograms(t)
	require.NoError(t, os.Remove(filepath.Join(dir, "7.3", "fdbserver")))
	t.Setenv("FDB_BIN_DIR", dir)
	_, err := FindFDBPrograms(t.Context())
	require.ErrorContains(t, err, "fdbserver")
}
