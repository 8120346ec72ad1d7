package tenant

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/starter/tenant/progress"
)

// agreed prints a question and reports whether the answer is yes. Without anybody to answer it is no.
func (o *options) agreed(ctx context.Context, question string) bool {
	fmt.Fprintf(o.ErrOut, "%s? [y/N] ", question)
	answered := make(chan string, 1)
	go func() { // it ends with the process
		answer, _ := bufio.NewReader(o.In).ReadString('\n')
		answered <- strings.ToLower(strings.TrimSpace(answer))
	}()
	select {
	case answer := <-answered:
		if answer == "y" || answer == "yes" {
			return true
		}
	case <-ctx.Done():
	}
	fmt.Fprintln(o.ErrOut)
	return false
}

// deleteBackup requests the deletion of this very object.
func (o *options) deleteBackup(command *cobra.Command, f *deletionFlags, from *cluster, nab *oadpv1alpha1.NonAdminBackup) error {
	field := "deleteBackup"
	if f.keepData {
		field = "forceDeleteBackup"
	}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{%q:true}}`, nab.UID, field)
	err := from.Patch(command.Context(), nab.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	switch {
	case apierrors.IsNotFound(err): // somebody was faster
		return nil
	case err != nil:
		return from.explain(backups, "delete", nab.Name, err)
	}
	fmt.Fprintln(o.Out, backups.said(nab.Name), "deletion requested")
	return nil
}

// awaitDeletion waits until the object is gone, with --wait.
func (o *options) awaitDeletion(command *cobra.Command, f *deletionFlags, from *cluster, nab *oadpv1alpha1.NonAdminBackup) error {
	if !f.wait {
		return nil
	}
	_, err := o.follow(command, &f.waiting, from, backups, nab, progress.OfDeletion)
	if errors.Is(err, progress.ErrGone) {
		fmt.Fprintln(o.Out, backups.said(nab.Name), "deleted")
		return nil
	}
	return left(command, fmt.Sprintf("the deletion of %s goes on in the cluster", nab.Name), err)
}
