package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const modulePath = "holdfast.dev/holdfast"

// Root returns the folder of this module's go.mod: the nearest one above the working directory that declares it.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the module root: %w", err)
	}
	start := dir
	for {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && declares(content, modulePath) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.mod of module %s in %s or above: run this from the checkout", modulePath, start)
		}
		dir = parent
	}
}

func declares(goMod []byte, module string) bool {
	for line := range strings.Lines(string(goMod)) {
		if rest, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(rest) == module
		}
	}
	return false
}

// goEnv is what of the Go installation decides whether a cached binary may be used.
type goEnv struct {
	GOVERSION, GOOS, GOARCH string
}

func readGoEnv(ctx context.Context, dir string) (goEnv, error) {
	var env goEnv
	out, err := goOutput(ctx, dir, "env", "-json", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return env, err
	}
	if err := json.Unmarshal(out, &env); err != nil {
		return env, fmt.Errorf("read the output of go env: %w", err)
	}
	return env, nil
}

// moduleVersion returns the version of module that the go.mod in dir requires.
func moduleVersion(ctx context.Context, dir, module string) (string, error) {
	out, err := goOutput(ctx, dir, "mod", "edit", "-json")
	if err != nil {
		return "", err
	}
	var file struct {
		Module  struct{ Path string }
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(out, &file); err != nil {
		return "", fmt.Errorf("read the output of go mod edit in %s: %w", dir, err)
	}
	if file.Module.Path == module {
		return "devel", nil
	}
	for _, r := range file.Require {
		if r.Path == module {
			return r.Version, nil
		}
	}
	return "", fmt.Errorf("%s does not require %s", filepath.Join(dir, "go.mod"), module)
}

func goOutput(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = buildEnv()
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		return nil, fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}

// buildEnv is the environment of every go command: static binaries, no workspace of the user's in between, and the version of Go
// that a component's go.mod wants.
func buildEnv() []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOTOOLCHAIN=auto")
}
