package image_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// signer runs cosign in a folder.
type signer struct{ cosign, folder string }

func newSigner(t *testing.T) signer {
	t.Helper()
	cosign, err := tools.Path(t.Context(), tools.Cosign)
	require.NoError(t, err)
	return signer{cosign, t.TempDir()}
}

func (s signer) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), s.cosign, args...)
	command.Dir = s.folder
	// It would ask the Internet for Sigstore's keys.
	command.Env = append(os.Environ(), "COSIGN_PASSWORD=of-the-test", "HOME="+s.folder, "HTTPS_PROXY=http://127.0.0.1:1")
	out, err := command.CombinedOutput()
	t.Logf("cosign %q\n%s", args, out)
	return string(out), err
}

func (s signer) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.run(t, args...)
	require.NoError(t, err, out)
	return out
}

// documented are the commands of cosign in a page, without the word cosign.
func documented(t *testing.T, page string) (commands [][]string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", page))
	require.NoError(t, err)
	for _, match := range regexp.MustCompile("(?m)(?:^|`)cosign ([^`\n]+)").FindAllStringSubmatch(string(content), -1) {
		commands = append(commands, strings.Fields(match[1]))
	}
	return commands
}

// The commands of the documentation, with a registry on loopback.
func TestAnImageIsSignedAndVerified(t *testing.T) {
	sample.InLong(t, "TestAnImageIsBuiltTwiceAsTheSameBytes")
	s := newSigner(t)
	built, _ := build(t, "")
	repository, err := name.NewRepository(serveRegistry(t) + "/holdfast")
	require.NoError(t, err)
	index := opened(t, built)
	require.NoError(t, remote.WriteIndex(repository.Tag("v9.8.7"), index))
	signed := repository.Digest(built.Digest).String()
	s.must(t, "generate-key-pair", "--output-key-prefix", "other")

	commands := documented(t, "docs/install.md")
	require.Len(t, commands, 4)
	for _, args := range commands {
		if last := len(args) - 1; strings.HasSuffix(args[last], "@sha256:DIGEST") {
			args[last] = signed
			args = append(args, "--allow-http-registry")
		}
		s.must(t, args...)
	}
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	verify := func(key string, digest v1.Hash) (string, error) {
		image := repository.Digest(digest.String()).String()
		return s.run(t, "verify", "--key", key, "--insecure-ignore-tlog", "--allow-http-registry", image)
	}
	one := manifest.Manifests[0].Digest
	out, err := verify("cosign.pub", one)
	require.NoError(t, err, "recursive: each platform's image, too")
	assert.Contains(t, out, one.String())
	_, err = verify("other.pub", one)
	require.Error(t, err, "another's key")
}

func TestChecksumsAreSignedAndVerified(t *testing.T) {
	sample.InLong(t, "TestAnImageIsBuiltTwiceAsTheSameBytes")
	s := newSigner(t)
	sums := filepath.Join(s.folder, "SHA256SUMS")
	require.NoError(t, os.WriteFile(sums, []byte("0000  holdfast.oci.tar\n"), 0o600))
	s.must(t, "generate-key-pair")
	s.must(t, "signing-config", "create", "--out", "no-services.json")
	commands := documented(t, "CONTRIBUTING.md")
	require.Len(t, commands, 1)
	s.must(t, append(commands[0], "--yes")...)
	verify := []string{"verify-blob", "--key", "cosign.pub", "--bundle", "SHA256SUMS.sigstore.json", "--insecure-ignore-tlog", "SHA256SUMS"}
	s.must(t, verify...)
	require.NoError(t, os.WriteFile(sums, []byte("1111  holdfast.oci.tar\n"), 0o600))
	_, err := s.run(t, verify...)
	require.Error(t, err, "changed since")
}
