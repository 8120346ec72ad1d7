package image

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// base is the image that the programs are laid onto, in one revision for all platforms. Without a reference it is scratch.
type base struct {
	// given is the reference as it was given; repository and digest are what it meant when the build began.
	given, repository string
	digest            v1.Hash
	at                name.Digest
}

// resolve asks the registry, with the credentials of docker login, if there are any.
func resolve(ctx context.Context, reference string) (base, error) {
	if reference == "" {
		return base{}, nil
	}
	ref, err := name.ParseReference(reference)
	if err != nil {
		return base{}, fmt.Errorf("base image: %w", err)
	}
	found, err := remote.Get(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return base{}, fmt.Errorf("pull base image %s: %w", reference, err)
	}
	at := ref.Context().Digest(found.Digest.String())
	return base{given: reference, repository: ref.Context().Name(), digest: found.Digest, at: at}, nil
}

func (b base) scratch() bool { return b.given == "" }

// image is the base for a platform.
func (b base) image(ctx context.Context, platform v1.Platform) (v1.Image, error) {
	if b.scratch() {
		return oci(empty.Image), nil
	}
	image, err := remote.Image(b.at, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithPlatform(platform))
	if err != nil {
		return nil, fmt.Errorf("pull base image %s for %s: %w", b.given, platform.String(), err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("base image %s for %s: %w", b.given, platform.String(), err)
	}
	if config.OS != platform.OS || config.Architecture != platform.Architecture { // no index, but an image of one platform
		return nil, fmt.Errorf("base image %s is for %s/%s, not for %s: name the index of all platforms",
			b.given, config.OS, config.Architecture, platform.String())
	}
	return oci(image), nil
}

// oci gives an image the media types of OCI.
func oci(image v1.Image) v1.Image {
	return mutate.ConfigMediaType(mutate.MediaType(image, types.OCIManifestSchema1), types.OCIConfigJSON)
}
