// Holdfast-worker runs the workflows and activities of one Kubernetes cluster.
package main

import (
	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/k8s/process"
)

func main() {
	process.Main(command())
}

func command() *cobra.Command {
	var flags workerFlags
	command := &cobra.Command{
		Use:   "holdfast-worker",
		Short: "Run Holdfast's workflows and activities for one Kubernetes cluster",
		Long: "Temporal's address, namespace, TLS and API key come from its own environment variables (TEMPORAL_ADDRESS ...).\n" +
			"TEMPORAL_DEPLOYMENT_NAME and TEMPORAL_WORKER_BUILD_ID, set together, turn worker versioning on.\n" +
			"TEMPORAL_SHARED_BUILD_ID is the build ID in the deployment that FoundationDB's workers of all clusters share, if another.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			if err := flags.Validate(); err != nil {
				return err
			}
			if flags.Deployment, err = deploymentOptions(flags.Serve); err != nil {
				return err
			}
			return run(command.Context(), &flags)
		},
	}
	flags.Bind(command.Flags())
	return command
}
