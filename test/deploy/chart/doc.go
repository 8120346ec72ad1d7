// Package chart knows how the Helm chart in deploy/chart is made of the manifests that kustomize uses: which template is made of
// which file, and where the chart's values go. The command holdfast-manifests calls it, for `make generate`. It imports nothing
// of ours.
package chart
