// Command holdfast-manifests writes, from the manifests that kustomize uses, what else installs Holdfast: the generated templates
// of the Helm chart in deploy/chart, and the bundle for the Operator Lifecycle Manager in deploy/bundle. `make generate` runs it.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"holdfast.dev/holdfast/test/deploy/bundle"
	"holdfast.dev/holdfast/test/deploy/chart"
	"holdfast.dev/holdfast/test/tools"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "holdfast-manifests:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := tools.Root()
	if err != nil {
		return err
	}
	deploy := filepath.Join(root, "deploy")
	if err := chart.Write(deploy); err != nil {
		return err
	}
	return bundle.Write(deploy)
}
