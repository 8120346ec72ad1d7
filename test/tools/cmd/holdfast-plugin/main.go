// Command holdfast-plugin packs `kubectl holdfast` for all platforms, with krew's manifest.
//
//	holdfast-plugin -version VERSION -url URL -out FOLDER
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
	"holdfast.dev/holdfast/test/tools/plugin"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "holdfast-plugin:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	version := flag.String("version", "", "`version` of the plugin, for example v0.1.0")
	url := flag.String("url", "", "`URL` of the folder in which the archives will be")
	out := flag.String("out", "", "`folder` for the archives and the manifest")
	flag.Parse()
	if *version == "" || *url == "" || *out == "" {
		return errors.New("-version, -url and -out: must be given; `make plugin` gives them")
	}
	root, err := tools.Root()
	if err != nil {
		return err
	}
	return plugin.Release{Root: root, Version: *version, URL: *url}.Pack(ctx, *out, os.Stdout)
}
