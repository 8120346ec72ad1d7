// Command holdfast-image builds Holdfast's container image without a container engine; `make image` runs it.
//
//	holdfast-image -into FOLDER [-name NAME] [-version VERSION] [-platforms PLATFORMS] [-base REFERENCE]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"holdfast.dev/holdfast/test/image"
	"holdfast.dev/holdfast/test/tools"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "holdfast-image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	into := flag.String("into", "", "`folder` for the archive and its documents")
	name := flag.String("name", "holdfast", "`name` of the archive")
	version := flag.String("version", "", "`version` of a release, for example v0.1.0")
	platforms := flag.String("platforms", "linux/amd64,linux/arm64", "comma-separated `platforms`")
	base := flag.String("base", "", "`reference` of the image to lay the programs on; none is scratch")
	flag.Parse()
	if *into == "" {
		return errors.New("-into: must be given; `make image` gives it")
	}
	root, err := tools.Root()
	if err != nil {
		return err
	}
	source, err := image.ReadSource(ctx, root)
	if err != nil {
		return err
	}
	if *version != "" && source.Modified {
		return fmt.Errorf("-version %s: files differ from commit %s: commit or remove them", *version, source.Commit)
	}
	options := image.Options{
		Source: source, Name: *name, Version: *version, Base: *base, Into: *into,
		Report: func(what string) { fmt.Fprintln(os.Stderr, what) },
	}
	for text := range strings.SplitSeq(*platforms, ",") {
		platform, err := v1.ParsePlatform(text)
		if err != nil {
			return fmt.Errorf("-platforms: %q: %w", text, err)
		}
		options.Platforms = append(options.Platforms, *platform)
	}
	built, err := image.Build(ctx, options)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n%s\n", built.Archive, built.Digest)
	for _, document := range built.Documents {
		fmt.Println(document)
	}
	if source.Modified {
		fmt.Fprintln(os.Stderr, "files differ from commit "+source.Commit+": the image says so, too")
	}
	return nil
}
