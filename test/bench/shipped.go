package main

import (
	"fmt"
	"os"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
)

// shipped is what a Deployment of deploy/base gives its process: what is measured is what is shipped.
type shipped struct {
	// GoMemLimit is the value of GOMEMLIMIT; empty where the manifest has none.
	GoMemLimit string `json:"gomemlimit,omitempty"`
	// LimitMiB is the limit of memory, above which the kernel kills the process.
	LimitMiB float64 `json:"limitMiB"`
}

// shippedWatcher reads deploy/base/watcher.yaml of this checkout.
func shippedWatcher() (shipped, error) {
	root, err := tools.Root()
	if err != nil {
		return shipped{}, err
	}
	path := filepath.Join(root, "deploy", "base", "watcher.yaml")
	manifest, err := os.ReadFile(path)
	if err != nil {
		return shipped{}, err
	}
	of, err := readShipped(manifest)
	if err != nil {
		return shipped{}, fmt.Errorf("%s: %w", path, err)
	}
	return of, nil
}

func readShipped(manifest []byte) (shipped, error) {
	objects, err := env.ReadObjects(manifest)
	if err != nil {
		return shipped{}, err
	}
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		var deployment appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment); err != nil {
			return shipped{}, fmt.Errorf("read the Deployment: %w", err)
		}
		container := deployment.Spec.Template.Spec.Containers[0]
		of := shipped{LimitMiB: float64(container.Resources.Limits.Memory().Value()) / (1 << 20)}
		for _, variable := range container.Env {
			if variable.Name != "GOMEMLIMIT" {
				continue
			}
			if of.GoMemLimit = variable.Value; of.GoMemLimit == "" {
				return shipped{}, fmt.Errorf("GOMEMLIMIT is no plain value")
			}
		}
		return of, nil
	}
	return shipped{}, fmt.Errorf("no Deployment")
}

// environment is what the process gets of it.
func (s shipped) environment() []string {
	if s.GoMemLimit == "" {
		return nil
	}
	return []string{"GOMEMLIMIT=" + s.GoMemLimit}
}
