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

// The commands of docs/install.md, with a registry on loopback.
func TestAnImageIsSignedAndVerified(t *testing.T) {
	sample.InLong(t, "TestAnImageIsBuiltTwiceAsTheSameBytes")
	cosign, err := tools.Path(t.Context(), tools.Cosign)
	require.NoError(t, err)
	folder := t.TempDir()
	run := func(args ...string) (string, error) {
		command := exec.CommandContext(t.Context(), cosign, args...)
		command.Dir = folder
		command.Env = append(os.Environ(), "COSIGN_PASSWORD=of-the-test", "HOME="+folder, "HTTPS_PROXY=http://127.0.0.1:1") // it stays here
		out, err := command.CombinedOutput()
		t.Logf("cosign %q\n%s", args, out)
		return string(out), err
	}
	built, _ := build(t, "")
	repository, err := name.NewRepository(serveRegistry(t) + "/holdfast")
	require.NoError(t, err)
	index := opened(t, built)
	require.NoError(t, remote.WriteIndex(repository.Tag("v9.8.7"), index))
	signed := repository.Digest(built.Digest).String()

	for _, pair := range []string{"cosign", "other"} {
		out, err := run("generate-key-pair", "--output-key-prefix", pair)
		require.NoError(t, err, out)
	}
	out, err := run("signing-config", "create", "--out", "no-services.json")
	require.NoError(t, err, out)
	const loopback = "--allow-http-registry"
	out, err = run("sign", "--yes", "--key", "cosign.key", "--signing-config", "no-services.json", "--recursive", loopback, signed)
	require.NoError(t, err, out)
	verify := func(key, image string) (string, error) {
		return run("verify", "--key", key, "--insecure-ignore-tlog", loopback, image)
	}
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	for _, digest := range []string{built.Digest, manifest.Manifests[0].Digest.String()} {
		out, err := verify("cosign.pub", repository.Digest(digest).String())
		require.NoError(t, err, out)
		assert.Contains(t, out, digest)
	}
	_, err = verify("other.pub", signed)
	require.Error(t, err, "another's key")
	info, err := os.Stat(filepath.Join(folder, "cosign.key"))
	require.NoError(t, err)
	assert.Zero(t, info.Mode()&0o077)
}
