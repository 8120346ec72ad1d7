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

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
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
	// Base is the reference of the image on which the programs are laid; empty for none. It has to have the platforms. By a tag it
	// is what the tag means when the build begins.
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

// Build makes the archive and the documents beside it. Each file is whole; an error may leave new documents beside an older
// archive.
func Build(ctx context.Context, o Options) (built Built, err error) {
	from, err := resolve(ctx, o.Base)
	if err != nil {
		return built, err
	}
	work, err := os.MkdirTemp("", "holdfast-image-")
	if err != nil {
		return built, err
	}
	defer func() { _ = os.RemoveAll(work) }()
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	index = mutate.Annotations(index, o.annotations(from)).(v1.ImageIndex)
	documents := map[string][]byte{}
	for _, platform := range o.Platforms {
		o.Report("build for " + platform.String())
		one, err := o.platform(ctx, from, platform, work)
		if err != nil {
			return built, err
		}
		index = mutate.AppendManifests(index, one.addenda...)
		maps.Copy(documents, one.documents)
	}
	o.Report("write the archive")
	digest, err := index.Digest()
	if err != nil {
		return built, fmt.Errorf("digest of the index: %w", err)
	}
	folder := filepath.Join(work, "layout")
	if _, err := layout.Write(folder, o.named(index)); err != nil {
		return built, fmt.Errorf("write the OCI layout: %w", err)
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

// named is the index of the layout. It has one entry, since an archive of several images has to be told which
// (https://specs.opencontainers.org/image-spec/image-layout/): the index of all platforms.
func (o Options) named(index v1.ImageIndex) v1.ImageIndex {
	return mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add: index, Descriptor: v1.Descriptor{Annotations: map[string]string{"org.opencontainers.image.ref.name": o.version()}},
	})
}

// platformImage is the image for a platform, with what is said about it.
type platformImage struct {
	addenda   []mutate.IndexAddendum
	documents map[string][]byte
}

func (o Options) platform(ctx context.Context, from base, platform v1.Platform, work string) (made platformImage, err error) {
	if platform.Variant != "" {
		return made, fmt.Errorf("%s: a platform is an operating system and an architecture, without a variant", platform.String())
	}
	below, err := from.image(ctx, platform)
	if err != nil {
		return made, err
	}
	binaries, err := o.Source.compile(ctx, o.version(), platform, work)
	if err != nil {
		return made, err
	}
	image, err := o.imageOf(from, below, platform, binaries)
	if err != nil {
		return made, fmt.Errorf("image for %s: %w", platform.String(), err)
	}
	digest, err := image.Digest()
	if err != nil {
		return made, fmt.Errorf("digest of the image for %s: %w", platform.String(), err)
	}
	sbom, err := o.sbom(ctx, from, binaries, digest)
	if err != nil {
		return made, fmt.Errorf("SBOM of the image for %s: %w", platform.String(), err)
	}
	provenance, err := o.provenance(from, platform, binaries)
	if err != nil {
		return made, fmt.Errorf("provenance of the image for %s: %w", platform.String(), err)
	}
	statements, err := statementsOf(digest, map[string][]byte{predicateSPDX: sbom, predicateSLSA: provenance})
	if err != nil {
		return made, err
	}
	attached, err := attestation(statements)
	if err != nil {
		return made, err
	}
	name := o.Name + "-" + platform.OS + "-" + platform.Architecture
	made.documents = map[string][]byte{name + ".spdx.json": sbom, name + ".provenance.json": statements[predicateSLSA]}
	made.addenda = []mutate.IndexAddendum{
		{Add: image, Descriptor: v1.Descriptor{Platform: &platform}},
		{Add: attached, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: nowhere, Architecture: nowhere},
			Annotations: map[string]string{
				"vnd.docker.reference.type": "attestation-manifest", "vnd.docker.reference.digest": digest.String(),
			},
		}},
	}
	return made, nil
}

// imageOf lays the programs onto a base.
func (o Options) imageOf(from base, below v1.Image, platform v1.Platform, binaries map[string]string) (v1.Image, error) {
	layers, err := o.layers(from, binaries)
	if err != nil {
		return nil, err
	}
	image, err := mutate.Append(below, layers...)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = platform.OS, platform.Architecture
	file.Created = v1.Time{Time: o.Source.Time}
	file.Config.User, file.Config.Entrypoint, file.Config.Cmd = user, []string{entrypoint}, nil
	file.Config.Labels, file.Config.ExposedPorts = o.annotations(from), map[string]struct{}{}
	for _, port := range ports {
		file.Config.ExposedPorts[port] = struct{}{}
	}
	return mutate.ConfigFile(image, file)
}

func (o Options) version() string { return cmp.Or(o.Version, o.Source.Revision()) }

// annotations are those of https://specs.opencontainers.org/image-spec/annotations/.
func (o Options) annotations(from base) map[string]string {
	annotations := map[string]string{
		"org.opencontainers.image.title":       o.Name,
		"org.opencontainers.image.description": "Self-service backups of Kubernetes namespaces by Velero and Temporal",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.source":      repository,
		"org.opencontainers.image.revision":    o.Source.Revision(),
		"org.opencontainers.image.version":     o.version(),
		"org.opencontainers.image.created":     o.Source.Time.Format(time.RFC3339),
	}
	if !from.scratch() {
		annotations["org.opencontainers.image.base.name"] = from.given
		annotations["org.opencontainers.image.base.digest"] = from.digest.String()
	}
	return annotations
}
