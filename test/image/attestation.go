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

// statementsOf are in-toto's statements about an image, by the type of what they say.
func statementsOf(digest v1.Hash, predicates map[string][]byte) (map[string][]byte, error) {
	statements := map[string][]byte{}
	for predicate, content := range predicates {
		statement, err := json.Marshal(map[string]any{
			"_type": "https://in-toto.io/Statement/v1", "predicateType": predicate, "predicate": json.RawMessage(content),
			"subject": []any{map[string]any{"name": product, "digest": map[string]string{digest.Algorithm: digest.Hex}}},
		})
		if err != nil {
			return nil, fmt.Errorf("encode the statement %s: %w", predicate, err)
		}
		statements[predicate] = statement
	}
	return statements, nil
}

// attestation is what BuildKit attaches to an image (https://docs.docker.com/build/metadata/attestations/attestation-storage/): a
// manifest whose layers are statements about it.
func attestation(statements map[string][]byte) (v1.Image, error) {
	config := &v1.ConfigFile{OS: nowhere, Architecture: nowhere, RootFS: v1.RootFS{Type: "layers"}}
	image, err := mutate.ConfigFile(oci(empty.Image), config)
	if err != nil {
		return nil, fmt.Errorf("begin the attestation: %w", err)
	}
	for _, predicate := range slices.Sorted(maps.Keys(statements)) {
		image, err = mutate.Append(image, mutate.Addendum{
			Layer:       static.NewLayer(statements[predicate], inToto),
			Annotations: map[string]string{"in-toto.io/predicate-type": predicate},
		})
		if err != nil {
			return nil, fmt.Errorf("attach the statement %s: %w", predicate, err)
		}
	}
	return image, nil
}
