package tools

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
)

// This decides the bytes of a program that is shipped.
var (
	// ShippedEnv and ShippedFlags are those of the Makefile and of the Dockerfile.
	ShippedEnv   = []string{"CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOFLAGS=-buildvcs=false -trimpath -gcflags=all=-dwarf=false"}
	ShippedFlags = []string{"-trimpath", "-tags=disable_grpc_modules"}
	// ShippedDefaults are Go's own: an environment that has others would make other programs.
	ShippedDefaults = []string{"GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off"}
)

// Shipped is a program that is shipped.
type Shipped struct {
	// Root is the folder of the sources, Package that of the program in it.
	Root, Package string
	// OS and Arch are Go's names.
	OS, Arch string
	// LDFlags are those of the linker.
	LDFlags string
}

// Build compiles the program. The same sources and Go give the same bytes.
func (s Shipped) Build(ctx context.Context, path string) error {
	args := slices.Concat([]string{"build"}, ShippedFlags, []string{"-ldflags=" + s.LDFlags, "-o", path, s.Package})
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = s.Root
	command.Env = slices.Concat(os.Environ(), ShippedEnv, ShippedDefaults, []string{"GOOS=" + s.OS, "GOARCH=" + s.Arch})
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s for %s/%s: %w\n%s", s.Package, s.OS, s.Arch, err, output)
	}
	return nil
}
