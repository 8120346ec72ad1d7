package tools

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// program writes an executable that prints its arguments and a text.
func program(t *testing.T, folder, name, prints string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(folder, 0o755))
	path := filepath.Join(folder, name)
	script := "#!/bin/sh\n[ \"$*\" = --version ] && echo '" + prints + "'\n"
	require.NoError(t, os.WriteFile(path, []byte(script), 0o755)) //nolint:gosec // must be executable
	return path
}

func TestOnlyTheWantedVersionIsUsed(t *testing.T) {
	for prints, want := range map[string]bool{
		"etcd Version: 3.7.3":                    true,
		"Kubernetes v3.7.3":                      true,
		"temporal version 3.7.3 (Server 1.29.0)": true,
		"temporal version 1.5.0 (Server 3.7.3)":  false,
		"Kubernetes v3.7.3+k3s1":                 false,
		"etcd Version: 3.7.30":                   false,
		"etcd Version: 3.7.3-rc.1":               false,
		"no version":                             false,
		"13.7.3":                                 false,
	} {
		path := program(t, t.TempDir(), "etcd", prints)
		assert.Equal(t, want, versionOf(t.Context(), path, []string{"--version"}) == "3.7.3", prints)
		assert.Empty(t, versionOf(t.Context(), path, []string{"version"}), "it fails")
	}
}

func TestAProgramAtHandIsFoundWhereOthersPutIt(t *testing.T) {
	assets, data, path := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	t.Setenv("XDG_DATA_HOME", data)
	t.Setenv("PATH", path+":/bin:/usr/bin")
	wanted := target{
		tool: tool{name: "etcd", probe: []string{"--version"}}, version: "v3.7.3", path: filepath.Join(t.TempDir(), "etcd"),
	}
	envtest := filepath.Join(data, "kubebuilder-envtest", "k8s", "1.36.3-"+runtime.GOOS+"-"+runtime.GOARCH)
	for _, step := range []struct{ folder, prints string }{
		{path, "etcd Version: 3.7.3"}, {envtest, "etcd Version: 3.7.3"}, {assets, "etcd Version: 3.7.2"}, {assets, "etcd Version: 3.7.3"},
	} {
		made := program(t, step.folder, "etcd", step.prints)
		targets, said := []target{wanted}, bytes.Buffer{}
		atHand(t.Context(), targets, &said)
		if step.prints == "etcd Version: 3.7.2" {
			assert.NotEqual(t, made, targets[0].path)
			continue
		}
		assert.Equal(t, made, targets[0].path)
		assert.Contains(t, said.String(), "etcd v3.7.3: "+made+" is used")
	}
	t.Setenv("HOLDFAST_TOOLS", "build")
	targets := []target{wanted}
	atHand(t.Context(), targets, io.Discard)
	assert.Equal(t, []target{wanted}, targets)
}
