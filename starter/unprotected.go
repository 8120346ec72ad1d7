package main

import (
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/velero"
)

// unprotectedCommand is `holdfast list unprotected`, the administrator's question.
func unprotectedCommand() *cobra.Command {
	var flags operator.Flags
	var within time.Duration
	command := &cobra.Command{
		Use:   "unprotected",
		Short: "List the namespaces with workloads, claims or data and no good backup within a time",
		Long: "List the namespaces that have workloads, PersistentVolumeClaims, ConfigMaps or Secrets, and no good backup that began " +
			"within a time.\nGood is a backup that Velero calls Completed: a NonAdminBackup, or an administrator's that includes " +
			"the namespace whole.\nNamespaces of Kubernetes, OpenShift and Velero are left out. Needs the right to list all of these.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := flags.Validate(); err != nil {
				return err
			}
			if within <= 0 {
				return errors.New("--within: must be a duration above 0")
			}
			kubeClient, err := flags.Kubernetes()
			if err != nil {
				return err
			}
			holdings, err := velero.ReadHoldings(command.Context(), kubeClient, flags.OADPNamespace)
			if err != nil {
				return err
			}
			found := velero.Unprotected(holdings, time.Now(), within)
			return flags.Print(command.OutOrStdout(), found, func(out io.Writer) error {
				return operator.PrintRows(out, velero.HoldingColumns, found)
			})
		},
	}
	flags.BindKubernetes(command)
	command.Flags().DurationVar(&within, "within", 24*time.Hour, "how recent a good backup must be")
	return command
}
