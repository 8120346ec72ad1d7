package image

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// programs are what the image holds, by name, and their packages.
var programs = map[string]string{"holdfast": "./starter", "holdfast-worker": "./worker"}

// Those of the Dockerfile.
var (
	environment = []string{"CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOFLAGS=-buildvcs=false -trimpath -gcflags=all=-dwarf=false"}
	buildFlags  = []string{"-trimpath", "-tags=disable_grpc_modules", "-ldflags=-s -w"}
)

// Source is a checkout of a commit.
type Source struct {
	Folder string
	// Commit is its hash. Modified says that files of the folder differ from it.
	Commit   string
	Modified bool
	// Time is the commit's, and that of everything in the image.
	Time time.Time
}

// ReadSource reads what git says about a folder.
func ReadSource(ctx context.Context, folder string) (Source, error) {
	var read error
	git := func(args ...string) string {
		output, err := exec.CommandContext(ctx, "git", append([]string{"-C", folder}, args...)...).Output()
		if err != nil && read == nil {
			read = fmt.Errorf("git %s in %s: %w", strings.Join(args, " "), folder, err)
		}
		return strings.TrimSpace(string(output))
	}
	source := Source{Folder: folder, Commit: git("rev-parse", "HEAD")}
	at := git("show", "-s", "--format=%cI", "HEAD")
	source.Modified = git("status", "--porcelain", "--untracked-files=no") != ""
	if read != nil {
		return Source{}, read
	}
	committed, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return Source{}, fmt.Errorf("time of commit %s: %w", source.Commit, err)
	}
	source.Time = committed.UTC()
	return source, nil
}

// compile builds the programs for a platform below a folder, and returns their paths by name.
func (s Source) compile(ctx context.Context, platform v1.Platform, into string) (map[string]string, error) {
	built := map[string]string{}
	for name, pkg := range programs {
		path, err := filepath.Abs(filepath.Join(into, platform.OS+"-"+platform.Architecture, name))
		if err != nil {
			return nil, err
		}
		command := exec.CommandContext(ctx, "go", slices.Concat([]string{"build"}, buildFlags, []string{"-o", path, pkg})...)
		command.Dir = s.Folder
		command.Env = slices.Concat(os.Environ(), environment, []string{"GOOS=" + platform.OS, "GOARCH=" + platform.Architecture})
		if output, err := command.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s for %s: %w\n%s", name, platform.String(), err, output)
		}
		built[name] = path
	}
	return built, nil
}
