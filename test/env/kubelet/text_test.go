package kubelet

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestMountPathsAreReplacedOnlyAsAWhole(t *testing.T) {
	places := newMounts(
		mount{inside: "/data", host: "/tmp/h/data"}, mount{inside: "/data/keys/", host: "/tmp/h/keys"},
		mount{inside: "/tmp", host: "/tmp/h/tmp"},
	)
	for name, row := range map[string]struct{ text, want string }{
		"the path alone":                      {"/data", "/tmp/h/data"},
		"a file in it":                        {"--log=/data/a.log", "--log=/tmp/h/data/a.log"},
		"a mount within a mount":              {"/data/keys/k:/data/key", "/tmp/h/keys/k:/tmp/h/data/key"},
		"what was put in is not read again":   {"/tmp/x", "/tmp/h/tmp/x"},
		"a URL of a file":                     {"file:///data/backup", "file:///tmp/h/data/backup"},
		"a longer name":                       {"/database /data-old /data.bak", "/database /data-old /data.bak"},
		"within another path":                 {"/var/data", "/var/data"},
		"a path of a URL":                     {"blobstore://a@host/data?bucket=b", "blobstore://a@host/data?bucket=b"},
		"a list with a colon":                 {"/data/a:/data/b", "/tmp/h/data/a:/tmp/h/data/b"},
		"a word of a shell's quoted argument": {`cat "/data/a"`, `cat "/tmp/h/data/a"`},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, row.want, places.replace(row.text)) })
	}
	require.Equal(t, "/tmp/h/keys/a", places.path("/data/keys/../keys/a"))
	require.Equal(t, "/database", places.path("/database"))
}

func TestVariablesAreExpandedAsInKubernetes(t *testing.T) {
	env := environment{{name: "A", value: "1"}, {name: "B", value: "two"}, {name: "A", value: "last"}}
	for name, row := range map[string]struct{ text, want string }{
		"a variable":                {"x-$(A)-$(B)", "x-last-two"},
		"an unknown one stays":      {"$(C) $(A)", "$(C) last"},
		"two dollars are one":       {"$$(A) $$$(A)", "$(A) $last"},
		"a dollar alone stays":      {"5$ $A ${A} $", "5$ $A ${A} $"},
		"no end, no variable":       {"$(A", "$(A"},
		"a shell's own is not ours": {"echo $HOME", "echo $HOME"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, row.want, env.expand(row.text)) })
	}
}

func TestImagesAreFoundByTheirNames(t *testing.T) {
	bin := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(bin, "7.3"), 0o755))
	registry := &images{
		known: map[string]Image{"tool": {Bin: "any"}, "tool:2": {Bin: "second"}}, missing: map[string]bool{},
		resolve: FDBImages(bin),
	}
	for name, row := range map[string]struct{ image, bin string }{
		"without a tag":                         {"tool", "any"},
		"the tag is nearer than the name":       {"tool:2", "second"},
		"another tag":                           {"tool:3", "any"},
		"a registry with a port":                {"localhost:5000/lab/tool:2", "second"},
		"a digest":                              {"tool:2@sha256:abc", "second"},
		"FoundationDB's tools by version":       {"foundationdb/foundationdb:7.3.48", filepath.Join(bin, "7.3")},
		"the monitor has the tools too":         {"docker.io/foundationdb/fdb-kubernetes-monitor:7.3.48", filepath.Join(bin, "7.3")},
		"the sidecar's version has an appendix": {"foundationdb/foundationdb-kubernetes-sidecar:7.3.48-1", filepath.Join(bin, "7.3")},
	} {
		t.Run(name, func(t *testing.T) {
			image, err := registry.find(row.image)
			require.NoError(t, err)
			require.Equal(t, row.bin, image.Bin)
		})
	}
	_, err := registry.find("foundationdb/foundationdb:7.1.5")
	require.ErrorContains(t, err, "pull foundationdb/foundationdb:7.1.5: manifest of 7.1.5 not found")
	_, err = registry.find("foundationdb/foundationdb:latest")
	require.ErrorContains(t, err, `"latest" is no version of FoundationDB`)
	_, err = registry.find("toolbox")
	require.ErrorContains(t, err, "toolbox is no image of FoundationDB")

	k := &Kubelet{images: registry}
	k.RemoveImage("tool:2")
	_, err = registry.find("tool:2")
	require.ErrorContains(t, err, "pull tool:2: it was removed")
	k.SetImage("tool:2", Image{})
	_, err = registry.find("tool:2")
	require.NoError(t, err)
}

func TestContainerCommandGoesBeforeTheImages(t *testing.T) {
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "tool"), []byte("#!/bin/sh\n"), 0o755))
	image := Image{Command: []string{"tool"}, Args: []string{"serve"}, Bin: bin}
	for name, row := range map[string]struct {
		container corev1.Container
		want      []string
	}{
		"the image's own":            {corev1.Container{}, []string{filepath.Join(bin, "tool"), "serve"}},
		"other arguments":            {corev1.Container{Args: []string{"$(X)"}}, []string{filepath.Join(bin, "tool"), "/host/x"}},
		"another command":            {corev1.Container{Command: []string{"tool"}}, []string{filepath.Join(bin, "tool")}},
		"with the container's path":  {corev1.Container{Command: []string{"/usr/bin/tool"}}, []string{filepath.Join(bin, "tool")}},
		"a program of the machine's": {corev1.Container{Command: []string{"/bin/sh", "-c"}}, []string{"/bin/sh", "-c"}},
	} {
		t.Run(name, func(t *testing.T) {
			places := newMounts(mount{inside: "/in", host: "/host"})
			p, err := image.program(&row.container, environment{{name: "X", value: "/in/x"}}, places)
			require.NoError(t, err)
			require.Equal(t, row.want, append([]string{p.path}, p.args...))
		})
	}
	_, err := Image{}.program(&corev1.Container{}, nil, nil)
	require.EqualError(t, err, "no command specified")
}

func TestSidecarCopiesWhatItMust(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(in, "fdb.cluster"), []byte("a:b@c"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(in, "empty"), nil, 0o600))
	places := newMounts(mount{inside: "/var/input-files", host: in}, mount{inside: "/out", host: out})
	call := func(args ...string) (int, string) {
		var output bytes.Buffer
		code := copyFDBFiles(context.Background(), ImageCall{Args: args, Output: &output, Path: places.path})
		return code, output.String()
	}
	code, said := call("--copy-file", "fdb.cluster", "--require-not-empty", "fdb.cluster", "--mode", "init", "--output-dir=/out")
	require.Zero(t, code, said)
	content, err := os.ReadFile(filepath.Join(out, "fdb.cluster"))
	require.NoError(t, err)
	require.Equal(t, "a:b@c", string(content))

	for name, row := range map[string]struct {
		args []string
		want string
	}{
		"an empty file":       {[]string{"--copy-file", "empty", "--require-not-empty", "empty", "--init-mode"}, "copy empty: the file is empty"},
		"a missing file":      {[]string{"--copy-file", "other", "--init-mode"}, "copy other: open"},
		"not the init mode":   {[]string{"--copy-file", "fdb.cluster"}, "only the init mode is known here"},
		"an unknown argument": {[]string{"--surprise", "x"}, "unknown argument --surprise"},
		"a value missing":     {[]string{"--copy-file"}, "--copy-file needs a value"},
	} {
		t.Run(name, func(t *testing.T) {
			code, said := call(row.args...)
			require.Equal(t, 1, code)
			require.Contains(t, said, row.want)
		})
	}
}
