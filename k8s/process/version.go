package process

import (
	"cmp"
	"runtime/debug"
)

// version is set by the linker: -X holdfast.dev/holdfast/k8s/process.version=v0.1.0.
var version string

// Version is that of the program: a release's, or the commit that it was built from; (devel) if nobody said.
func Version() string {
	module := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		module = info.Main.Version
	}
	return cmp.Or(version, module, "(devel)")
}
