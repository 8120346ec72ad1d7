package fdb

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// Command returns `holdfast fdb`.
func Command() *cobra.Command {
	command := &cobra.Command{
		Use:   "fdb",
		Short: "Show and change the queue in which FoundationDB backups expire and delete their data",
		Args:  cobra.NoArgs,
		RunE:  func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(
		fdbQueueCommand(),
		fdbSteerCommand("expire-now NAMESPACE/NAME", "Put a FoundationDBBackup first in the queue, regardless of the minimum interval",
			"  holdfast fdb expire-now shop/ledger", contract.UpdateExpireNow, fdbQueueName),
		fdbSteerCommand("remove NAMESPACE/NAME",
			"Remove a FoundationDBBackup from the queue until it asks for a turn again; a turn that runs continues",
			"  holdfast fdb remove shop/ledger", contract.UpdateRemoveEntry, fdbQueueName),
		fdbSteerCommand("set-limit N", "Set how many turns may run at a time; 0 restores the worker's --fdb-expiry-concurrency",
			"  holdfast fdb set-limit 3", contract.UpdateSetExpiryLimit, fdbQueueLimit),
	)
	return command
}

func fdbQueueCommand() *cobra.Command {
	var flags operator.TemporalFlags
	command := &cobra.Command{
		Use:   "queue",
		Short: "Show which FoundationDB backups expire or delete data, since when, and which have their turns next",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return flags.With(func(temporal *connect.Temporal) error {
				shown, err := readFDBQueue(command.Context(), temporal, flags.ClusterID, time.Now())
				if err != nil {
					return err
				}
				return flags.Print(command.OutOrStdout(), shown, shown.Print)
			})
		},
	}
	flags.Bind(command)
	return command
}

// fdbSteerCommand returns a command with one argument that sends the queue an Update.
func fdbSteerCommand(use, short, example, update string, read func(string) (any, error)) *cobra.Command {
	var flags operator.TemporalFlags
	command := &cobra.Command{
		Use: use, Short: short, Example: example, Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			in, err := read(args[0])
			if err != nil {
				return fmt.Errorf("%s %w", command.Name(), err)
			}
			return flags.Change(command, fdbQueue, args[0], update, in)
		},
	}
	flags.Bind(command)
	return command
}

func fdbQueueName(arg string) (any, error) {
	key, err := operator.TenantObject(arg)
	return contract.FDBQueueName{Namespace: key.Namespace, Name: key.Name}, err
}

func fdbQueueLimit(arg string) (any, error) {
	limit, err := strconv.Atoi(arg)
	if err != nil {
		return nil, fmt.Errorf("%q: must be a number from 0 to 100", arg)
	}
	return contract.FDBQueueLimit{Limit: limit}, nil
}

func fdbQueue(clusterID string) operator.Coordinator {
	return operator.Coordinator{
		Cluster: clusterID, ID: contract.FDBExpiryQueueID(clusterID), Absent: fdbQueueAbsent(clusterID),
		Refusal: contract.ErrorFDBQueueInvalid, Command: "holdfast fdb queue",
	}
}

func fdbQueueAbsent(clusterID string) string {
	return fmt.Sprintf("the queue of Kubernetes cluster %s is empty: no FoundationDBBackup there has an expiry policy or waits for "+
		"its data to be deleted. If one should, check its status, and that --cluster-id is the worker's", clusterID)
}
