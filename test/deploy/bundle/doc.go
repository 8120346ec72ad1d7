// Package bundle knows how the bundle for the Operator Lifecycle Manager in deploy/bundle is made of deploy/base: what goes into
// its ClusterServiceVersion, what lies beside it, and what OLM does not install. The command holdfast-manifests calls it, for
// `make generate`. It imports nothing of ours.
package bundle
