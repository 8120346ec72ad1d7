// Holdfast-worker runs the workflows and activities of one Kubernetes cluster.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/k8s/process"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(os.Stderr, "holdfast-worker: %v\n", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var flags process.Flags
	command := &cobra.Command{
		Use:           "holdfast-worker",
		Short:         "Run Holdfast's workflows and activities for one Kubernetes cluster",
		Long:          "Temporal's address, namespace, TLS and API key come from its own environment variables (TEMPORAL_ADDRESS ...).",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		PreRunE: func(command *cobra.Command, _ []string) error {
			if err := process.FromEnvironment(command.Flags()); err != nil {
				return err
			}
			return flags.Validate()
		},
		RunE: func(command *cobra.Command, _ []string) error { return run(command.Context(), &flags) },
	}
	flags.Bind(command.Flags())
	return command
}
