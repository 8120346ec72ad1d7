package fdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	temporalsdk "go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"holdfast.dev/holdfast/k8s/process"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// fdbFlags are the flags of holdfast fdb, which connects only to Temporal.
type fdbFlags struct{ operator.Flags }

func (f *fdbFlags) Bind(command *cobra.Command) {
	command.Flags().StringVar(&f.ClusterID, "cluster-id", "default", "ID of the Kubernetes cluster, as the worker has it")
	command.Flags().StringVarP(&f.Output, "output", "o", "table", "table, json or yaml")
	process.BindPayloadKeysDir(command.Flags(), &f.PayloadKeysDir)
}

func (f *fdbFlags) Validate() error {
	if !process.ValidClusterID(f.ClusterID) {
		return errors.New("--cluster-id: want " + process.WantClusterID)
	}
	switch f.Output {
	case "table", "json", "yaml":
		return nil
	}
	return errors.New("--output: want table, json or yaml")
}

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
		fdbSteerCommand("expire-now NAMESPACE/NAME", "Put a FoundationDBBackup first in the queue, whatever the minimum interval",
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
	var flags fdbFlags
	command := &cobra.Command{
		Use:   "queue",
		Short: "Show which FoundationDB backups expire or delete data, since when, and which have their turns next",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return flags.with(func(temporal client.Client) error {
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
	var flags fdbFlags
	command := &cobra.Command{
		Use: use, Short: short, Example: example, Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			in, err := read(args[0])
			if err != nil {
				return fmt.Errorf("%s %w", command.Name(), err)
			}
			return flags.with(func(temporal client.Client) error {
				answer, err := steerFDBQueue(command.Context(), temporal, flags.ClusterID, update, in)
				if err != nil {
					return fmt.Errorf("%s %s: %w", command.Name(), args[0], err)
				}
				return flags.Print(command.OutOrStdout(), answer, func(out io.Writer) error {
					_, err := fmt.Fprintln(out, operator.Printable(answer.Message))
					return err
				})
			})
		},
	}
	flags.Bind(command)
	return command
}

// with checks the flags and calls use with a client.
func (f *fdbFlags) with(use func(client.Client) error) error {
	if err := f.Validate(); err != nil {
		return err
	}
	temporal, err := connect.Lazy(connect.Options{Logger: zap.NewNop(), PayloadKeysDir: f.PayloadKeysDir})
	if err != nil {
		return err
	}
	defer temporal.Close()
	return use(temporal)
}

func fdbQueueName(arg string) (any, error) {
	key, err := operator.TenantObject(arg)
	return contract.FDBQueueName{Namespace: key.Namespace, Name: key.Name}, err
}

func fdbQueueLimit(arg string) (any, error) {
	limit, err := strconv.Atoi(arg)
	if err != nil {
		return nil, fmt.Errorf("%q: want a number from 0 to 100", arg)
	}
	return contract.FDBQueueLimit{Limit: limit}, nil
}

// steerFDBQueue sends the queue an Update and returns its answer. If the queue continues as new at that moment, Temporal drops
// the Update, and it is sent again.
func steerFDBQueue(
	ctx context.Context, temporal client.Client, clusterID, update string, in any,
) (answer contract.FDBQueueAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, operator.DescribeTimeout)
	defer cancel()
	for range 5 {
		var handle client.WorkflowUpdateHandle
		handle, err = temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			WorkflowID: contract.FDBExpiryQueueID(clusterID), UpdateName: update, Args: []any{in},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err == nil {
			err = handle.Get(ctx, &answer)
		}
		var dropped *serviceerror.WorkflowNotReady
		if !errors.As(err, &dropped) {
			break
		}
	}
	return answer, fdbQueueError(err, clusterID)
}

// fdbQueueError explains an error of the queue to people.
func fdbQueueError(err error, clusterID string) error {
	var (
		absent  *serviceerror.NotFound
		refused *temporalsdk.ApplicationError
		late    *client.WorkflowUpdateServiceTimeoutOrCanceledError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &absent):
		return errors.New(fdbQueueAbsent(clusterID))
	case errors.As(err, &refused) && refused.Type() == contract.ErrorFDBQueueInvalid:
		return errors.New(refused.Message())
	case errors.As(err, &late), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s: check that Temporal and a holdfast-worker with --cluster-id %s run. The request "+
			"may still take effect: holdfast fdb queue shows it (%w)", operator.DescribeTimeout, clusterID, err)
	}
	return fmt.Errorf("call the queue of Kubernetes cluster %s: %w", clusterID, err)
}

func fdbQueueAbsent(clusterID string) string {
	return fmt.Sprintf("the queue of Kubernetes cluster %s is empty: no FoundationDBBackup there has an expiry policy or waits for "+
		"its data to be deleted. If one should, check its status, and that --cluster-id is the worker's", clusterID)
}
