package tenant

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/starter/tenant/download"
	"holdfast.dev/holdfast/starter/tenant/progress"
	"holdfast.dev/holdfast/starter/terminal"
)

// logFiles are the files that can be had of a backup or restore, by the value of --file.
var logFiles = map[string]map[string]velerov1.DownloadTargetKind{
	backups.noun:  {"log": velerov1.DownloadTargetKindBackupLog, "results": velerov1.DownloadTargetKindBackupResults},
	restores.noun: {"log": velerov1.DownloadTargetKindRestoreLog, "results": velerov1.DownloadTargetKindRestoreResults},
}

type logFlags struct {
	waiting
	file, ca string
}

const (
	// patience is how long a request waits for its URL without --timeout. Velero answers within seconds.
	patience = 2 * time.Minute
	// cleanup is how long a command that ends tries to delete its request, which expires otherwise.
	cleanup = 5 * time.Second
)

func (o *options) logsCommand(kind kind) *cobra.Command {
	f := logFlags{waiting: waiting{timeout: patience}}
	command := &cobra.Command{
		Use: "logs NAME", Short: "Print Velero's log of a " + kind.noun + " in your own storage location",
		Long: fmt.Sprintf(`Print Velero's log of a %s, or its warnings and errors (--file results).

It must be in a NonAdminBackupStorageLocation of your namespace: files in an administrator's location
are not available.`, kind.noun),
		Args: cobra.ExactArgs(1), ValidArgsFunction: o.one(kind),
		RunE: func(command *cobra.Command, args []string) error { return o.logs(command, kind, &f, args[0]) },
	}
	command.Flags().DurationVar(&f.timeout, "timeout", patience, "how long to wait for the URL of the file at most")
	command.Flags().StringVar(&f.file, "file", "log", "log or results (warnings and errors, as JSON)")
	command.Flags().StringVar(&f.ca, "object-store-ca", "", "file of certificates (PEM) by which the object store is trusted, too")
	complete(command, "file", cobra.FixedCompletions([]cobra.Completion{"log", "results"}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

func (o *options) logs(command *cobra.Command, kind kind, f *logFlags, name string) error {
	target, is := logFiles[kind.noun][f.file]
	if !is {
		return errors.New("--file: must be log or results")
	}
	if f.timeout <= 0 {
		return errors.New("--timeout: must be a duration above 0")
	}
	fetcher, err := download.New(f.ca)
	if err != nil {
		return fmt.Errorf("--object-store-ca: %w", err)
	}
	from, err := o.cluster()
	if err != nil {
		return err
	}
	if _, err := from.get(command, kind, name); err != nil {
		return err
	}
	request := &oadpv1alpha1.NonAdminDownloadRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: from.namespace},
		Spec:       oadpv1alpha1.NonAdminDownloadRequestSpec{Target: velerov1.DownloadTarget{Kind: target, Name: name}},
	}
	if err := named(&request.ObjectMeta, nil, name); err != nil {
		return err
	}
	request.Name, request.GenerateName = request.GenerateName+rand.String(suffixLength), "" // known before it is there
	defer from.forget(command, request)
	if err := from.Create(command.Context(), request, client.FieldOwner(fieldOwner)); err != nil {
		return from.explain(downloads, "create", name, err)
	}
	url, err := o.url(command, f, from, request)
	if err != nil {
		return err
	}
	return fetcher.Copy(command.Context(), terminal.NewWriter(o.Out), url)
}

// forget deletes a request, also after Ctrl-C: its URL opens the file to anyone.
func (c *cluster) forget(command *cobra.Command, request client.Object) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(command.Context()), cleanup)
	defer cancel()
	if err := c.Delete(ctx, request); client.IgnoreNotFound(err) != nil {
		fmt.Fprintf(command.ErrOrStderr(), "download request %s stays until it expires: %s\n", request.GetName(),
			terminal.Printable(err.Error()))
	}
}

// url waits for the URL of the requested file.
func (o *options) url(
	command *cobra.Command, f *logFlags, from *cluster, request *oadpv1alpha1.NonAdminDownloadRequest,
) (url string, err error) {
	state, err := o.follow(command, &f.waiting, from, downloads, request, func(object client.Object) progress.State {
		if answer := object.(*oadpv1alpha1.NonAdminDownloadRequest).Status.VeleroDownloadRequest.Status; answer != nil {
			url = answer.DownloadURL
		}
		return progress.Of(object)
	})
	switch {
	case command.Context().Err() != nil:
		return "", ended(StatusInterrupted)
	case errors.Is(err, errTimeout):
		return "", ended(StatusTimeout, fmt.Sprintf("no URL within %s: Velero, or the location, is not available", f.timeout))
	case errors.Is(err, progress.ErrGone):
		return "", ended(StatusBad, "the download request is gone: it was deleted, or it has expired")
	case err != nil:
		return "", err
	case state.Outcome == progress.Bad:
		return "", ended(StatusBad, fmt.Sprintf("there is no %s of %s: %s", f.file, request.Spec.Target.Name, state.Message),
			"it must be in a NonAdminBackupStorageLocation of namespace "+from.namespace+"; the administrator has the files of others")
	}
	return url, nil
}
