package tenant

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"holdfast.dev/holdfast/starter/terminal"
)

// version is the release's: the linker sets it (test/tools/plugin).
var version = "(devel)"

// Status is what the process ends with.
type Status int

// The statuses.
const (
	// StatusGood: done; with --wait, it ended well.
	StatusGood Status = 0
	// StatusError: the command could not be carried out.
	StatusError Status = 1
	// StatusBad: what was waited for was refused, or has not ended well.
	StatusBad Status = 2
	// StatusTimeout: --timeout was over before the end.
	StatusTimeout Status = 3
	// StatusInterrupted: it was left with Ctrl-C.
	StatusInterrupted Status = 130
)

// endedError is an end that is no error of the command's, with what is left to say of it, line by line.
type endedError struct {
	status Status
	lines  []string
}

func (e *endedError) Error() string { return strings.Join(e.lines, "; ") }

func ended(status Status, lines ...string) error { return &endedError{status, lines} }

// Main runs the command of the process until it ends, and returns its status.
func Main() Status {
	klog.SetLogger(logr.Discard()) // client-go would write between the lines of the progress
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	return Run(ctx, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, os.Args[1:])
}

// Run runs the command with these arguments. The end of ctx counts as Ctrl-C.
func Run(ctx context.Context, streams genericiooptions.IOStreams, args []string) Status {
	root := Command(streams) //nolint:contextcheck // its commands get it from ExecuteContext
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var end *endedError
	switch {
	case err == nil:
		return StatusGood
	case errors.As(err, &end):
		for _, line := range end.lines {
			fmt.Fprintln(streams.ErrOut, terminal.Printable(line))
		}
		return end.status
	case ctx.Err() != nil:
		return StatusInterrupted
	}
	for i, line := range strings.Split(strings.TrimSpace(err.Error()), "\n") {
		begin := "error: "
		if i > 0 {
			begin = "  " // not to be taken for a line of ours
		}
		fmt.Fprintln(streams.ErrOut, begin+terminal.Printable(strings.ReplaceAll(line, "\t", "  ")))
	}
	return StatusError
}

// Command is the whole command.
func Command(streams genericiooptions.IOStreams) *cobra.Command {
	o := newOptions(streams)
	root := &cobra.Command{
		Use:           "kubectl-holdfast",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl holdfast"},
		Short:         "Back up and restore your own namespace",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Long: `Back up and restore your own namespace.

Ctrl-C ends a command, not what it has begun: that goes on in the cluster, and "wait" follows it again.
Exit status: 0 done, with --wait ended well; 1 error; 2 refused, or not ended well; 3 --timeout is over; 130 Ctrl-C.`,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	o.config.AddFlags(root.PersistentFlags())
	root.AddCommand(
		group("backup", "Make, follow and delete backups", o.backupCommands()...),
		group("restore", "Restore backups", o.restoreCommands()...),
		group("plan", "Run, pause and resume backup plans", o.planCommands()...),
	)
	return root
}

func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	parent := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	parent.AddCommand(commands...)
	return parent
}
