package main

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/report"
	"holdfast.dev/holdfast/starter/velero"
)

// reportCommand is `holdfast report`.
func reportCommand() *cobra.Command {
	var flags operator.Flags
	var since time.Duration
	var format, title string
	command := &cobra.Command{
		Use:   "report",
		Short: "Write a report for administrators and auditors: who is protected, runs, objectives, storage, decisions, restores",
		Example: "  holdfast report --since 720h -o html > backups.html\n" +
			"  holdfast report -o json | jq .summary",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if !slices.Contains(report.Formats, format) {
				return errors.New("--output: must be " + strings.Join(report.Formats, ", "))
			}
			if since < time.Hour {
				return errors.New("--since: must be a duration of at least 1h")
			}
			if err := flags.Validate(); err != nil {
				return err
			}
			kubeClient, err := flags.Kubernetes()
			if err != nil {
				return err
			}
			objects, err := report.Read(command.Context(), kubeClient, title, velero.QuotaScope{
				ClusterID: flags.ClusterID, OADPNamespace: flags.OADPNamespace,
			})
			if err != nil {
				return err
			}
			return report.Make(objects, since, time.Now()).Write(command.OutOrStdout(), format)
		},
	}
	flags.BindClusterID(command)
	flags.BindCluster(command)
	command.Flags().StringVarP(&format, "output", "o", "markdown", strings.Join(report.Formats, ", "))
	command.Flags().DurationVar(&since, "since", 720*time.Hour,
		"how long before now the report begins; plans keep the runs of 31 days")
	command.Flags().StringVar(&title, "cluster-name", "default", "name of the cluster in the report")
	return command
}
