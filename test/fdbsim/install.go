package fdbsim

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"holdfast.dev/holdfast/test/fdbsim/state"
	"holdfast.dev/holdfast/test/fdbsim/tool"
	"holdfast.dev/holdfast/test/tools"
)

// DefaultPatch is the patch level of a version that is given as major.minor.
const DefaultPatch = "72"

// built is the program, compiled once for each test binary. Go's build cache makes that quick.
var built = sync.OnceValues(func() (string, error) {
	root, err := tools.Root()
	if err != nil {
		return "", err
	}
	cache, err := tools.CacheDir()
	if err != nil {
		return "", err
	}
	// One folder per checkout, so that two of them do not lay each other's program.
	program := filepath.Join(cache, "bin", fmt.Sprintf("fdbsim-%.6x", sha256.Sum256([]byte(root))), "fdbsim")
	ctx := context.Background()
	unlock, err := tools.LockFile(ctx, filepath.Dir(program)+".lock", func() {})
	if err != nil {
		return "", err
	}
	defer unlock()
	command := exec.CommandContext(ctx, "go", "-C", "test", "build", "-o", program+".new", "./fdbsim/cmd/fdbsim")
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build fdbsim: %w: %s", err, output)
	}
	return program, os.Rename(program+".new", program)
})

// Install lays the tools at `<binDir>/<major.minor>/<tool>` for each version, and returns the state that they share, in
// stateDir. A version is "7.3", or "7.3.48" for a certain release; 7.3 is 7.3.72.
func Install(binDir, stateDir string, versions ...string) (*Sim, error) {
	stateDir, err := filepath.Abs(stateDir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(stateDir, 0o755); err != nil {
		return nil, fmt.Errorf("make the state's folder: %w", err)
	}
	program, err := built()
	if err != nil {
		return nil, err
	}
	for _, version := range versions {
		if err := lay(program, binDir, stateDir, version); err != nil {
			return nil, fmt.Errorf("install version %s: %w", version, err)
		}
	}
	return &Sim{Store: state.Store{Dir: stateDir}, BinDir: binDir}, nil
}

func lay(program, binDir, stateDir, version string) error {
	parts := strings.Split(version, ".")
	switch len(parts) {
	case 2:
		version += "." + DefaultPatch
	case 3:
	default:
		return errors.New("a version is major.minor or major.minor.patch")
	}
	folder := filepath.Join(binDir, parts[0]+"."+parts[1])
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	content, err := json.Marshal(settings{StateDir: stateDir, Version: version})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, settingsFile), content, 0o644); err != nil {
		return err
	}
	first := filepath.Join(folder, tool.Names[0])
	if err := place(program, first); err != nil {
		return err
	}
	for _, name := range tool.Names[1:] {
		if err := place(first, filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// place makes a program available at a path: as a link, on another file system as a copy.
func place(program, path string) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	if os.Link(program, path) == nil {
		return nil
	}
	return copyProgram(program, path)
}

func copyProgram(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
