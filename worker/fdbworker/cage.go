package fdbworker

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"holdfast.dev/holdfast/activities/fdbtool"
	"holdfast.dev/holdfast/activities/fdbtool/cage"
	"holdfast.dev/holdfast/k8s/probe"
)

// cageFlags are the settings of the cage in which FoundationDB's tools run.
type cageFlags struct {
	Require bool
	Ports   string
	Folders []string
}

func (f *cageFlags) Bind(flags *pflag.FlagSet) {
	flags.BoolVar(&f.Require, "fdb-require-cage", false,
		"do not run FoundationDB's tools, and do not become ready, where the kernel does not support their cage (Landlock, Linux 6.7)")
	flags.StringVar(&f.Ports, "fdb-cage-ports", fdbtool.DefaultPorts,
		"ports of FoundationDB's processes; the tools connect to these, those of the cluster file and that of the store")
	flags.StringSliceVar(&f.Folders, "fdb-cage-folders", nil,
		"files and folders that FoundationDB's tools may read, write and execute besides; for tests")
}

// Validate returns an error of one line that names the flag at fault.
func (f *cageFlags) Validate() error {
	if _, err := fdbtool.ParsePorts(f.Ports); err != nil {
		return fmt.Errorf("--fdb-cage-ports: %w", err)
	}
	for _, folder := range f.Folders {
		if !filepath.IsAbs(folder) {
			return fmt.Errorf("--fdb-cage-folders: must be absolute paths, not %q", folder)
		}
	}
	return nil
}

// closedPorts are the usual ports of API servers, kubelets, etcd and Temporal's services (gRPC and HTTP of the frontend, and the
// services behind it, which do not authenticate): this worker's may listen on other ports besides those that it uses itself.
var closedPorts = []uint16{7233, 7234, 7235, 7236, 7239, 7243, 6443, 10250, 2379, 2380}

// runner runs the tools, which reach neither Temporal nor the API server.
func (f *Flags) runner(temporal, apiServer string) *fdbtool.Runner {
	ports, _ := fdbtool.ParsePorts(f.Cage.Ports) // validated
	return &fdbtool.Runner{
		BinDir: f.BinDir, AllowFileURLs: f.AllowFileURLs, Folders: f.Cage.Folders, RequireCage: f.Cage.Require,
		Ports: ports, ClosedPorts: append([]uint16{portOf(temporal), portOf(apiServer)}, closedPorts...),
	}
}

var endsWithPort = regexp.MustCompile(`:([0-9]{1,5})(/.*)?$`)

// portOf returns the port of an address that is host:port or a URL.
func portOf(address string) uint16 {
	found := endsWithPort.FindStringSubmatch(address)
	if found == nil {
		return 443
	}
	port, _ := strconv.ParseUint(found[1], 10, 16) // 0 if there is no port
	return uint16(port)
}

// Check reports nodes on which the tools run without a cage, or with an incomplete one.
func (f *Flags) Check() probe.Check {
	return probe.Check{
		Name: "fdb-cage", Probe: func(context.Context) error { return cage.Lacking() }, Every: time.Hour, Advisory: !f.Cage.Require,
	}
}
