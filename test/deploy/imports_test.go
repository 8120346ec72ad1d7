package deploy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	product = "holdfast.dev/holdfast/"
	// stores is the package that speaks to object stores.
	stores = product + "k8s/objectstore"
)

// clouds are beginnings of the paths of modules that speak to clouds.
var clouds = []string{"cloud.google.com/go", "github.com/Azure/", "github.com/aws/", "gocloud.dev", "google.golang.org/api"}

// The watcher and the people's commands need no object store, and a workflow decides: it reaches for none.
func TestTheStarterAndTheWorkflowsReachNoCloud(t *testing.T) {
	for _, packages := range []string{"./starter", "./workflows/..."} {
		found := cloudsWithin(t, packages)
		for _, origin := range slices.Sorted(maps.Keys(found)) {
			t.Errorf("%s depends on %s:\n  %s", packages, origin, strings.Join(found[origin], "\n  -> "))
		}
	}
}

// What finds nothing above finds here what there is to find.
func TestTheWorkerReachesTheStores(t *testing.T) {
	found := cloudsWithin(t, "./worker")
	for _, origin := range []string{
		stores, "cloud.google.com/go/storage", "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob",
		"github.com/aws/aws-sdk-go-v2/service/s3", "gocloud.dev",
	} {
		if assert.Contains(t, found, origin) {
			assert.Equal(t, product+"worker", found[origin][0])
			assert.Contains(t, found[origin], stores, "nobody else speaks to clouds")
		}
	}
}

// imported is a package, as go list tells of it.
type imported struct {
	ImportPath string
	Imports    []string
	DepOnly    bool // not asked for by itself
	Module     *struct{ Path string }
}

// cloudsWithin returns which modules of clouds our code leads to, and whether to k8s/objectstore, each with a shortest chain of
// imports.
func cloudsWithin(t *testing.T, packages string) map[string][]string {
	t.Helper()
	all := dependencies(t, packages)
	cameFrom := map[string]string{}
	var queue []string
	for path, p := range all {
		if !p.DepOnly {
			queue = append(queue, path)
			cameFrom[path] = ""
		}
	}
	require.NotEmpty(t, queue)
	slices.Sort(queue)
	found := map[string][]string{}
	for ; len(queue) > 0; queue = queue[1:] {
		path := queue[0]
		origin := ofClouds(all[path])
		if origin != "" && found[origin] == nil {
			for at := path; at != ""; at = cameFrom[at] {
				found[origin] = append([]string{at}, found[origin]...)
			}
		}
		if origin != "" && origin != stores {
			continue // what a cloud's modules bring along goes with them
		}
		for _, next := range all[path].Imports {
			if _, known := cameFrom[next]; !known && all[next].ImportPath != "" {
				cameFrom[next] = path
				queue = append(queue, next)
			}
		}
	}
	return found
}

// ofClouds returns the module if it is one of a cloud, the package if it is the one that speaks to object stores, or nothing.
func ofClouds(p imported) string {
	if p.ImportPath == stores {
		return stores
	}
	if p.Module == nil || !slices.ContainsFunc(clouds, func(begin string) bool { return strings.HasPrefix(p.Module.Path, begin) }) {
		return ""
	}
	return p.Module.Path
}

func dependencies(t *testing.T, packages string) map[string]imported {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Imports,DepOnly,Module", packages)
	list.Dir = inCheckout(t)
	output, err := list.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		t.Fatalf("%s: %s", list, failed.Stderr)
	}
	require.NoError(t, err)
	all := map[string]imported{}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p imported
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all[p.ImportPath] = p
	}
}
