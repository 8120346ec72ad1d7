// Command holdfast-gate runs the tests of a stage and decides what their failures mean: see test/README.md. `make test` calls it.
//
//	holdfast-gate race|unit|stacks [FLAG]... -- [GO TEST FLAG]... -- PACKAGE...   runs the tests of the stage in these packages
//	holdfast-gate check                                                           checks test/flakes.txt
//	holdfast-gate flakes                                                          prints how often each test has failed here
//	holdfast-gate passed COMMIT                                                   notes that all stages have passed at it
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"holdfast.dev/holdfast/test/gate"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, gate.ErrRefused):
		os.Exit(1) // its reasons have been printed
	case err != nil:
		fmt.Fprintln(os.Stderr, "holdfast-gate:", err)
		os.Exit(2)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: holdfast-gate race|unit|stacks|check|flakes|passed")
	}
	switch args[0] {
	case "check":
		return gate.Check()
	case "flakes":
		return gate.PrintRates(os.Stdout)
	case "passed":
		if len(args) != 2 {
			return errors.New("usage: holdfast-gate passed COMMIT")
		}
		return gate.Passed(ctx, args[1])
	case gate.Race, gate.Unit, gate.Stacks:
	default:
		return fmt.Errorf("no command %q: must be race, unit, stacks, check, flakes or passed", args[0])
	}
	options := gate.Options{Stage: args[0], Out: os.Stdout}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.BoolVar(&options.Forgive, "forgive", true, "run what failed again, and forgive what passes then")
	flags.BoolVar(&options.Prove, "prove", true, "leave out stacks that passed in the last 24 hours with all that they depend on")
	flags.IntVar(&options.Lanes, "lanes", 2, "how many stacks run at a time")
	flags.StringVar(&options.Gotestsum, "gotestsum", "", "the `path` of gotestsum")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	rest := flags.Args()
	between := slices.Index(rest, "--")
	if options.Gotestsum == "" || between < 0 {
		return errors.New("usage: holdfast-gate race|unit|stacks -gotestsum PATH [FLAG]... -- [GO TEST FLAG]... -- PACKAGES")
	}
	options.Flags, options.Packages = rest[:between], rest[between+1:]
	return gate.Main(ctx, options)
}
