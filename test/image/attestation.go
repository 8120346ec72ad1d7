package image

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Types of statements about an image.
const (
	predicateSPDX = "https://spdx.dev/Document"
	predicateSLSA = "https://slsa.dev/provenance/v1"
)

const (
	inToto types.MediaType = "application/vnd.in-toto+json"
	// nowhere is the platform of what no engine runs.
	nowhere = "unknown"
)

// attestation is what BuildKit attaches to an image (https://docs.docker.com/build/metadata/attestations/attestation-storage/): a
// manifest whose layers are in-toto statements about the image.
func attestation(digest v1.Hash, predicates map[string][]byte) (v1.Image, error) {
	config := &v1.ConfigFile{OS: nowhere, Architecture: nowhere, RootFS: v1.RootFS{Type: "layers"}}
	image, err := mutate.ConfigFile(oci(empty.Image), config)
	if err != nil {
		return nil, fmt.Errorf("begin the attestation: %w", err)
	}
	for _, predicate := range slices.Sorted(maps.Keys(predicates)) {
		statement, err := json.Marshal(map[string]any{
			"_type": "https://in-toto.io/Statement/v1", "predicateType": predicate, "predicate": json.RawMessage(predicates[predicate]),
			"subject": []any{map[string]any{"name": "holdfast", "digest": map[string]string{digest.Algorithm: digest.Hex}}},
		})
		if err != nil {
			return nil, fmt.Errorf("encode the statement %s: %w", predicate, err)
		}
		image, err = mutate.Append(image, mutate.Addendum{
			Layer: static.NewLayer(statement, inToto), Annotations: map[string]string{"in-toto.io/predicate-type": predicate},
		})
		if err != nil {
			return nil, fmt.Errorf("attach the statement %s: %w", predicate, err)
		}
	}
	return image, nil
}
