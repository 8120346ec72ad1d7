package queue

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// Command returns `holdfast queue`.
func Command() *cobra.Command {
	var flags operator.TemporalFlags
	var namespace string
	command := &cobra.Command{
		Use:   "queue",
		Short: "Show who has a turn before Velero, who waits and why, and the limits",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return flags.With(func(temporal *connect.Temporal) error {
				queue, err := read(command.Context(), temporal, flags.ClusterID, time.Now())
				if err != nil {
					return err
				}
				queue.only(namespace)
				return flags.Print(command.OutOrStdout(), queue, queue.Print)
			})
		},
	}
	flags.Bind(command)
	command.Flags().StringVarP(&namespace, "namespace", "n", "", "only objects of this namespace (default: all)")
	command.AddCommand(setLimitCommand(), nextCommand())
	return command
}

// coordinator is the workflow that keeps the queue.
func coordinator(clusterID string) operator.Coordinator {
	return operator.Coordinator{
		Cluster: clusterID, ID: contract.VeleroQueueID(clusterID), Absent: absent(clusterID),
		Refusal: contract.ErrorVeleroQueueInvalid, Command: "holdfast queue",
	}
}

func absent(clusterID string) string {
	return fmt.Sprintf("Kubernetes cluster %s has no queue before Velero: the policy sets neither queue.maxActive nor "+
		"queue.maxActiveRestores, and Velero has everything at once. If the policy sets one, check that a holdfast watch and a "+
		"holdfast-worker run, and that --cluster-id is theirs", clusterID)
}

// bindRestores adds the flag that chooses the pool.
func bindRestores(command *cobra.Command, restores *bool) {
	command.Flags().BoolVar(restores, "restores", false, "of restores; without it, of backups")
}

func poolOf(restores bool) contract.Pool {
	if restores {
		return contract.PoolRestores
	}
	return contract.PoolBackups
}

func setLimitCommand() *cobra.Command {
	var flags operator.TemporalFlags
	var lasts time.Duration
	var restores bool
	command := &cobra.Command{
		Use:   "set-limit N",
		Short: "Set for a time how many turns are given at once; 0 restores the policy's limit",
		Long:  "Set for a time how many Backups, or Restores, Velero is handed at once. Running turns continue.",
		Example: "  holdfast queue set-limit 8 --for 2h\n  holdfast queue set-limit 1 --restores --for 30m\n" +
			"  holdfast queue set-limit 0",
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			limit, err := limitOf(args[0], lasts)
			if err != nil {
				return err
			}
			limit.Pool = poolOf(restores)
			return flags.Change(command, coordinator, args[0], contract.UpdateSetTurnLimit, limit)
		},
	}
	flags.Bind(command)
	bindRestores(command, &restores)
	command.Flags().DurationVar(&lasts, "for", 0, "how long the limit holds; required unless N is 0")
	return command
}

func limitOf(arg string, lasts time.Duration) (contract.TurnLimit, error) {
	limit, err := strconv.Atoi(arg)
	switch {
	case err != nil || limit < 0:
		return contract.TurnLimit{}, fmt.Errorf("set-limit %q: must be a number; 0 restores the policy's limit", arg)
	case limit == 0:
		return contract.TurnLimit{}, nil
	case lasts < time.Second:
		return contract.TurnLimit{}, errors.New("--for: say how long the limit holds, for example 2h")
	}
	return contract.TurnLimit{Limit: limit, For: int64(lasts / time.Second)}, nil
}

func nextCommand() *cobra.Command {
	var flags operator.TemporalFlags
	var reason string
	var restores bool
	command := &cobra.Command{
		Use:   "next NAMESPACE/NAME --reason TEXT",
		Short: "Give a NonAdminBackup or NonAdminRestore the next turn",
		Example: "  holdfast queue next shop/before-upgrade --reason 'ticket 4711'\n" +
			"  holdfast queue next shop/undo --restores --reason outage",
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			key, err := operator.TenantObject(args[0])
			if err != nil {
				return fmt.Errorf("next %w", err)
			}
			if err := checkReason(reason); err != nil {
				return err
			}
			name := contract.TurnName{Pool: poolOf(restores), Namespace: key.Namespace, Name: key.Name}
			return flags.Change(command, coordinator, args[0], contract.UpdateNextTurn, contract.NextTurn{TurnName: name, Reason: reason})
		},
	}
	flags.Bind(command)
	bindRestores(command, &restores)
	command.Flags().StringVar(&reason, "reason", "", "why, for the people who read the queue's history; required")
	return command
}

func checkReason(reason string) error {
	switch {
	case strings.TrimSpace(reason) == "":
		return errors.New("--reason: say why, it stays in the queue's history")
	case !utf8.ValidString(reason) || strings.ContainsFunc(reason, unicode.IsControl):
		return errors.New("--reason: must be one line of text")
	}
	return nil
}
