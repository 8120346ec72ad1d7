package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const product = "holdfast.dev/holdfast/"

// clouds and clients are beginnings of import paths.
var (
	clouds  = append([]string{"gocloud.dev"}, sdks...)
	sdks    = []string{"cloud.google.com/", "github.com/Azure/", "github.com/aws/"}
	clients = []string{"go.temporal.io/sdk/client", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}
)

// ioFree reports whether a package below workflows decides, and so must not reach anything. Apart stand what processes connect to
// Temporal by, and what only tests import.
func ioFree(path string) bool {
	inside, is := strings.CutPrefix(path, product+"workflows")
	return is && inside != "/connect" && inside != "/codec" && !strings.Contains(inside+"/", "test/")
}

// A workflow decides: it depends on no client, store or cloud, not even through others.
func TestWorkflowsReachNothing(t *testing.T) {
	packages := dependencies(t, "./workflows/...")
	packages["go.temporal.io/sdk/worker"] = nil // workflows have its registry only; it makes workers of clients
	var checked int
	for _, path := range packages.names() {
		if !ioFree(path) {
			continue
		}
		checked++
		chain := packages.chainTo(path, slices.Concat(clients, clouds))
		assert.Empty(t, chain, "%s reaches what does I/O:\n  %s", path, strings.Join(chain, "\n  -> "))
	}
	require.Greater(t, checked, 20)
}

// The watcher and the commands need no object store.
func TestStarterReachesNoCloud(t *testing.T) {
	chain := dependencies(t, "./starter").chainTo(product+"starter", clouds)
	assert.Empty(t, chain, "starter reaches a cloud:\n  %s", strings.Join(chain, "\n  -> "))
}

// Tenants' own command needs neither a cloud nor Temporal: they would be most of its size.
func TestThePluginReachesTheAPIServerAlone(t *testing.T) {
	const plugin = "starter/kubectl-holdfast"
	chain := dependencies(t, "./"+plugin).chainTo(product+plugin, append([]string{"go.temporal.io"}, clouds...))
	assert.Empty(t, chain, "%s reaches more than the API server:\n  %s", plugin, strings.Join(chain, "\n  -> "))
}

// Only k8s/objectstore/clouds links the SDKs of clouds, and only the worker links it: every test of another package would link
// them too, which takes more time than most tests.
func TestTheWorkerReachesCloudsThroughOnePackage(t *testing.T) {
	const worker, opener = product + "worker", product + "k8s/objectstore/clouds"
	packages := dependencies(t, "./worker")
	for _, begin := range slices.Concat(clients, clouds) {
		chain := packages.chainTo(worker, []string{begin})
		if assert.NotEmpty(t, chain, begin) {
			assert.Equal(t, worker, chain[0])
			assert.True(t, strings.HasPrefix(chain[len(chain)-1], begin), chain)
		}
	}
	for path, imports := range packages {
		assert.True(t, path == worker || !slices.Contains(imports, opener), "%s imports %s", path, opener)
	}
	packages[opener] = nil
	chain := packages.chainTo(worker, sdks)
	assert.Empty(t, chain, "worker reaches a cloud past %s:\n  %s", opener, strings.Join(chain, "\n  -> "))
}

// graph is what packages import, by their paths.
type graph map[string][]string

// names returns those of our packages.
func (g graph) names() []string {
	var names []string
	for path := range g {
		if strings.HasPrefix(path, product) {
			names = append(names, path)
		}
	}
	slices.Sort(names)
	return names
}

// chainTo returns a shortest chain of imports from a package to one whose path has one of the beginnings; empty if there is none.
func (g graph) chainTo(from string, beginnings []string) []string {
	cameFrom := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		path := queue[0]
		if slices.ContainsFunc(beginnings, func(begin string) bool { return strings.HasPrefix(path, begin) }) {
			var chain []string
			for at := path; at != ""; at = cameFrom[at] {
				chain = append(chain, at)
			}
			slices.Reverse(chain)
			return chain
		}
		for _, next := range g[path] {
			if _, seen := cameFrom[next]; !seen {
				cameFrom[next] = path
				queue = append(queue, next)
			}
		}
	}
	return nil
}

// dependencies lists packages of the product, with all that they depend on.
func dependencies(t *testing.T, pattern string) graph {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Imports", pattern)
	list.Dir = root
	output, err := list.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		t.Fatalf("%s: %s", list, failed.Stderr)
	}
	require.NoError(t, err)
	all := graph{}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all[p.ImportPath] = p.Imports
	}
}
