// Holdfast is the watcher process and the operator's command.
package main

import (
	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/k8s/process"
	"holdfast.dev/holdfast/starter/codecserver"
	"holdfast.dev/holdfast/starter/fdb"
	"holdfast.dev/holdfast/starter/fleet"
	"holdfast.dev/holdfast/starter/location"
	"holdfast.dev/holdfast/starter/queue"
	"holdfast.dev/holdfast/starter/size"
)

func main() { process.Main(command()) }

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "Durable backups for the tenants of a Kubernetes cluster",
		Long:  "Temporal's address, namespace, TLS and API key come from its own environment variables (TEMPORAL_ADDRESS ...).",
	}
	root.AddCommand(watchCommand(), listCommand(), describeCommand(), reportCommand(), fleet.Command(), size.Command(),
		queue.Command(), fdb.Command(), codecserver.Command())
	root.AddCommand(location.Commands()...)
	return root
}
