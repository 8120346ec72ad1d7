package plugin_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/test/tools/plugin"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

func release(t *testing.T) plugin.Release {
	t.Helper()
	root, err := tools.Root()
	require.NoError(t, err)
	return plugin.Release{Root: root, Version: "v0.1.0", URL: "https://releases.example.com/holdfast/v0.1.0"}
}

// unpack returns the files of an archive.
func unpack(t *testing.T, archive []byte, dir string) (names []string) {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	require.NoError(t, err)
	files := tar.NewReader(unzipped)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		require.NoError(t, err)
		content, err := io.ReadAll(files)
		require.NoError(t, err)
		names = append(names, header.Name)
		require.NoError(t, os.WriteFile(filepath.Join(dir, header.Name), content, header.FileInfo().Mode()))
	}
}

// The archive of this machine's platform, whose plugin kubectl finds, and completes.
func TestTheArchiveHoldsThePlugin(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles the plugin (-short)")
	}
	r, here := release(t), plugin.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH}
	archive, err := r.Build(t.Context(), here)
	require.NoError(t, err)
	dir := t.TempDir()
	assert.Equal(t, []string{"LICENSE", plugin.Binary, plugin.Completion}, unpack(t, archive, dir))
	license, err := os.ReadFile(filepath.Join(dir, "LICENSE"))
	require.NoError(t, err)
	assert.Contains(t, string(license), "Apache License")

	kubectl, err := tools.Path(t.Context(), tools.Kubectl)
	require.NoError(t, err)
	path := []string{"PATH=" + dir + ":" + filepath.Dir(kubectl) + ":" + os.Getenv("PATH"), "HOME=" + dir}
	run := func(program string, args ...string) string {
		command := exec.CommandContext(t.Context(), program, args...)
		command.Env = path
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	assert.Equal(t, "kubectl holdfast version v0.1.0\n", run(kubectl, "holdfast", "--version"))
	assert.Contains(t, run(kubectl, "plugin", "list"), filepath.Join(dir, plugin.Binary))
	require.NoError(t, os.Symlink(kubectl, filepath.Join(dir, "kubectl")))
	assert.Contains(t, run(filepath.Join(dir, plugin.Completion), "backup", "cr"), "create\t")
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		assert.NotEmpty(t, run(kubectl, "holdfast", "completion", shell))
	}
	again, err := r.Build(t.Context(), here)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(archive, again), "the same bytes")
}

// As people call it.
func TestMakePacksAllPlatforms(t *testing.T) {
	sample.InLong(t, "TestTheArchiveHoldsThePlugin", "TestTheManifestNamesAllArchives")
	root := release(t).Root
	command := exec.CommandContext(t.Context(), "make", "plugin", "RELEASE=v9.8.7", "RELEASES=https://releases.example.com")
	command.Dir = root
	said, err := command.CombinedOutput()
	require.NoError(t, err, "%s", said)
	for _, platform := range plugin.Platforms {
		assert.FileExists(t, filepath.Join(root, "bin", "plugin", platform.Archive()))
		assert.Contains(t, string(said), platform.Archive())
	}
	manifest, err := os.ReadFile(filepath.Join(root, "bin", "plugin", plugin.Manifest))
	require.NoError(t, err)
	assert.Contains(t, string(manifest), "https://releases.example.com/v9.8.7/kubectl-holdfast-darwin-arm64.tar.gz")
}

// What krew wants of a manifest (https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/).
func TestTheManifestNamesAllArchives(t *testing.T) {
	t.Parallel()
	sums := map[plugin.Platform]string{}
	for i, platform := range plugin.Platforms {
		sums[platform] = strings.Repeat(fmt.Sprint(i), 64)
	}
	content, err := release(t).Manifest(sums)
	require.NoError(t, err)
	var manifest struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             struct {
			Version, Homepage, ShortDescription, Description, Caveats string
			Platforms                                                 []struct {
				URI, Sha256, Bin string
				Selector         struct{ MatchLabels map[string]string }
				Files            []struct{ From, To string }
			}
		}
	}
	require.NoError(t, yaml.UnmarshalStrict(content, &manifest))
	assert.Equal(t, "krew.googlecontainertools.github.com/v1alpha2 Plugin holdfast",
		strings.Join([]string{manifest.APIVersion, manifest.Kind, manifest.Metadata.Name}, " "))
	assert.Regexp(t, `^v\d+\.\d+\.\d+`, manifest.Spec.Version)
	assert.NotEmpty(t, manifest.Spec.ShortDescription)
	require.Len(t, manifest.Spec.Platforms, 4)
	for i, platform := range plugin.Platforms {
		got := manifest.Spec.Platforms[i]
		assert.Equal(t, map[string]string{"os": platform.OS, "arch": platform.Arch}, got.Selector.MatchLabels)
		assert.Equal(t, "https://releases.example.com/holdfast/v0.1.0/"+platform.Archive(), got.URI)
		assert.Equal(t, sums[platform], got.Sha256)
		assert.Equal(t, plugin.Binary, got.Bin)
		assert.Len(t, got.Files, 3)
	}
}
