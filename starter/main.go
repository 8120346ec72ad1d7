// Holdfast is the watcher process and the operator's command.
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
		fmt.Fprintf(os.Stderr, "holdfast: %v\n", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "holdfast",
		Short:         "Durable backups for the tenants of a Kubernetes cluster",
		Long:          "Temporal's address, namespace, TLS and API key come from its own environment variables (TEMPORAL_ADDRESS ...).",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(command *cobra.Command, _ []string) error {
			return process.FromEnvironment(command.Flags())
		},
	}
	root.AddCommand(watchCommand(), listCommand(), describeCommand())
	return root
}
