package image

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// certificates is the file from which Go's programs read the authorities that they trust.
const certificates = "etc/ssl/certs/ca-certificates.crt"

// programLayers are one for each program.
func programLayers(binaries map[string]string) ([]v1.Layer, error) {
	var layers []v1.Layer
	for _, name := range slices.Sorted(maps.Keys(binaries)) {
		content, err := os.ReadFile(binaries[name])
		if err != nil {
			return nil, err
		}
		layer, err := layerOf(name, 0o755, content)
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	return layers, nil
}

// authorities are those that Mozilla trusts, from Go's module of them. Those that it trusts with a limit stay out: the file
// cannot say so, and all that they have issued would be trusted.
func authorities() ([]byte, error) {
	var file bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&file, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, fmt.Errorf("encode the authorities: %w", err)
		}
	}
	return file.Bytes(), nil
}

// layerOf is a layer with one file of root's and its folders, without a time.
func layerOf(name string, mode int64, content []byte) (v1.Layer, error) {
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	var headers []*tar.Header
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		headers = append(headers, &tar.Header{Name: folder + "/", Typeflag: tar.TypeDir, Mode: 0o755})
	}
	slices.Reverse(headers)
	headers = append(headers, &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: mode, Size: int64(len(content))})
	for _, header := range headers {
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("pack %s: %w", header.Name, err)
		}
	}
	if _, err := writer.Write(content); err != nil {
		return nil, fmt.Errorf("pack %s: %w", name, err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("pack %s: %w", name, err)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("layer of %s: %w", strings.TrimPrefix(name, "/"), err)
	}
	return layer, nil
}
