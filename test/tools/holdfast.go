package tools

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Names of Holdfast's own binaries.
const (
	HoldfastWorker = "holdfast-worker"
	Holdfast       = "holdfast"
)

// BuildHoldfast compiles this checkout's holdfast-worker and holdfast and returns their paths by name. The binaries lie in
// the cache, one folder per checkout and set of build tags; nothing is compiled or linked when nothing has changed.
func BuildHoldfast(ctx context.Context, progress io.Writer, tags ...string) (map[string]string, error) {
	if progress == nil {
		progress = io.Discard
	}
	root, err := Root()
	if err != nil {
		return nil, err
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "bin", fmt.Sprintf("%.6x", sha256.Sum256([]byte(root)))+strings.Join(tags, "-"))
	unlock, err := LockFile(ctx, dir+".lock", func() {
		fmt.Fprintln(progress, "another process is building Holdfast, waiting")
	})
	if err != nil {
		return nil, err
	}
	defer unlock()

	return buildInto(ctx, progress, root, dir, tags)
}

// buildInto compiles the binaries from a folder of sources into another, and returns their paths by name.
func buildInto(ctx context.Context, progress io.Writer, source, dir string, tags []string) (map[string]string, error) {
	paths := map[string]string{}
	for _, b := range []struct{ name, pkg string }{{HoldfastWorker, "./worker"}, {Holdfast, "./starter"}} {
		start := time.Now()
		path := filepath.Join(dir, b.name)
		// As the Makefile compiles it, so that each package is compiled once.
		tags := strings.Join(append([]string{"disable_grpc_modules"}, tags...), ",")
		build := []string{"build", "-trimpath", "-tags", tags, "-o", path, b.pkg}
		command := goCommand{dir: source, args: build, env: os.Environ()}
		if err := runGo(ctx, command, func(string) {}); err != nil {
			return nil, fmt.Errorf("build %s: %w", b.name, err)
		}
		fmt.Fprintf(progress, "%s built (%.1fs)\n", b.name, time.Since(start).Seconds())
		paths[b.name] = path
	}
	return paths, nil
}
