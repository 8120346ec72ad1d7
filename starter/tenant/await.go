package tenant

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/starter/tenant/progress"
	"holdfast.dev/holdfast/starter/terminal"
)

// errTimeout is the end of a command's own patience.
var errTimeout = errors.New("--timeout is over")

// await follows an object until it is over, with its progress for the person, and says what has come of it.
func (o *options) await(command *cobra.Command, w *waiting, from *cluster, kind kind, object client.Object) error {
	state, err := o.follow(command, w, from, kind, object, progress.Of)
	what := kind.noun + " " + object.GetName()
	switch {
	case errors.Is(err, progress.ErrGone):
		return gone(what)
	case err != nil:
		return left(command, fmt.Sprintf("%[1]s goes on in the cluster; follow it with: kubectl holdfast %[2]s wait %[3]s -n %[4]s",
			what, kind.noun, object.GetName(), from.namespace), err)
	}
	line := what + " " + state.String()
	if state.Outcome == progress.Bad {
		return ended(StatusBad, line, hint(kind, object, from))
	}
	result := o.Out
	if w.machine {
		result = o.ErrOut
	}
	fmt.Fprintln(result, terminal.Printable(line))
	return nil
}

// follow shows the progress of an object until it is over, ctx ends, or the patience of the flags.
func (o *options) follow(
	command *cobra.Command, w *waiting, from *cluster, kind kind, object client.Object, read func(client.Object) progress.State,
) (progress.State, error) {
	ctx := command.Context()
	if w.timeout > 0 {
		if w.until.IsZero() {
			w.until = time.Now().Add(w.timeout)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, w.until, errTimeout)
		defer cancel()
	}
	watched := os.Getenv("CI") == "" && os.Getenv("TERM") != "dumb" // CI's logs have terminals, too
	display := progress.NewDisplay(o.ErrOut, watched)
	defer display.Close()
	return progress.Follow(ctx, from.WithWatch, object, kind.list(), read, display.Show)
}

// left is the end of a command that has not seen the end of what goes on.
func left(command *cobra.Command, goesOn string, err error) error {
	switch {
	case errors.Is(err, errTimeout):
		return ended(StatusTimeout, errTimeout.Error()+": "+goesOn)
	case command.Context().Err() != nil:
		return ended(StatusInterrupted, goesOn)
	}
	return fmt.Errorf("%w (%s)", err, goesOn)
}

// gone is the end of a command about an object that is no longer there.
func gone(what string) error { return ended(StatusBad, what+" is gone: somebody has deleted it") }

// hint is what a person does about an object that has not ended well.
func hint(kind kind, object client.Object, from *cluster) string {
	const text = "more: kubectl describe %[1]s %[2]s -n %[3]s; " +
		"the log, if it is in your own location: kubectl holdfast %[4]s logs %[2]s -n %[3]s"
	return fmt.Sprintf(text, kind.resource, object.GetName(), from.namespace, kind.noun)
}

// waitCommand follows an object that is there.
func (o *options) waitCommand(kind kind) *cobra.Command {
	var w waiting
	command := &cobra.Command{
		Use: "wait NAME", Short: "Wait for the end of a " + kind.noun + ", and show the progress",
		Args: cobra.ExactArgs(1), ValidArgsFunction: o.one(kind),
		RunE: func(command *cobra.Command, args []string) error {
			if err := w.validate(command.Flags()); err != nil {
				return err
			}
			from, err := o.cluster()
			if err != nil {
				return err
			}
			object, err := from.get(command, kind, args[0])
			if err != nil {
				return err
			}
			return o.await(command, &w, from, kind, object)
		},
	}
	w.bindTimeout(command.Flags())
	return command
}
