package image_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/image"
	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// both are the platforms of `make image`.
var both = []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}

// platforms: the gate builds for this machine's, whose packages are compiled already; `make test-long` for both.
func platforms() []v1.Platform {
	if sample.Whole() {
		return both
	}
	return []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}}
}

func build(t *testing.T, base string) (image.Built, image.Source) {
	t.Helper()
	if testing.Short() {
		t.Skip("it links both programs (-short)")
	}
	root, err := tools.Root()
	require.NoError(t, err)
	source, err := image.ReadSource(t.Context(), root)
	require.NoError(t, err)
	built, err := image.Build(t.Context(), image.Options{
		Source: source, Name: "holdfast", Version: "v9.8.7", Platforms: platforms(), Base: base, Into: t.TempDir(),
		Report: func(what string) { t.Log(what) },
	})
	require.NoError(t, err)
	return built, source
}

func TestAnImageIsBuiltTwiceAsTheSameBytes(t *testing.T) {
	built, source := build(t, "")
	again, _ := build(t, "")
	require.Equal(t, built.Digest, again.Digest)
	requireSameBytes(t, built.Archive, again.Archive)
	require.Len(t, built.Documents, 2*len(platforms()))
	for i, document := range built.Documents {
		requireSameBytes(t, document, again.Documents[i])
	}
	index := opened(t, built)
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 2*len(platforms()))
	for i, platform := range platforms() {
		made, attached := manifest.Manifests[2*i], manifest.Manifests[2*i+1]
		assert.Equal(t, platform.Architecture, made.Platform.Architecture)
		assert.Equal(t, made.Digest.String(), attached.Annotations["vnd.docker.reference.digest"])
		one, err := index.Image(made.Digest)
		require.NoError(t, err)
		require.NoError(t, validate.Image(one))
		requireDockerfile(t, one, "")
		config, err := one.ConfigFile()
		require.NoError(t, err)
		assert.Equal(t, source.Revision(), config.Config.Labels["org.opencontainers.image.revision"])
		assert.True(t, config.Created.Equal(source.Time))
		statements, err := index.Image(attached.Digest)
		require.NoError(t, err)
		requireStatements(t, statements, made.Digest, source)
	}
	requireSBOM(t, built.Documents)
}

// serveRegistry serves a registry and returns its host.
func serveRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// pushBase pushes an image for these platforms and returns its reference, by a tag.
func pushBase(t *testing.T, platforms []v1.Platform) string {
	t.Helper()
	reference := serveRegistry(t) + "/distroless/cc-debian12:latest"
	ref, err := name.ParseReference(reference)
	require.NoError(t, err)
	var addenda []mutate.IndexAddendum
	for _, platform := range platforms {
		one, err := random.Image(1024, 2)
		require.NoError(t, err)
		file, err := one.ConfigFile()
		require.NoError(t, err)
		file = file.DeepCopy()
		file.OS, file.Architecture = platform.OS, platform.Architecture
		one, err = mutate.ConfigFile(one, file)
		require.NoError(t, err)
		addenda = append(addenda, mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	index, err := random.Index(1024, 1, 0)
	require.NoError(t, err)
	require.NoError(t, remote.WriteIndex(ref, mutate.AppendManifests(index, addenda...)))
	return reference
}

// The variant with the C library of FoundationDB's tools lies on another image, which comes from a registry.
func TestTheProgramsAreLaidOntoABaseImage(t *testing.T) {
	reference := pushBase(t, platforms())
	built, _ := build(t, reference)
	manifest, err := opened(t, built).IndexManifest()
	require.NoError(t, err)
	one, err := opened(t, built).Image(manifest.Manifests[0].Digest)
	require.NoError(t, err)
	layers, err := one.Layers()
	require.NoError(t, err)
	require.NoError(t, validate.Image(one))
	assert.Len(t, layers, 2+3, "the base's, the license, and one for each program")
	requireDockerfile(t, one, "foundationdb")
	for _, document := range built.Documents {
		content, err := os.ReadFile(document)
		require.NoError(t, err)
		assert.Contains(t, string(content), "pkg:oci/cc-debian12", document)
	}
}

// An image of one platform, or a digest of one, would be a base that starts on no other machine.
func TestABaseImageOfAnotherPlatformIsRefused(t *testing.T) {
	reference := serveRegistry(t) + "/one:latest"
	ref, err := name.ParseReference(reference)
	require.NoError(t, err)
	one, err := random.Image(1024, 1)
	require.NoError(t, err)
	one, err = mutate.ConfigFile(one, &v1.ConfigFile{OS: "linux", Architecture: "s390x"})
	require.NoError(t, err)
	require.NoError(t, remote.Write(ref, one))
	_, err = image.Build(t.Context(), image.Options{
		Name: "holdfast", Platforms: platforms(), Base: reference, Into: t.TempDir(), Report: func(string) {},
	})
	require.ErrorContains(t, err, "is for linux/s390x, not for linux/")
	variant := v1.Platform{OS: "linux", Architecture: "arm", Variant: "v7"}
	_, err = image.Build(t.Context(), image.Options{Platforms: []v1.Platform{variant}, Report: func(string) {}})
	require.ErrorContains(t, err, "without a variant")
}

func TestABaseImageThatIsNotThereIsAnError(t *testing.T) {
	if testing.Short() {
		t.Skip("it asks a registry (-short)")
	}
	into := t.TempDir()
	_, err := image.Build(t.Context(), image.Options{
		Name: "holdfast", Platforms: platforms(), Base: serveRegistry(t) + "/none:latest", Into: into,
		Report: func(string) {},
	})
	require.ErrorContains(t, err, "pull base image ")
	left, err := os.ReadDir(into)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func requireSameBytes(t *testing.T, one, other string) {
	t.Helper()
	a, err := os.ReadFile(one)
	require.NoError(t, err)
	b, err := os.ReadFile(other)
	require.NoError(t, err)
	require.True(t, bytes.Equal(a, b), "%s differs from %s", one, other)
}

// opened unpacks an OCI archive and reads its one index.
func opened(t *testing.T, built image.Built) v1.ImageIndex {
	t.Helper()
	file, err := os.Open(built.Archive)
	require.NoError(t, err)
	defer file.Close()
	folder := t.TempDir()
	for reader := tar.NewReader(file); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		path := filepath.Join(folder, filepath.FromSlash(header.Name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		content, err := io.ReadAll(reader)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, content, 0o600))
	}
	whole, err := layout.ImageIndexFromPath(folder)
	require.NoError(t, err)
	manifest, err := whole.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 1, "programs that read archives want one")
	assert.Equal(t, built.Digest, manifest.Manifests[0].Digest.String())
	assert.NotEmpty(t, manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"])
	index, err := whole.ImageIndex(manifest.Manifests[0].Digest)
	require.NoError(t, err)
	return index
}

func dockerfile(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "deploy", "image", "Dockerfile"))
	require.NoError(t, err)
	return string(content)
}

// requireDockerfile requires what a stage of deploy/image/Dockerfile says; the last one has no name.
func requireDockerfile(t *testing.T, one v1.Image, stage string) {
	t.Helper()
	stages := regexp.MustCompile(`(?m)^FROM .*\n`).Split(dockerfile(t), -1)
	text := stages[len(stages)-1]
	want := []string{"etc/ssl/certs/ca-certificates.crt", "licenses/LICENSE", "holdfast", "holdfast-worker"}
	if stage == "foundationdb" {
		text, want = stages[len(stages)-2], want[1:]
	}
	config, err := one.ConfigFile()
	require.NoError(t, err)
	assert.Contains(t, text, "USER "+config.Config.User+"\n")
	assert.Contains(t, text, `ENTRYPOINT ["`+strings.Join(config.Config.Entrypoint, `", "`)+`"]`)
	exposed := strings.Fields(regexp.MustCompile(`EXPOSE (.*)\n`).FindStringSubmatch(text)[1])
	assert.Len(t, config.Config.ExposedPorts, len(exposed))
	for _, port := range exposed {
		assert.Contains(t, config.Config.ExposedPorts, port+"/tcp")
	}
	modes := modesOf(t, one)
	for _, path := range want {
		assert.Contains(t, text, filepath.Base(path), "the Dockerfile ships it, too")
		require.Contains(t, modes, path)
		assert.Zero(t, modes[path]&0o022, "%s: only root may change it", path)
	}
	assert.EqualValues(t, 0o755, modes["holdfast"])
	assert.EqualValues(t, 0o755, modes["holdfast-worker"])
}

// modesOf are the permissions of an image's files, which are all root's.
func modesOf(t *testing.T, one v1.Image) map[string]int64 {
	t.Helper()
	files := mutate.Extract(one)
	defer files.Close()
	modes := map[string]int64{}
	for reader := tar.NewReader(files); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return modes
		}
		require.NoError(t, err)
		assert.Zero(t, header.Uid+header.Gid, header.Name)
		modes[strings.Trim(header.Name, "/")] = header.Mode
	}
}

func requireStatements(t *testing.T, statements v1.Image, about v1.Hash, source image.Source) {
	t.Helper()
	layers, err := statements.Layers()
	require.NoError(t, err)
	predicates := map[string]string{}
	for _, layer := range layers {
		content, err := layer.Uncompressed()
		require.NoError(t, err)
		var statement struct {
			PredicateType string `json:"predicateType"`
			Predicate     json.RawMessage
			Subject       []struct{ Digest map[string]string }
		}
		require.NoError(t, json.NewDecoder(content).Decode(&statement))
		require.Len(t, statement.Subject, 1)
		assert.Equal(t, about.Hex, statement.Subject[0].Digest["sha256"])
		predicates[statement.PredicateType] = string(statement.Predicate)
	}
	require.Len(t, predicates, 2)
	assert.Contains(t, predicates["https://spdx.dev/Document"], "pkg:golang/go.temporal.io/sdk@")
	provenance := predicates["https://slsa.dev/provenance/v1"]
	assert.Contains(t, provenance, source.Commit)
	var built struct {
		BuildDefinition struct {
			ExternalParameters struct{ Environment, Flags []string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(provenance), &built))
	with, text := built.BuildDefinition.ExternalParameters, strings.ReplaceAll(dockerfile(t), `"`, "")
	assert.Contains(t, text, "ENV "+strings.Join(tools.ShippedEnv, " ")+"\n")
	assert.Subset(t, with.Environment, tools.ShippedEnv)
	flags := strings.ReplaceAll(strings.Join(with.Flags, " "), "v9.8.7", "$VERSION")
	assert.Contains(t, text, "go build "+flags+" -o")
}

// requireSBOM requires that SPDX's own library reads the documents.
func requireSBOM(t *testing.T, documents []string) {
	t.Helper()
	read := 0
	for _, path := range documents {
		if !strings.HasSuffix(path, ".spdx.json") {
			continue
		}
		read++
		file, err := os.Open(path)
		require.NoError(t, err)
		document, err := spdxjson.Read(file)
		require.NoError(t, file.Close())
		require.NoError(t, err)
		versions := map[string]string{}
		for _, part := range document.Packages {
			versions[part.PackageName] = part.PackageVersion
		}
		assert.Equal(t, "v9.8.7", versions["holdfast"])
		assert.Equal(t, strings.TrimPrefix(runtime.Version(), "go"), versions["stdlib"])
		assert.NotEmpty(t, versions["go.temporal.io/sdk"])
		assert.NotEmpty(t, versions["golang.org/x/crypto/x509roots/fallback"], "how old the authorities are")
		assert.Len(t, document.Relationships, len(document.Packages))
	}
	assert.Equal(t, len(platforms()), read)
}
