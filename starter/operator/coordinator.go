package operator

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	temporalsdk "go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"holdfast.dev/holdfast/k8s/process"
	"holdfast.dev/holdfast/starter/terminal"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// TemporalFlags are those of commands that connect only to Temporal.
type TemporalFlags struct{ Flags }

// Bind adds the flags of a command for one cluster.
func (f *TemporalFlags) Bind(command *cobra.Command) {
	f.BindClusterID(command)
	f.BindTemporal(command)
}

// BindTemporal adds the flags of a command for all clusters.
func (f *TemporalFlags) BindTemporal(command *cobra.Command) {
	f.BindOutput(command)
	process.BindPayloadKeysDir(command.Flags(), &f.PayloadKeysDir)
}

// With checks the flags and calls use with a client.
func (f *TemporalFlags) With(use func(*connect.Temporal) error) error {
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

// Change sends a coordinator the Update of a command with this argument, and prints the answer: the sentence in it, or all of it
// as JSON or YAML.
func (f *TemporalFlags) Change(
	command *cobra.Command, of func(clusterID string) Coordinator, argument, update string, in any,
) error {
	return f.With(func(temporal *connect.Temporal) error {
		answer, err := of(f.ClusterID).Update(command.Context(), temporal, update, in)
		if err != nil {
			return fmt.Errorf("%s %s: %w", command.Name(), argument, err)
		}
		return f.Print(command.OutOrStdout(), answer, func(out io.Writer) error {
			_, err := fmt.Fprintln(out, terminal.Printable(answer.Message))
			return err
		})
	})
}

// Coordinator is the workflow that keeps a queue of a Kubernetes cluster.
type Coordinator struct {
	// Cluster is the Kubernetes cluster's ID, and ID the workflow's.
	Cluster, ID string
	// Absent says what it means that the workflow does not run.
	Absent string
	// Refusal is the type of the errors by which it refuses an Update.
	Refusal string
	// Command is the command that shows the queue.
	Command string
}

// Read queries its state, and reports whether it runs.
func (c Coordinator) Read(ctx context.Context, temporal client.Client, state any) (runs bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, DescribeTimeout)
	defer cancel()
	err = connect.QueryRunning(ctx, temporal, c.ID, contract.QueryState, state)
	switch {
	case errors.Is(err, connect.ErrNotRunning):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("query the queue of Kubernetes cluster %s (check that Temporal and a holdfast-worker with that "+
			"--cluster-id run): %w", c.Cluster, err)
	}
	return true, nil
}

// Update sends it an Update and returns the answer. If it continues as new at that moment, Temporal drops the Update, and it is
// sent again.
func (c Coordinator) Update(
	ctx context.Context, temporal client.Client, name string, in any,
) (answer contract.TurnAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, UpdateTimeout)
	defer cancel()
	for range 5 {
		var handle client.WorkflowUpdateHandle
		handle, err = temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			WorkflowID: c.ID, UpdateName: name, Args: []any{in}, WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err == nil {
			err = handle.Get(ctx, &answer)
		}
		var dropped *serviceerror.WorkflowNotReady
		if !errors.As(err, &dropped) {
			break
		}
	}
	return answer, c.explain(err)
}

// explain explains an error of an Update to people.
func (c Coordinator) explain(err error) error {
	var (
		refused *temporalsdk.ApplicationError
		late    *client.WorkflowUpdateServiceTimeoutOrCanceledError
	)
	switch {
	case err == nil:
		return nil
	case connect.NotFound(err):
		return errors.New(c.Absent)
	case errors.As(err, &refused) && refused.Type() == c.Refusal:
		return errors.New(refused.Message())
	case errors.As(err, &late), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s: check that Temporal and a holdfast-worker with --cluster-id %s run. The request "+
			"may still take effect: %s shows it (%w)", UpdateTimeout, c.Cluster, c.Command, err)
	}
	return fmt.Errorf("call the queue of Kubernetes cluster %s: %w", c.Cluster, err)
}
