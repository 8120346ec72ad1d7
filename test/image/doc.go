// Package image makes Holdfast's container images without a container engine: those that deploy/image/Dockerfile describes, for
// several platforms, each variant as one OCI archive. Two builds of one commit give the same bytes.
//
// With the images the archive holds an SBOM (SPDX) and the provenance (SLSA) of each, attached as BuildKit attaches them; copies
// of both lie beside the archive. The command holdfast-image calls it, for `make image`.
package image
