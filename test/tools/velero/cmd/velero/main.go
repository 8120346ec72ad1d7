// Command velero is Velero, but for one thing that it has no flag for: where its controller manager serves metrics, which
// is :8080 else, so that no two could run on a machine.
package main

import (
	"os"
	"path/filepath"

	"github.com/vmware-tanzu/velero/pkg/cmd"
	"github.com/vmware-tanzu/velero/pkg/cmd/velero"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	if address := os.Getenv("VELERO_MANAGER_METRICS_ADDRESS"); address != "" {
		server.DefaultBindAddress = address
	}
	cmd.CheckError(velero.NewCommand(filepath.Base(os.Args[0])).Execute())
}
