package process

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"holdfast.dev/holdfast/k8s/probe"
)

// Main executes a command until it ends, or until the process is interrupted or receives SIGTERM. An error is printed in
// one line and ends the process with status 1.
func Main(command *cobra.Command) {
	command.SilenceUsage = true
	command.SilenceErrors = true
	command.Version = Version()
	command.PersistentPreRunE = func(command *cobra.Command, _ []string) error {
		return FromEnvironment(command.Flags())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command.ExecuteContext(ctx)
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", command.Name(), err)
		os.Exit(1)
	}
}

// ServeProbes runs the prober and serves its answers and the metrics page at the addresses of the flags, until ctx ends.
func (f *Flags) ServeProbes(ctx context.Context, logger *zap.Logger, prober *probe.Prober, metrics http.Handler) error {
	go prober.Run(ctx)
	if err := Serve(ctx, logger, f.HealthBindAddress, prober.Handler()); err != nil {
		return fmt.Errorf("--health-probe-bind-address: %w", err)
	}
	if err := Serve(ctx, logger, f.MetricsBindAddress, metrics); err != nil {
		return fmt.Errorf("--metrics-bind-address: %w", err)
	}
	return nil
}
