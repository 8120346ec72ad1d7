package image

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"holdfast.dev/holdfast/test/tools"
)

// programs are what the image holds, by name, and their packages.
var programs = map[string]string{"holdfast": "./starter", "holdfast-worker": "./worker"}

// linker are the linker's flags, as in the Dockerfile: no tables for debuggers, and the version that a program says it is.
func linker(version string) string {
	return "-s -w -X holdfast.dev/holdfast/k8s/process.version=" + version
}

// Source is a checkout of a commit.
type Source struct {
	Folder string
	// Commit is its hash. Modified says that files of the folder differ from it, or that it does not have them.
	Commit   string
	Modified bool
	// Time is the commit's, and that of everything in the image.
	Time time.Time
}

// Revision is the commit, marked if that is not all.
func (s Source) Revision() string {
	if s.Modified {
		return s.Commit + "-dirty"
	}
	return s.Commit
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
	source.Modified = git("status", "--porcelain") != ""
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

// compile builds the programs of a version for a platform below a folder, and returns their paths by name.
func (s Source) compile(
	ctx context.Context, version string, platform v1.Platform, into string,
) (map[string]string, error) {
	built := map[string]string{}
	for name, pkg := range programs {
		path, err := filepath.Abs(filepath.Join(into, platform.OS+"-"+platform.Architecture, name))
		if err != nil {
			return nil, err
		}
		shipped := tools.Shipped{
			Root: s.Folder, Package: pkg, OS: platform.OS, Arch: platform.Architecture, LDFlags: linker(version),
		}
		if err := shipped.Build(ctx, path); err != nil {
			return nil, err
		}
		built[name] = path
	}
	return built, nil
}
