package tools

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Only a shallow clone may lack a commit that is asked for: elsewhere the name is wrong, or the history was rewritten.
func TestACommitThatIsNotThereIsExcusedByAShallowCloneAlone(t *testing.T) {
	const unknown = "0123456789012345678901234567890123456789"
	repository := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", append([]string{"-C", repository}, args...)...)
		command.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		var problem bytes.Buffer
		command.Stderr = &problem
		output, err := command.Output()
		require.NoError(t, err, problem.String())
		return strings.TrimSpace(string(output))
	}
	commit := func(message string) string {
		run("commit", "--quiet", "--allow-empty", "--message="+message)
		return run("rev-parse", "HEAD")
	}
	run("init", "--quiet", "--initial-branch=main")
	first := commit("first")
	run("checkout", "--quiet", "-b", "side")
	aside := commit("aside")
	run("checkout", "--quiet", "main")
	last := commit("last")
	shallow := filepath.Join(t.TempDir(), "shallow")
	run("clone", "--quiet", "--depth=1", "file://"+repository, shallow)

	require.NoError(t, checkCommit(t.Context(), repository, aside))
	require.NoError(t, checkAncestor(t.Context(), repository, first))
	require.NoError(t, checkAncestor(t.Context(), shallow, last))
	for title, err := range map[string]error{
		"unknown":            checkCommit(t.Context(), repository, unknown),
		"an unknown root":    checkAncestor(t.Context(), repository, unknown),
		"of another branch":  checkAncestor(t.Context(), repository, aside),
		"without repository": checkCommit(t.Context(), t.TempDir(), first),
	} {
		require.Error(t, err, title)
		require.NotErrorIs(t, err, ErrShallow, title)
	}
	require.ErrorIs(t, checkCommit(t.Context(), shallow, first), ErrShallow)
	require.ErrorIs(t, checkAncestor(t.Context(), shallow, first), ErrShallow)
}
