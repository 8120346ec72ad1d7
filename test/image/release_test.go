package image_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// checkout is a clone in which a release is made.
type checkout struct{ folder string }

func clone(t *testing.T) checkout {
	t.Helper()
	root, err := tools.Root()
	require.NoError(t, err)
	c := checkout{filepath.Join(t.TempDir(), "clone")}
	out, err := exec.CommandContext(t.Context(), "git", "clone", "--quiet", root, c.folder).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return c
}

// run runs a program in a folder of the clone, with more in its environment.
func (c checkout) run(t *testing.T, folder string, environment []string, program string, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	command.Dir, command.Env = filepath.Join(c.folder, folder), append(os.Environ(), environment...)
	out, err := command.CombinedOutput()
	return string(out), err
}

func (c checkout) must(t *testing.T, folder, program string, args ...string) string {
	t.Helper()
	out, err := c.run(t, folder, nil, program, args...)
	require.NoError(t, err, out)
	return out
}

// Two people make the same release, in different folders and environments: the checksums are the same, and those of the files.
func TestAReleaseIsTheSameTwice(t *testing.T) {
	sample.InLong(t, "TestAnImageIsBuiltTwiceAsTheSameBytes", "TestAReleaseIsOfATagAndOfABaseByDigest")
	tag := pushBase(t, both)
	ref, err := name.ParseReference(tag)
	require.NoError(t, err)
	found, err := remote.Get(ref)
	require.NoError(t, err)
	var sums []string
	for _, environment := range [][]string{
		nil, {"GOAMD64=v3", "LC_ALL=en_US.UTF-8", "TZ=Asia/Tokyo", "VERSION=other", "RELEASE=v0.0.1", "BASE=other"},
	} {
		c := clone(t)
		c.must(t, ".", "git", "tag", "v9.8.7")
		out, err := c.run(t, ".", environment, "make", "release", "RELEASE=v9.8.7", "BASE="+tag+"@"+found.Digest.String())
		require.NoError(t, err, out)
		const released = "bin/release"
		c.must(t, released, "sha256sum", "--check", "--strict", "SHA256SUMS")
		sums = append(sums, c.must(t, released, "cat", "SHA256SUMS"))
		helm, err := tools.Path(t.Context(), tools.Helm)
		require.NoError(t, err)
		assert.Contains(t, c.must(t, released, helm, "show", "chart", "holdfast-9.8.7.tgz"), "appVersion: v9.8.7\n")
	}
	for _, file := range []string{
		"holdfast.oci.tar", "holdfast-linux-arm64.spdx.json", "holdfast-linux-amd64.provenance.json", "holdfast-foundationdb.oci.tar",
		"kubectl-holdfast-darwin-arm64.tar.gz", "holdfast.yaml", "holdfast-9.8.7.tgz", "holdfast-v9.8.7.tar.gz",
	} {
		assert.Contains(t, sums[0], "  "+file+"\n")
	}
	assert.Equal(t, sums[0], sums[1])
}

func TestAReleaseIsOfATagAndOfABaseByDigest(t *testing.T) {
	if testing.Short() {
		t.Skip("it clones the project (-short)")
	}
	c := clone(t)
	refused := func(want string) {
		t.Helper()
		out, err := c.run(t, ".", nil, "make", "release", "RELEASE=v9.8.7")
		require.Error(t, err)
		assert.Contains(t, out, want)
		assert.NoFileExists(t, filepath.Join(c.folder, "bin", "release.part"))
	}
	refused("the commit has no tag v9.8.7")
	c.must(t, ".", "git", "tag", "v9.8.7")
	refused("name the base image by a digest")
	require.NoError(t, os.WriteFile(filepath.Join(c.folder, "untracked.go"), nil, 0o600))
	refused("files differ from the commit")
}
