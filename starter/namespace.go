package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/velero"
)

// namespaceCommand is `holdfast describe namespace`.
func namespaceCommand() *cobra.Command {
	var flags operator.Flags
	command := &cobra.Command{
		Use:   "namespace NAME",
		Short: "Show what a namespace uses of its quota, and which backups wait for a place",
		Long: "Show what the backups of a namespace use of the limits that the administrator's policy has for it (quotas in key " +
			"holdfast of ConfigMap holdfast-policy), and which backups wait.\nNeeds the right to read that ConfigMap, the namespace, " +
			"its NonAdminBackups, and Velero's PodVolumeBackups and DataUploads.",
		Example: "  holdfast describe namespace shop -o json",
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := flags.Validate(); err != nil {
				return err
			}
			if len(validation.IsDNS1123Label(args[0])) > 0 {
				return fmt.Errorf("describe namespace %q: must be the name of a namespace", args[0])
			}
			kubeClient, err := flags.Kubernetes()
			if err != nil {
				return err
			}
			quotas, err := velero.ReadQuotas(command.Context(), kubeClient, velero.QuotaScope{
				ClusterID: flags.ClusterID, OADPNamespace: flags.OADPNamespace, Namespace: args[0],
			}, time.Now())
			if err != nil {
				return err
			}
			return flags.Print(command.OutOrStdout(), &quotas[0], quotas[0].Print)
		},
	}
	flags.BindClusterID(command)
	flags.BindKubernetes(command)
	return command
}
