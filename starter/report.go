package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/process"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/report"
	"holdfast.dev/holdfast/starter/velero"
)

// reportFlags are those of `holdfast report`.
type reportFlags struct {
	operator.Flags
	since    time.Duration
	format   string
	title    string
	contexts []string
}

// reportCommand is `holdfast report`.
func reportCommand() *cobra.Command {
	var flags reportFlags
	command := &cobra.Command{
		Use:   "report",
		Short: "Write a report for administrators and auditors: who is protected, runs, objectives, storage, decisions, restores",
		Example: "  holdfast report --since 720h -o html > backups.html\n" +
			"  holdfast report -o json | jq .summary\n" +
			"  holdfast report --context west=prod-west --context east=prod-east -o html > fleet.html",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := flags.validate(command.Flags().Changed); err != nil {
				return err
			}
			sources := flags.sources(command.Flags().Changed("cluster-name"))
			if len(sources) > 1 {
				fleet := report.ReadFleet(command.Context(), sources, flags.since, time.Now())
				return cmp.Or(fleet.Write(command.OutOrStdout(), flags.format), fleet.Err())
			}
			one, err := sources[0].Report(command.Context(), flags.since, time.Now())
			if err != nil {
				return err
			}
			return one.Write(command.OutOrStdout(), flags.format)
		},
	}
	flags.BindClusterID(command)
	flags.BindCluster(command)
	command.Flags().StringVarP(&flags.format, "output", "o", "markdown", strings.Join(report.Formats, ", "))
	command.Flags().DurationVar(&flags.since, "since", 720*time.Hour,
		"how long before now the report begins; plans keep the runs of 31 days")
	command.Flags().StringVar(&flags.title, "cluster-name", "default", "name of the cluster in the report")
	command.Flags().StringArrayVar(&flags.contexts, "context", nil,
		"context of the kubeconfig, or CLUSTER-ID=CONTEXT where the name of the context is not the cluster's ID; given several\n"+
			"times, the report is of all these clusters; --cluster-id is for a report without it")
	return command
}

// validate reads the contexts, too.
func (f *reportFlags) validate(given func(flag string) bool) error {
	if !slices.Contains(report.Formats, f.format) {
		return errors.New("--output: must be " + strings.Join(report.Formats, ", "))
	}
	if f.since < time.Hour {
		return errors.New("--since: must be a duration of at least 1h")
	}
	if len(f.contexts) > 1 && given("cluster-name") {
		return errors.New("--cluster-name: must not be given with several clusters: name each by --context CLUSTER-ID=CONTEXT")
	}
	return cmp.Or(f.validateContexts(), f.Validate())
}

func (f *reportFlags) validateContexts() error {
	clusters, contexts := map[string]bool{}, map[string]bool{}
	for _, each := range f.contexts {
		id, context := contextOf(each)
		switch {
		case context == "":
			return fmt.Errorf("--context %q: must be CONTEXT or CLUSTER-ID=CONTEXT", each)
		case !process.ValidClusterID(id):
			return fmt.Errorf("--context %q: must be CLUSTER-ID=CONTEXT, with an ID of %s", each, process.ClusterIDFormat)
		case clusters[id]:
			return fmt.Errorf("--context %q: must not be given twice for cluster %s", each, id)
		case contexts[context]:
			return fmt.Errorf("--context %q: context %s must not be given twice", each, context)
		}
		clusters[id], contexts[context] = true, true
	}
	return nil
}

// contextOf reads a value of --context. Without an ID in it the context's name is the cluster's ID.
func contextOf(flag string) (id, context string) {
	if id, context, both := strings.Cut(flag, "="); both {
		return id, context
	}
	return flag, flag
}

// sources are the clusters of all contexts; without one, that of the current context. titled: --cluster-name is given.
func (f *reportFlags) sources(titled bool) []report.Source {
	if len(f.contexts) == 0 {
		return []report.Source{f.source(f.title, f.ClusterID, "")}
	}
	var sources []report.Source
	for _, each := range f.contexts {
		id, context := contextOf(each)
		title := id
		if titled {
			title = f.title
		}
		sources = append(sources, f.source(title, id, context))
	}
	return sources
}

func (f *reportFlags) source(title, id, context string) report.Source {
	return report.Source{
		Name: title, Scope: velero.QuotaScope{ClusterID: id, OADPNamespace: f.OADPNamespace},
		Open: func() (client.Client, error) { return f.KubernetesOf(context) },
	}
}
