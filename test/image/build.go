package image

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// What the image runs as, and what it offers, as the Dockerfile says.
const (
	user       = "65532:65532" // a number, so that Kubernetes can see that it is not root
	entrypoint = "/holdfast"
)

var ports = []string{"8081/tcp", "9464/tcp"}

// Options say what is built.
type Options struct {
	Source Source
	// Name is that of the archive and of the documents, without an ending.
	Name string
	// Version is a release's, for example v0.1.0; empty for any other commit.
	Version   string
	Platforms []v1.Platform
	// Base is the reference of the image on which the programs are laid; empty for none. It has to have the platforms.
	Base string
	// Into is the folder of the archive and the documents. Files of the same names are replaced.
	Into string
	// Report is called with what begins.
	Report func(string)
}

// Built is what there is afterwards.
type Built struct {
	// Archive is the OCI archive; Digest is that of its index, by which a registry knows the image.
	Archive, Digest string
	// Documents are the SBOM and the provenance of each platform.
	Documents []string
}

// Build makes the archive and the documents beside it. An error leaves those that were there.
func Build(ctx context.Context, o Options) (built Built, err error) {
	work, err := os.MkdirTemp("", "holdfast-image-")
	if err != nil {
		return built, err
	}
	defer func() { _ = os.RemoveAll(work) }()
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	index = mutate.Annotations(index, o.annotations()).(v1.ImageIndex)
	documents := map[string][]byte{}
	for _, platform := range o.Platforms {
		o.Report("build for " + platform.String())
		one, err := o.platform(ctx, platform, work)
		if err != nil {
			return built, err
		}
		index = mutate.AppendManifests(index, one.addenda...)
		maps.Copy(documents, one.documents)
	}
	o.Report("write the archive")
	folder := filepath.Join(work, "layout")
	if _, err := layout.Write(folder, index); err != nil {
		return built, fmt.Errorf("write the OCI layout: %w", err)
	}
	digest, err := index.Digest()
	if err != nil {
		return built, fmt.Errorf("digest of the index: %w", err)
	}
	built = Built{Archive: filepath.Join(o.Into, o.Name+".oci.tar"), Digest: digest.String()}
	if err := os.MkdirAll(o.Into, 0o755); err != nil {
		return built, err
	}
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		path := filepath.Join(o.Into, name)
		if err := writeWhole(path, documents[name]); err != nil {
			return built, err
		}
		built.Documents = append(built.Documents, path)
	}
	return built, archive(folder, built.Archive)
}

// platformImage is the image for a platform, with what is said about it.
type platformImage struct {
	addenda   []mutate.IndexAddendum
	documents map[string][]byte
}

func (o Options) platform(ctx context.Context, platform v1.Platform, work string) (made platformImage, err error) {
	from, err := scratch()
	if o.Base != "" {
		from, err = pull(ctx, o.Base, platform, remote.WithAuthFromKeychain(authn.DefaultKeychain))
	}
	if err != nil {
		return made, err
	}
	binaries, err := o.Source.compile(ctx, platform, work)
	if err != nil {
		return made, err
	}
	image, err := o.imageOf(from, platform, binaries)
	if err != nil {
		return made, fmt.Errorf("image for %s: %w", platform.String(), err)
	}
	digest, err := image.Digest()
	if err != nil {
		return made, fmt.Errorf("digest of the image for %s: %w", platform.String(), err)
	}
	sbom, err := o.sbom(from, binaries, digest)
	if err != nil {
		return made, fmt.Errorf("SBOM of the image for %s: %w", platform.String(), err)
	}
	provenance, err := o.provenance(from, platform)
	if err != nil {
		return made, err
	}
	statements, err := attestation(digest, map[string][]byte{predicateSPDX: sbom, predicateSLSA: provenance})
	if err != nil {
		return made, err
	}
	name := o.Name + "-" + platform.OS + "-" + platform.Architecture
	made.documents = map[string][]byte{name + ".spdx.json": sbom, name + ".provenance.json": provenance}
	made.addenda = []mutate.IndexAddendum{
		{Add: image, Descriptor: v1.Descriptor{Platform: &platform}},
		{Add: statements, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: nowhere, Architecture: nowhere},
			Annotations: map[string]string{
				"vnd.docker.reference.type": "attestation-manifest", "vnd.docker.reference.digest": digest.String(),
			},
		}},
	}
	return made, nil
}

// imageOf lays the programs onto a base.
func (o Options) imageOf(from base, platform v1.Platform, binaries map[string]string) (v1.Image, error) {
	layers, err := programLayers(binaries)
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(from.image, layers...)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Variant = platform.OS, platform.Architecture, platform.Variant
	file.Created = v1.Time{Time: o.Source.Time}
	file.Config.User, file.Config.Entrypoint, file.Config.Cmd = user, []string{entrypoint}, nil
	file.Config.Labels, file.Config.ExposedPorts = o.annotations(), map[string]struct{}{}
	for _, port := range ports {
		file.Config.ExposedPorts[port] = struct{}{}
	}
	for i := range file.History {
		if file.History[i].Created.IsZero() { // ours
			file.History[i].Created = file.Created
		}
	}
	return mutate.ConfigFile(image, file)
}

func (o Options) version() string { return cmp.Or(o.Version, o.Source.Commit) }

// annotations are those of https://specs.opencontainers.org/image-spec/annotations/.
func (o Options) annotations() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    "Holdfast",
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.revision": o.Source.Commit,
		"org.opencontainers.image.version":  o.version(),
		"org.opencontainers.image.created":  o.Source.Time.Format(time.RFC3339),
	}
}
