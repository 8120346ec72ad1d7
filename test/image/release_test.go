package image_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// A clone is released twice: the second has the same checksums, and they are those of the files.
func TestAReleaseIsTheSameTwice(t *testing.T) {
	sample.InLong(t, "TestAnImageIsBuiltTwiceAsTheSameBytes")
	root, err := tools.Root()
	require.NoError(t, err)
	clone := filepath.Join(t.TempDir(), "clone")
	run := func(dir, program string, args ...string) string {
		command := exec.CommandContext(t.Context(), program, args...)
		command.Dir = dir
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	run(root, "git", "clone", "--quiet", root, clone)
	base := "BASE=" + pushBase(t, both)
	run(clone, "make", "release", "RELEASE=v9.8.7", base)
	released := filepath.Join(clone, "bin", "release")
	sums := run(released, "cat", "SHA256SUMS")
	for _, file := range []string{
		"holdfast.oci.tar", "holdfast-linux-arm64.spdx.json", "holdfast-linux-amd64.provenance.json", "holdfast-foundationdb.oci.tar",
		"kubectl-holdfast-darwin-arm64.tar.gz", "holdfast.yaml", "holdfast-9.8.7.tgz", "holdfast-v9.8.7.tar.gz",
	} {
		assert.Contains(t, sums, "  "+file+"\n")
	}
	run(released, "sha256sum", "--check", "--strict", "SHA256SUMS")
	helm, err := tools.Path(t.Context(), tools.Helm)
	require.NoError(t, err)
	assert.Contains(t, run(released, helm, "show", "chart", "holdfast-9.8.7.tgz"), "appVersion: v9.8.7\n")
	run(clone, "make", "release", "RELEASE=v9.8.7", base)
	assert.Equal(t, sums, run(released, "cat", "SHA256SUMS"))

	require.NoError(t, os.WriteFile(filepath.Join(clone, "README.md"), nil, 0o600))
	refused := exec.CommandContext(t.Context(), "make", "release", "RELEASE=v9.8.7", base)
	refused.Dir = clone
	out, err := refused.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "files differ from the commit")
	assert.Equal(t, sums, run(released, "cat", "SHA256SUMS"), "the last release stays")
}
