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
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// certificates is the file from which Go's programs read the authorities that they trust.
	certificates = "etc/ssl/certs/ca-certificates.crt"
	license      = "licenses/LICENSE"
)

// file is one of the image, root's.
type file struct {
	name    string
	mode    int64
	content []byte
}

// layers are one for each file that the programs need: themselves, the license, and on scratch the authorities.
func (o Options) layers(from base, binaries map[string]string) ([]mutate.Addendum, error) {
	var files []file
	if from.scratch() {
		content, err := authorities()
		if err != nil {
			return nil, err
		}
		files = append(files, file{certificates, 0o644, content})
	}
	text, err := os.ReadFile(filepath.Join(o.Source.Folder, "LICENSE"))
	if err != nil {
		return nil, err
	}
	files = append(files, file{license, 0o644, text})
	for _, name := range slices.Sorted(maps.Keys(binaries)) {
		content, err := os.ReadFile(binaries[name])
		if err != nil {
			return nil, err
		}
		files = append(files, file{name, 0o755, content})
	}
	var layers []mutate.Addendum
	for _, f := range files {
		layer, err := f.layer()
		if err != nil {
			return nil, fmt.Errorf("layer of %s: %w", f.name, err)
		}
		history := v1.History{Created: v1.Time{Time: o.Source.Time}, CreatedBy: "holdfast-image: /" + f.name}
		layers = append(layers, mutate.Addendum{Layer: layer, History: history})
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

// layer has the file and its folders, without a time.
func (f file) layer() (v1.Layer, error) {
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	var headers []*tar.Header
	for folder := path.Dir(f.name); folder != "."; folder = path.Dir(folder) {
		headers = append(headers, &tar.Header{Name: folder + "/", Typeflag: tar.TypeDir, Mode: 0o755})
	}
	slices.Reverse(headers)
	headers = append(headers, &tar.Header{Name: f.name, Typeflag: tar.TypeReg, Mode: f.mode, Size: int64(len(f.content))})
	for _, header := range headers {
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
	}
	if _, err := writer.Write(f.content); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}
