package tenant

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

func (o *options) restoreCommands() []*cobra.Command {
	return []*cobra.Command{o.createRestoreCommand(), o.getCommand(restores), o.waitCommand(restores), o.logsCommand(restores)}
}

type restoreFlags struct {
	*creation
	selection
	source
	existing string
}

// source are the flags that name a backup, or a plan for its last good one.
type source struct{ backup, plan string }

func (s *source) validate() error {
	if (s.backup == "") == (s.plan == "") {
		return errors.New("--from-backup or --from-plan: one of them must be given, not both")
	}
	if s.backup != "" {
		return validName("--from-backup", s.backup)
	}
	return validName("--from-plan", s.plan)
}

// lastGood returns the name of the backup, which may be a plan's last good one.
func (s *source) lastGood(command *cobra.Command, from *cluster) (string, error) {
	if s.plan == "" {
		return s.backup, nil
	}
	object, err := from.get(command, plans, s.plan)
	if err != nil {
		return "", err
	}
	good := object.(*holdfastv1alpha1.BackupPlan).Status.LastGood
	if good == nil {
		return "", fmt.Errorf("plan %s has no good backup yet", s.plan)
	}
	return good.Name, nil
}

func (o *options) createRestoreCommand() *cobra.Command {
	f := restoreFlags{creation: newCreation()}
	command := &cobra.Command{
		Use: "create [NAME]", Short: "Restore a backup into its namespace",
		Long: `Restore a backup into its namespace. Existing objects stay as they are unless --existing-resource-policy is update.
Without NAME the API server makes one from the backup's.`,
		Example: `  kubectl holdfast restore create --from-backup before-upgrade --wait
  kubectl holdfast restore create undo --from-plan nightly --include-resources configmaps,deployments.apps`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, args []string) error { return o.createRestore(command, &f, args) },
	}
	f.bind(command)
	f.bindSelection(command.Flags())
	command.Flags().StringVar(&f.backup, "from-backup", "", "the backup to restore")
	command.Flags().StringVar(&f.plan, "from-plan", "", "the plan whose last good backup to restore")
	command.Flags().StringVar(&f.existing, "existing-resource-policy", "",
		"none or update: what becomes of objects that exist (default none)")
	policies := []cobra.Completion{string(velerov1.PolicyTypeNone), string(velerov1.PolicyTypeUpdate)}
	complete(command, "existing-resource-policy", cobra.FixedCompletions(policies, cobra.ShellCompDirectiveNoFileComp))
	o.value(command, "from-backup", backups)
	o.value(command, "from-plan", plans)
	return command
}

func (o *options) createRestore(command *cobra.Command, f *restoreFlags, args []string) error {
	if err := f.creation.validate(command.Flags()); err != nil {
		return err
	}
	if err := f.source.validate(); err != nil {
		return err
	}
	labels, err := f.labels()
	if err != nil {
		return err
	}
	switch velerov1.PolicyType(f.existing) {
	case "", velerov1.PolicyTypeNone, velerov1.PolicyTypeUpdate:
	default:
		return errors.New("--existing-resource-policy: must be none or update")
	}
	to, err := o.cluster()
	if err != nil {
		return err
	}
	backup, err := f.lastGood(command, to)
	if err != nil {
		return err
	}
	nar := &oadpv1alpha1.NonAdminRestore{Spec: oadpv1alpha1.NonAdminRestoreSpec{RestoreSpec: &velerov1.RestoreSpec{
		BackupName: backup, IncludedResources: f.include, ExcludedResources: f.exclude, LabelSelector: labels,
		ExistingResourcePolicy: velerov1.PolicyType(f.existing),
	}}}
	if err := named(&nar.ObjectMeta, args, backup); err != nil {
		return err
	}
	return o.createAndAwait(command, f.creation, to, restores, nar)
}
