package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/starter/fdb"
	"holdfast.dev/holdfast/starter/location"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

func describeCommand() *cobra.Command {
	var flags operator.Flags
	command := &cobra.Command{
		Use:   "describe KIND NAMESPACE/NAME",
		Short: "Show one object and what its workflow waits for (KIND: " + strings.Join(singulars(), ", ") + ")",
		Example: "  holdfast describe backup shop/nightly\n  holdfast describe approval shop/offsite\n" +
			"  holdfast describe namespace shop",
		Args: cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			if err := flags.Validate(); err != nil {
				return err
			}
			at := slices.Index(singulars(), args[0])
			if at < 0 {
				return fmt.Errorf("describe %q: KIND must be %s", args[0], either(singulars()))
			}
			key, err := operator.TenantObject(args[1])
			if err != nil {
				return fmt.Errorf("describe %s %w", args[0], err)
			}
			kubeClient, temporal, err := flags.Connect()
			if err != nil {
				return err
			}
			defer temporal.Close()
			workflow := func(kind contract.Kind, object client.Object) operator.DescribedWorkflow {
				id := contract.WorkflowID(flags.ClusterID, kind, operator.RefOf(object))
				return operator.DescribeWorkflow(command.Context(), temporal, id)
			}
			described, err := shownKinds()[at].Describe(command.Context(), &flags, kubeClient, workflow, key)
			if err != nil {
				return err
			}
			return flags.Print(command.OutOrStdout(), described, described.Print)
		},
	}
	flags.Bind(command)
	command.AddCommand(namespaceCommand())
	return command
}

// shownKinds are in the order in which the help names them.
func shownKinds() []operator.Shown {
	return []operator.Shown{
		velero.Backups, velero.Restores, velero.Plans, velero.Drills, location.Locations, location.Approvals, fdb.Backups,
		fdb.Restores, fdb.Drills,
	}
}

func singulars() []string {
	var names []string
	for _, kind := range shownKinds() {
		names = append(names, kind.Name)
	}
	return names
}

func plurals() []string {
	names := singulars()
	for i := range names {
		names[i] += "s"
	}
	return names
}

// either is a choice in words: a, b or c.
func either(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func listCommand() *cobra.Command {
	var flags operator.Flags
	var namespace string
	command := &cobra.Command{
		Use:   "list [" + strings.Join(plurals(), "|") + "]",
		Short: "List the tenants' objects of a kind (backups by default), what is to be approved, or what is unprotected",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := flags.Validate(); err != nil {
				return err
			}
			wanted := "backups"
			if len(args) > 0 {
				wanted = args[0]
			}
			at := slices.Index(plurals(), wanted)
			if at < 0 {
				return fmt.Errorf("list %q: must be %s", wanted, either(plurals()))
			}
			rows, table, err := shownKinds()[at].List(command.Context(), &flags, namespace, command.ErrOrStderr())
			if err != nil {
				return err
			}
			return flags.Print(command.OutOrStdout(), rows, table)
		},
	}
	flags.Bind(command)
	command.Flags().StringVarP(&namespace, "namespace", "n", "", "only this namespace (default: all)")
	command.AddCommand(unprotectedCommand())
	return command
}
