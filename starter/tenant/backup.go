package tenant

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

func (o *options) backupCommands() []*cobra.Command {
	return []*cobra.Command{
		o.createBackupCommand(), o.getCommand(backups), o.waitCommand(backups), o.logsCommand(backups), o.deleteBackupCommand(),
	}
}

// selection are the flags that choose what is backed up or restored, as the velero command has them.
type selection struct {
	include, exclude []string
	selector         string
}

func (s *selection) bindSelection(flags *pflag.FlagSet) {
	flags.StringSliceVar(&s.include, "include-resources", nil, "resources, for example deployments.apps,configmaps (default: all)")
	flags.StringSliceVar(&s.exclude, "exclude-resources", nil, "resources to leave out")
	flags.StringVarP(&s.selector, "selector", "l", "", "only objects with these labels, for example app=web")
}

func (s *selection) labels() (*metav1.LabelSelector, error) {
	if s.selector == "" {
		return nil, nil //nolint:nilnil // no selector selects all
	}
	parsed, err := metav1.ParseToLabelSelector(s.selector)
	if err != nil {
		return nil, fmt.Errorf("--selector: %w", err)
	}
	return parsed, nil
}

type backupFlags struct {
	*creation
	selection
	ttl              time.Duration
	location         string
	snapshots, files bool
}

// spec is what the flags request. What they do not is left to the administrator's defaults.
func (f *backupFlags) spec(flags *pflag.FlagSet) (*velerov1.BackupSpec, error) {
	labels, err := f.labels()
	if err != nil {
		return nil, err
	}
	if f.ttl < 0 {
		return nil, errors.New("--ttl: must be a duration of 0 or more")
	}
	spec := &velerov1.BackupSpec{
		IncludedResources: f.include, ExcludedResources: f.exclude, LabelSelector: labels,
		StorageLocation: f.location, TTL: metav1.Duration{Duration: f.ttl},
	}
	if flags.Changed("snapshot-volumes") {
		spec.SnapshotVolumes = &f.snapshots
	}
	if flags.Changed("default-volumes-to-fs-backup") {
		spec.DefaultVolumesToFsBackup = &f.files
	}
	return spec, nil
}

func (o *options) createBackupCommand() *cobra.Command {
	f := backupFlags{creation: newCreation()}
	command := &cobra.Command{
		Use: "create NAME", Short: "Back up the namespace, or a part of it",
		Example: `  kubectl holdfast backup create before-upgrade --wait
  kubectl holdfast backup create web -l app=web --ttl 168h --storage-location own`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, args []string) error {
			if err := f.validate(command.Flags()); err != nil {
				return err
			}
			spec, err := f.spec(command.Flags())
			if err != nil {
				return err
			}
			nab := &oadpv1alpha1.NonAdminBackup{Spec: oadpv1alpha1.NonAdminBackupSpec{BackupSpec: spec}}
			if err := named(&nab.ObjectMeta, args, ""); err != nil {
				return err
			}
			to, err := o.cluster()
			if err != nil {
				return err
			}
			return o.createAndAwait(command, f.creation, to, backups, nab)
		},
	}
	f.bind(command)
	f.bindSelection(command.Flags())
	command.Flags().DurationVar(&f.ttl, "ttl", 0, "how long the backup is kept (default: as the administrator has it)")
	command.Flags().StringVar(&f.location, "storage-location", "",
		"a NonAdminBackupStorageLocation of the namespace (default: the administrator's)")
	o.value(command, "storage-location", locations)
	command.Flags().BoolVar(&f.snapshots, "snapshot-volumes", false, "take snapshots of volumes (default: as Velero is set up)")
	command.Flags().BoolVar(&f.files, "default-volumes-to-fs-backup", false,
		"copy the files of all volumes (default: as Velero is set up)")
	return command
}

type deletionFlags struct {
	waiting
	confirmed, keepData bool
}

func (o *options) deleteBackupCommand() *cobra.Command {
	var f deletionFlags
	command := &cobra.Command{
		Use: "delete NAME...", Short: "Delete backups with their data",
		Long: `Delete backups with their data, and their restores' logs, after a confirmation, unless --confirm is given.

The object goes when the data are gone. With --keep-data it goes at once, and the data stay in the object store.`,
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: o.more(backups),
		RunE: func(command *cobra.Command, args []string) error { return o.deleteBackups(command, &f, args) },
	}
	f.bind(command.Flags())
	command.Flags().BoolVar(&f.confirmed, "confirm", false, "delete without a question")
	command.Flags().BoolVar(&f.keepData, "keep-data", false, "delete the objects alone (spec.forceDeleteBackup)")
	return command
}

func (o *options) deleteBackups(command *cobra.Command, f *deletionFlags, names []string) error {
	if err := f.validate(command.Flags()); err != nil {
		return err
	}
	from, err := o.cluster()
	if err != nil {
		return err
	}
	var found []*oadpv1alpha1.NonAdminBackup
	for _, name := range names { // all are there, or none is deleted
		object, err := from.get(command, backups, name)
		if err != nil {
			return err
		}
		found = append(found, object.(*oadpv1alpha1.NonAdminBackup))
	}
	what := fmt.Sprintf("Delete %s of namespace %s with the data", strings.Join(names, ", "), from.namespace)
	if f.keepData {
		what = fmt.Sprintf("Delete %s of namespace %s, and leave the data in the object store",
			strings.Join(names, ", "), from.namespace)
	}
	if !f.confirmed && !o.agreed(command.Context(), what) {
		if command.Context().Err() != nil {
			return ended(StatusInterrupted, "nothing was deleted")
		}
		return errors.New("nothing was deleted: not confirmed (--confirm deletes at once)")
	}
	for _, nab := range found {
		if err := o.deleteBackup(command, f, from, nab); err != nil {
			return err
		}
	}
	for _, nab := range found {
		if err := o.awaitDeletion(command, f, from, nab); err != nil {
			return err
		}
	}
	return nil
}
