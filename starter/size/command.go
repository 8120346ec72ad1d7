package size

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/starter/operator"
)

// Command returns `holdfast size`.
func Command() *cobra.Command {
	var load Load
	var output operator.Flags
	var simulated bool
	command := &cobra.Command{
		Use:   "size",
		Short: "Say what a fleet of a size needs: replicas, resources, Temporal's shards and database, and what breaks first",
		Long: "Says what a fleet needs, by what a backup was measured to need (docs/capacity.md). It reads no cluster.\n" +
			"How long Velero takes, and what a database can do, are yours to measure: give --backup-takes, --deletion-takes and\n" +
			"--transactions-per-second.",
		Example: "  holdfast size --tenants 10000 --plans-per-tenant 2 --clusters 20 --backup-takes 45s\n" +
			"  holdfast size --tenants 10000 --plans-per-tenant 2 --clusters 20 --concurrent-backups 8 --simulate",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := output.Validate(); err != nil {
				return err
			}
			if err := load.Validate(); err != nil {
				return err
			}
			shown := Shown{Estimate: Size(load)}
			if simulated {
				var err error
				if shown.Day, err = Simulate(command.Context(), shown.Estimate, progressTo(command.ErrOrStderr())); err != nil {
					return err
				}
			}
			return output.Print(command.OutOrStdout(), shown, shown.Print)
		},
	}
	flags := command.Flags()
	flags.IntVar(&load.Clusters, "clusters", 1, "Kubernetes clusters that share one Temporal namespace")
	flags.IntVar(&load.Tenants, "tenants", 1_000, "tenants of all clusters together")
	flags.IntVar(&load.PlansPerTenant, "plans-per-tenant", 1, "BackupPlans of each tenant")
	flags.Float64Var(&load.RunsPerDay, "runs-per-day", 1, "backups that each plan makes a day, all plans at the same times")
	flags.DurationVar(&load.Spread.Duration, "spread", 15*time.Minute,
		"time over which the runs of one due time begin: the plans' jitter")
	flags.IntVar(&load.Keep, "keep", 14, "backups that each plan keeps")
	flags.DurationVar(&load.Retention.Duration, "temporal-retention", 30*day, "how long Temporal keeps closed workflows")
	flags.DurationVar(&load.BackupTakes.Duration, "backup-takes", 30*time.Second, "Velero's time for a backup, on average")
	flags.DurationVar(&load.DeletionTakes.Duration, "deletion-takes", 3*time.Second,
		"Velero's time for the deletion of a backup, on average")
	flags.IntVar(&load.ConcurrentBackups, "concurrent-backups", 1, "backups that the Velero of a cluster makes at a time")
	flags.Float64Var(&load.ScheduleStarts, "schedule-starts", scheduleStarts,
		"Temporal's worker.schedulerNamespaceStartWorkflowRPS")
	flags.Float64Var(&load.TransactionsPerSecond, "transactions-per-second", 5_000,
		"writing transactions that Temporal's database can do; pgbench measures yours")
	flags.BoolVar(&simulated, "simulate", false, "follow the runs of one day through the queues, with these resources")
	output.BindOutput(command)
	return command
}

// progressTo says every few seconds how far the simulation is.
func progressTo(out io.Writer) func(time.Duration) {
	last := time.Now()
	return func(now time.Duration) {
		if time.Since(last) > 3*time.Second {
			last = time.Now()
			fmt.Fprintf(out, "simulated: %s\n", now.Round(time.Minute))
		}
	}
}
