package env

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

	"holdfast.dev/holdfast/test/tools"
)

const (
	// fdbRelease is the release whose programs are looked for.
	fdbRelease = "7.3"
	// fdbBeside is where they are looked for, beside the checkout.
	fdbBeside = "../shared/fdb"
)

// FDBPrograms are FoundationDB's own programs.
type FDBPrograms struct {
	// Dir has fdbserver, fdbcli, fdbbackup and, where they are, the C library and its headers.
	Dir string
	// Version is what they are, such as 7.3.48.
	Version string
}

var fdbVersion = regexp.MustCompile(`\(v([0-9]+\.[0-9]+\.[0-9]+)\)`)

// FindFDBPrograms finds the programs in the folder 7.3 of FDB_BIN_DIR (from the checkout), or of a folder shared/fdb beside the
// checkout. It returns nil if neither is there.
func FindFDBPrograms(ctx context.Context) (*FDBPrograms, error) {
	root, err := tools.Root()
	if err != nil {
		return nil, err
	}
	place, wanted := fdbBeside, false
	if named := os.Getenv("FDB_BIN_DIR"); named != "" {
		place, wanted = named, true
	}
	if !filepath.IsAbs(place) {
		place = filepath.Join(root, place)
	}
	found := &FDBPrograms{Dir: filepath.Join(place, fdbRelease)}
	for _, program := range []string{"fdbserver", "fdbcli", "fdbbackup"} {
		_, err := exec.LookPath(filepath.Join(found.Dir, program))
		switch {
		case errors.Is(err, fs.ErrNotExist) && !wanted:
			return nil, nil //nolint:nilnil // they are nowhere, which is no error
		case err != nil:
			return nil, fmt.Errorf("find FoundationDB's programs: %w: unset FDB_BIN_DIR, or put them there", err)
		}
	}
	printed, err := exec.CommandContext(ctx, filepath.Join(found.Dir, "fdbcli"), "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("ask fdbcli for its version: %w", err)
	}
	version := fdbVersion.FindSubmatch(printed)
	if version == nil {
		return nil, fmt.Errorf("ask fdbcli for its version: it prints %q", printed)
	}
	found.Version = string(version[1])
	return found, nil
}

// Install lays the tools at binDir/<major.minor>/<tool>, as holdfast-worker and FDBImages look for them. Where the programs came
// through an archive without links, fdbrestore and backup_agent may be texts: fdbbackup is all three, by the name that it is
// called by.
func (p *FDBPrograms) Install(binDir string) error {
	folder := filepath.Join(binDir, fdbRelease)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("lay FoundationDB's tools: %w", err)
	}
	for name, program := range map[string]string{
		"fdbcli": "fdbcli", "fdbbackup": "fdbbackup", "fdbrestore": "fdbbackup", "backup_agent": "fdbbackup",
	} {
		if err := os.Symlink(filepath.Join(p.Dir, program), filepath.Join(folder, name)); err != nil {
			return fmt.Errorf("lay FoundationDB's tools: %w", err)
		}
	}
	return nil
}
