package tools

import (
	"fmt"
	"slices"
	"strings"
)

// Names of the programs that this package can build.
const (
	Etcd                  = "etcd"
	KubeAPIServer         = "kube-apiserver"
	KubeControllerManager = "kube-controller-manager"
	Kubectl               = "kubectl"
	Temporal              = "temporal"
	TemporalServer        = "temporal-server"
	TemporalSQLTool       = "temporal-sql-tool"
	TemporalUI            = "temporal-ui"
	Velero                = "velero"
	VeleroPluginForAWS    = "velero-plugin-for-aws"
	VersityGW             = "versitygw"
	ControllerGen         = "controller-gen"
	GolangciLint          = "golangci-lint"
	Gotestsum             = "gotestsum"
	Workflowcheck         = "workflowcheck"
	Promtool              = "promtool"
	Helm                  = "helm"
	OLMValidate           = "olm-validate"
	Cosign                = "cosign"
)

// Names of groups, accepted wherever a program's name is.
const (
	GroupStack = "stack" // what test/env starts
	GroupDev   = "dev"   // generators, linters, test runner, Helm, OLM's validators
	// GroupProduction is what test/env starts with Options.TemporalServer.
	GroupProduction = "production"
	GroupLong       = "long" // what `make test-long` alone needs
)

var groups = []string{GroupStack, GroupDev, GroupProduction, GroupLong}

// tool describes one program and where it comes from.
type tool struct {
	name   string
	group  string
	module string // folder with the go.mod, below test/tools
	pkg    string // package main to build
	from   string // path of the module that provides pkg and gives the version
	// ldflags returns the linker's -X values for a version such as v1.36.3; nil when the program needs none.
	ldflags func(version string) []string
	// tags are build tags, separated by commas; all programs of one module share them.
	tags string
	// probe makes the program print its version; nil if it has no such option, or is not what others call by its name.
	probe []string
	// seconds a cold build takes on two cores; only used to begin with the longest and to say what to expect.
	seconds int
}

var catalog = []tool{
	{
		name: Etcd, group: GroupStack, module: "etcd",
		pkg: "go.etcd.io/etcd/server/v3", from: "go.etcd.io/etcd/server/v3", seconds: 40,
		probe: []string{"--version"},
	},
	kubernetes(KubeAPIServer, 260, "--version"),
	kubernetes(KubeControllerManager, 80, "--version"),
	kubernetes(Kubectl, 30, "version", "--client"),
	{
		name: Temporal, group: GroupStack, module: "temporal", pkg: "github.com/temporalio/cli/cmd/temporal",
		from: "github.com/temporalio/cli", seconds: 150, ldflags: temporalVersion, probe: []string{"--version"},
	},
	temporalServer(TemporalServer, "server", 300),
	temporalServer(TemporalSQLTool, "tools/sql", 10),
	{
		name: TemporalUI, group: GroupProduction, module: "temporal-ui", pkg: "github.com/temporalio/ui-server/v2/cmd/server",
		from: "github.com/temporalio/ui-server/v2", seconds: 40,
	},
	{
		name: Velero, group: GroupStack, module: "velero", pkg: "./cmd/velero",
		from: "github.com/vmware-tanzu/velero", seconds: 270,
		ldflags: linked("github.com/vmware-tanzu/velero/pkg/buildinfo.Version"),
	},
	{
		name: VeleroPluginForAWS, group: GroupStack, module: "velero-plugin-for-aws", seconds: 120,
		pkg:  "github.com/vmware-tanzu/velero-plugin-for-aws/velero-plugin-for-aws",
		from: "github.com/vmware-tanzu/velero-plugin-for-aws",
	},
	{
		name: VersityGW, group: GroupStack, module: "versitygw", pkg: "github.com/versity/versitygw/cmd/versitygw",
		from: "github.com/versity/versitygw", seconds: 80, ldflags: linked("main.Version"), probe: []string{"--version"},
	},
	{
		name: ControllerGen, group: GroupDev, module: "controller-gen", pkg: "sigs.k8s.io/controller-tools/cmd/controller-gen",
		from: "sigs.k8s.io/controller-tools", seconds: 45,
	},
	{
		name: GolangciLint, group: GroupDev, module: "golangci-lint", seconds: 260,
		pkg: "github.com/golangci/golangci-lint/v2/cmd/golangci-lint", from: "github.com/golangci/golangci-lint/v2",
	},
	{
		name: Gotestsum, group: GroupDev, module: "gotestsum",
		pkg: "gotest.tools/gotestsum", from: "gotest.tools/gotestsum", seconds: 20,
	},
	{
		name: Workflowcheck, group: GroupDev, module: "workflowcheck", seconds: 15,
		pkg: "go.temporal.io/sdk/contrib/tools/workflowcheck", from: "go.temporal.io/sdk/contrib/tools/workflowcheck",
	},
	{
		name: Promtool, group: GroupDev, module: "promtool", seconds: 130, tags: "remove_all_sd", // no cloud's service discovery
		pkg: "github.com/prometheus/prometheus/cmd/promtool", from: "github.com/prometheus/prometheus",
	},
	{
		name: Helm, group: GroupDev, module: "helm", pkg: "helm.sh/helm/v4/cmd/helm", from: "helm.sh/helm/v4", seconds: 200,
		ldflags: linked("helm.sh/helm/v4/internal/version.version"),
	},
	{
		name: OLMValidate, group: GroupDev, module: "olm", pkg: "./cmd/olm-validate", from: "github.com/operator-framework/api",
		seconds: 60,
	},
	{
		name: Cosign, group: GroupLong, module: "cosign", pkg: "github.com/sigstore/cosign/v3/cmd/cosign",
		from: "github.com/sigstore/cosign/v3", seconds: 280,
	},
}

// Names returns the name of every program, in the order of the catalog.
func Names() []string {
	names := make([]string, 0, len(catalog))
	for _, t := range catalog {
		names = append(names, t.name)
	}
	return names
}

func kubernetes(name string, seconds int, probe ...string) tool {
	return tool{
		name: name, probe: probe, group: GroupStack, module: "kubernetes", pkg: "k8s.io/kubernetes/cmd/" + name,
		from: "k8s.io/kubernetes", seconds: seconds, ldflags: kubernetesVersion,
	}
}

func temporalServer(name, pkg string, seconds int) tool {
	const server = "go.temporal.io/server"
	return tool{
		name: name, group: GroupProduction, module: "temporal-server", pkg: server + "/cmd/" + pkg, from: server, seconds: seconds,
		tags: "disable_grpc_modules", // archives in Google's buckets are read by HTTP
	}
}

// kubernetesVersion is needed because a Kubernetes binary built without it calls itself v0.0.0-master.
func kubernetesVersion(version string) []string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags, "-X "+pkg+".gitVersion="+version, "-X "+pkg+".gitMajor="+major, "-X "+pkg+".gitMinor="+minor)
	}
	return flags
}

// temporalVersion is without the v: the command parses it when it speaks to a server.
func temporalVersion(version string) []string {
	return linked("github.com/temporalio/cli/temporalcli.Version")(strings.TrimPrefix(version, "v"))
}

// linked sets one variable to the version.
func linked(variable string) func(string) []string {
	return func(version string) []string { return []string{"-X " + variable + "=" + version} }
}

// selectTools turns names of programs and groups into catalog entries, each once; no name means all of them.
func selectTools(from []tool, names []string) ([]tool, error) {
	if len(names) == 0 {
		return from, nil
	}
	var selected []tool
	for _, name := range names {
		found := false
		for _, t := range from {
			if t.name != name && t.group != name {
				continue
			}
			found = true
			if !slices.ContainsFunc(selected, func(s tool) bool { return s.name == t.name }) {
				selected = append(selected, t)
			}
		}
		if !found {
			known := slices.Concat(Names(), groups)
			return nil, fmt.Errorf("unknown tool %q: know %s", name, strings.Join(known, ", "))
		}
	}
	return selected, nil
}
