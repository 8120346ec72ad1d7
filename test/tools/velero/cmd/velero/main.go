// Command velero is Velero, but for two things: where its controller manager serves metrics, for which it has no flag (it is :8080
// else, so that no two could run on a machine), and command sync-backups.
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
	command := velero.NewCommand(filepath.Base(os.Args[0]))
	command.AddCommand(syncCommand())
	cmd.CheckError(command.Execute())
}
