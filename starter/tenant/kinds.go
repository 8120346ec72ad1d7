package tenant

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// kind is a kind of object that the commands are about.
type kind struct {
	// noun is its name on the command line, resource its full one for the API server.
	noun, resource string
	// singular is how kubectl names one, before its own name.
	singular string
	object   func() client.Object
	list     func() client.ObjectList
}

var (
	backups = kind{
		noun: "backup", resource: "nonadminbackups.oadp.openshift.io", singular: "nonadminbackup.oadp.openshift.io",
		object: func() client.Object { return &oadpv1alpha1.NonAdminBackup{} },
		list:   func() client.ObjectList { return &oadpv1alpha1.NonAdminBackupList{} },
	}
	restores = kind{
		noun: "restore", resource: "nonadminrestores.oadp.openshift.io",
		object: func() client.Object { return &oadpv1alpha1.NonAdminRestore{} },
		list:   func() client.ObjectList { return &oadpv1alpha1.NonAdminRestoreList{} },
	}
	plans = kind{
		noun: "plan", resource: "backupplans.holdfast.dev", singular: "backupplan.holdfast.dev",
		object: func() client.Object { return &holdfastv1alpha1.BackupPlan{} },
		list:   func() client.ObjectList { return &holdfastv1alpha1.BackupPlanList{} },
	}
	locations = kind{
		noun: "storage location", resource: "nonadminbackupstoragelocations.oadp.openshift.io",
		object: func() client.Object { return &oadpv1alpha1.NonAdminBackupStorageLocation{} },
		list:   func() client.ObjectList { return &oadpv1alpha1.NonAdminBackupStorageLocationList{} },
	}
	downloads = kind{
		noun: "download", resource: "nonadmindownloadrequests.oadp.openshift.io",
		object: func() client.Object { return &oadpv1alpha1.NonAdminDownloadRequest{} },
		list:   func() client.ObjectList { return &oadpv1alpha1.NonAdminDownloadRequestList{} },
	}
)

// said names an object as kubectl does when it has changed it.
func (k kind) said(name string) string { return k.singular + "/" + name }

// completionTimeout is how long the shell of a person waits for names at most.
const completionTimeout = 3 * time.Second

// one completes the name of the one object that a command is about.
func (o *options) one(kind kind) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return o.names(command, kind), cobra.ShellCompDirectiveNoFileComp
	}
}

// more completes the names of several.
func (o *options) more(kind kind) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		left := slices.DeleteFunc(o.names(command, kind), func(name cobra.Completion) bool { return slices.Contains(args, name) })
		return left, cobra.ShellCompDirectiveNoFileComp
	}
}

// value has the shell complete a flag with the name of an object.
func (o *options) value(command *cobra.Command, flag string, kind kind) {
	complete(command, flag, func(command *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return o.names(command, kind), cobra.ShellCompDirectiveNoFileComp
	})
}

// names are those of the namespace's objects of a kind; none if they cannot be read.
func (o *options) names(command *cobra.Command, kind kind) []cobra.Completion {
	ctx, cancel := context.WithTimeout(command.Context(), completionTimeout)
	defer cancel()
	from, err := o.cluster()
	if err != nil {
		return nil
	}
	found := kind.list()
	if err := from.List(ctx, found, client.InNamespace(from.namespace)); err != nil {
		return nil
	}
	var names []cobra.Completion
	_ = meta.EachListItem(found, func(item runtime.Object) error {
		names = append(names, item.(client.Object).GetName())
		return nil
	})
	return names
}

// complete has the shell complete the values of a flag.
func complete(command *cobra.Command, flag string, values cobra.CompletionFunc) {
	_ = command.RegisterFlagCompletionFunc(flag, values) // an error would say that there is no such flag
}
