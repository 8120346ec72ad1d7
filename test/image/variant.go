package image

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// base is what the programs are laid onto.
type base struct {
	image v1.Image
	// reference and digest name it in a registry. They are empty for scratch.
	reference, digest string
}

// scratch has the authorities alone: no shell, no libraries.
func scratch() (base, error) {
	content, err := authorities()
	if err != nil {
		return base{}, err
	}
	layer, err := layerOf(certificates, 0o644, content)
	if err != nil {
		return base{}, err
	}
	image, err := mutate.AppendLayers(oci(empty.Image), layer)
	if err != nil {
		return base{}, fmt.Errorf("lay the authorities: %w", err)
	}
	return base{image: image}, nil
}

// pull reads the image of a platform from a registry, with the credentials of docker login, if there are any.
func pull(ctx context.Context, reference string, platform v1.Platform, options ...remote.Option) (base, error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return base{}, fmt.Errorf("base image: %w", err)
	}
	options = append([]remote.Option{remote.WithContext(ctx), remote.WithPlatform(platform)}, options...)
	image, err := remote.Image(ref, options...)
	if err != nil {
		return base{}, fmt.Errorf("pull base image %s for %s: %w", reference, platform.String(), err)
	}
	digest, err := image.Digest()
	if err != nil {
		return base{}, fmt.Errorf("base image %s: %w", reference, err)
	}
	return base{image: oci(image), reference: ref.Context().Name(), digest: digest.String()}, nil
}

// oci gives an image the media types of OCI.
func oci(image v1.Image) v1.Image {
	return mutate.ConfigMediaType(mutate.MediaType(image, types.OCIManifestSchema1), types.OCIConfigJSON)
}
