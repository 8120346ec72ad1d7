package plugin

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"

	"holdfast.dev/holdfast/test/tools"
)

// Platform is an operating system and an architecture, by Go's names, which krew has too.
type Platform struct{ OS, Arch string }

// Platforms are those for which there is an archive.
var Platforms = []Platform{{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}}

const (
	// Binary is the plugin, as kubectl finds it.
	Binary = "kubectl-holdfast"
	// Completion is what kubectl asks for completions in the shell.
	Completion = "kubectl_complete-holdfast"
	license    = "LICENSE"
	// Manifest is the file by which krew installs the plugin.
	Manifest = "holdfast.yaml"
	// MaxBinary is how large a binary may be, in bytes. `make plugin` refuses a larger one of any platform.
	MaxBinary = 60_000_000
)

// completion has the plugin itself answer. Kubectl passes it the words that were typed.
const completion = "#!/usr/bin/env sh\nexec kubectl holdfast __complete \"$@\"\n"

// Release is what is packed.
type Release struct {
	// Root is the folder of the sources.
	Root string
	// Version is that of the plugin, for example v0.1.0.
	Version string
	// URL is the folder in which the archives will lie.
	URL string
}

// Archive is the name of a platform's archive.
func (p Platform) Archive() string { return fmt.Sprintf("%s-%s-%s.tar.gz", Binary, p.OS, p.Arch) }

// Pack writes the archives and the manifest into a folder, and their paths to progress.
func (r Release) Pack(ctx context.Context, dir string, progress io.Writer) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	sums := map[Platform]string{}
	for _, platform := range Platforms {
		began := time.Now()
		archive, err := r.Build(ctx, platform)
		if err != nil {
			return fmt.Errorf("%s: %w", platform.Archive(), err)
		}
		sum := sha256.Sum256(archive)
		sums[platform] = hex.EncodeToString(sum[:])
		path := filepath.Join(dir, platform.Archive())
		if err := os.WriteFile(path, archive, 0o644); err != nil { // for everybody
			return err
		}
		fmt.Fprintf(progress, "%s (%.0f MB, %.0fs)\n", path, float64(len(archive))/1e6, time.Since(began).Seconds())
	}
	manifest, err := r.Manifest(sums)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, Manifest)
	fmt.Fprintln(progress, path)
	return os.WriteFile(path, manifest, 0o644) // for everybody
}

// Build returns the archive of a platform.
func (r Release) Build(ctx context.Context, platform Platform) ([]byte, error) {
	work, err := os.MkdirTemp("", "holdfast-plugin-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	binary := filepath.Join(work, Binary)
	shipped := tools.Shipped{
		Root: r.Root, Package: "./starter/" + Binary, OS: platform.OS, Arch: platform.Arch,
		LDFlags: "-s -w -X holdfast.dev/holdfast/starter/tenant.version=" + r.Version,
	}
	if err := shipped.Build(ctx, binary); err != nil {
		return nil, err
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	if len(program) > MaxBinary {
		return nil, fmt.Errorf("the binary has %d bytes, and may have %d", len(program), MaxBinary)
	}
	text, err := os.ReadFile(filepath.Join(r.Root, license))
	if err != nil {
		return nil, err
	}
	return pack([]packed{{license, 0o644, text}, {Binary, 0o755, program}, {Completion, 0o755, []byte(completion)}})
}

type packed struct {
	name    string
	mode    int64
	content []byte
}

// pack returns an archive in which nothing depends on who makes it, and when.
func pack(files []packed) ([]byte, error) {
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(zipped)
	for _, file := range files {
		header := &tar.Header{Name: file.name, Mode: file.mode, Size: int64(len(file.content)), ModTime: time.Unix(0, 0)}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(file.content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Manifest returns krew's manifest of archives with these checksums.
func (r Release) Manifest(sums map[Platform]string) ([]byte, error) {
	type fields = map[string]any
	var platforms []fields
	for _, platform := range Platforms {
		var files []fields
		for _, name := range []string{Binary, Completion, license} {
			files = append(files, fields{"from": name, "to": "."})
		}
		platforms = append(platforms, fields{
			"selector": fields{"matchLabels": fields{"os": platform.OS, "arch": platform.Arch}},
			"uri":      r.URL + "/" + platform.Archive(), "sha256": sums[platform], "bin": Binary, "files": files,
		})
	}
	return yaml.Marshal(fields{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin", "metadata": fields{"name": "holdfast"},
		"spec": fields{
			"version": r.Version, "homepage": "https://holdfast.dev", "platforms": platforms,
			"shortDescription": "Back up and restore your own namespace",
			"description": "Makes, follows, restores and deletes backups of your own namespace, and runs and pauses\n" +
				"its backup plans. The cluster's administrator runs Holdfast.",
			"caveats": "For completions in the shell, link " + Completion + " of the archive into your PATH.",
		},
	})
}
