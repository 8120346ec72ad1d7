package fleet

import (
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/workflows/connect"
)

// Command returns `holdfast fleet`.
func Command() *cobra.Command {
	var flags operator.TemporalFlags
	command := &cobra.Command{
		Use:   "fleet",
		Short: "Show every Kubernetes cluster: when it was last heard of, versions, open work, missed objectives",
		Long: "Shows the Kubernetes clusters that share Temporal's namespace. It reads Temporal alone: it needs no kubeconfig, and\n" +
			"a cluster that is away is shown as it was. Encrypted heartbeats need --payload-keys-dir.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return flags.With(func(temporal *connect.Temporal) error {
				clusters, err := Read(command.Context(), temporal, temporal.Converter, time.Now())
				if err != nil {
					return err
				}
				return flags.Print(command.OutOrStdout(), clusters, clusters.Print)
			})
		},
	}
	flags.BindTemporal(command)
	return command
}
