// Command holdfast-tools builds the programs that Holdfast is tested and developed with.
//
//	holdfast-tools [NAME|stack|dev|long ...]   builds them (all without a name) and prints where they are
//	holdfast-tools -path NAME                  builds it when missing and prints only its path
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"holdfast.dev/holdfast/test/tools"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		if errors.Is(err, context.Canceled) {
			err = errors.New("interrupted")
		}
		fmt.Fprintln(os.Stderr, "holdfast-tools:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	path := flag.String("path", "", "print the path of this one `tool`, building it when missing; progress goes to standard error")
	flag.Parse()
	if *path != "" {
		if flag.NArg() > 0 {
			return fmt.Errorf("-path takes one tool, and no more arguments: %q", flag.Args())
		}
		binary, err := tools.Path(ctx, *path)
		if err != nil {
			return err
		}
		fmt.Println(binary)
		return nil
	}
	paths, err := tools.Build(ctx, flag.Args(), os.Stdout)
	if err != nil {
		return err
	}
	for _, name := range tools.Names() {
		if path, ok := paths[name]; ok {
			fmt.Printf("%-24s %s\n", name, path)
		}
	}
	return nil
}
