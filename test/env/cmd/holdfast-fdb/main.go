// Command holdfast-fdb lends a FoundationDB cluster of one process to another command, where FoundationDB's own programs are: in
// FDB_BIN_DIR, or in a folder shared/fdb beside the checkout.
//
//	holdfast-fdb -path         prints the folder of the programs, or nothing
//	holdfast-fdb COMMAND ...   runs the command with FDBLOCK_CLUSTER_FILE, the cluster file of a new cluster
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"holdfast.dev/holdfast/test/env"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "holdfast-fdb:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: holdfast-fdb -path, or holdfast-fdb COMMAND [ARGUMENT]")
	}
	programs, err := env.FindFDBPrograms(ctx)
	switch {
	case err != nil:
		return err
	case args[0] == "-path":
		if programs != nil {
			fmt.Println(programs.Dir)
		}
		return nil
	case programs == nil:
		return errors.New("FoundationDB's own programs are neither in FDB_BIN_DIR nor in a folder shared/fdb beside the checkout")
	}
	server, stop, err := env.RunFDBServer(ctx, programs)
	if err != nil {
		return err
	}
	defer stop()
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), "FDBLOCK_CLUSTER_FILE="+server.ClusterFile)
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return nil
}
