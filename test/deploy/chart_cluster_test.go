package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/env/kubelet"
	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// release is a release of the chart in Velero's namespace.
type release struct {
	stack  *env.Env
	values string
}

func (r release) try(ctx context.Context, t *testing.T, verb string, args ...string) error {
	t.Helper()
	args = append([]string{
		verb, "holdfast", "--kubeconfig", r.stack.Kubeconfig(env.Admin), "--namespace", env.OADPNamespace, "--timeout", "3m",
	}, args...)
	_, err := helm(ctx, t, args...)
	return err
}

func (r release) must(ctx context.Context, t *testing.T, verb string, args ...string) {
	t.Helper()
	require.NoError(t, r.try(ctx, t, verb, args...))
}

// set installs or upgrades the release with these values beside its own.
func (r release) set(ctx context.Context, t *testing.T, verb, values string, args ...string) {
	t.Helper()
	r.must(ctx, t, verb, append([]string{
		inCheckout(t, "deploy", "chart"), "-f", valuesFile(t, r.values), "-f", valuesFile(t, values),
	}, args...)...)
}

const noProcesses = "worker: {replicas: 0}\nwatcher: {replicas: 0}\n"

// isAChart goes through the life of a release, on a cluster without anything of Holdfast's. The processes run with the rights that the
// chart gives them; the stand-in of the kubelet runs them.
func isAChart(ctx context.Context, t *testing.T, stack *env.Env) {
	programs, err := binaries()
	require.NoError(t, err)
	config, err := stack.RESTConfig(env.Admin)
	require.NoError(t, err)
	image := kubelet.Image{Bin: filepath.Dir(programs[tools.Holdfast])}
	options := kubelet.Options{Images: map[string]kubelet.Image{"holdfast": image}}
	node, err := kubelet.Start(ctx, config, options, t.TempDir(), t.TempDir(), t.Logf)
	require.NoError(t, err)
	t.Cleanup(node.Stop)
	// On the loopback of one machine not every Pod has ports of its own, and the stand-in has no file system for the token.
	r := release{stack: stack, values: fmt.Sprintf(`
image: {repository: registry.example.com/holdfast}
temporal: {address: %q}
settings: {HOLDFAST_HEALTH_PROBE_BIND_ADDRESS: "0", HOLDFAST_METRICS_BIND_ADDRESS: "0"}
worker: {replicas: 1, extraEnv: [{name: HOLDFAST_KUBECONFIG, value: %q}]}
watcher: {replicas: 1, extraEnv: [{name: HOLDFAST_KUBECONFIG, value: %q}]}
`, stack.TemporalAddress(), stack.Kubeconfig(workerName), stack.Kubeconfig(watcherName))}
	// In this order: the last four are one release after the other.
	t.Run("OADP's kinds stay OADP's", func(t *testing.T) { r.leavesOADPs(ctx, t) })
	t.Run("what kustomize has installed becomes a release's", func(t *testing.T) {
		sample.Case(t, false)
		r.adopts(ctx, t)
	})
	t.Run("what is installed works", func(t *testing.T) { r.works(ctx, t) })
	t.Run("an upgrade is rolled back", func(t *testing.T) { r.rollsBack(ctx, t) })
	t.Run("what is uninstalled leaves the kinds and the tenants' objects", func(t *testing.T) { r.leavesKinds(ctx, t) })
	t.Run("the next release has the kinds again and removes them", func(t *testing.T) { r.removesKinds(ctx, t) })
}

// state is what somebody would have changed of an object.
func (r release) state(ctx context.Context, t *testing.T, all objects) (states []string) {
	t.Helper()
	for _, o := range live(ctx, t, r.stack, all) {
		states = append(states, fmt.Sprint(o.GetUID(), o.GetGeneration(), o.GetLabels(), o.GetAnnotations()))
	}
	return states
}

func (r release) leavesOADPs(ctx context.Context, t *testing.T) {
	kinds := slices.DeleteFunc(readObjects(t, "deploy/crds"), func(o *unstructured.Unstructured) bool { return !oadps(o) })
	require.Len(t, kinds, 4)
	for _, o := range kinds {
		require.NoError(t, r.stack.Client().Create(ctx, o))
	}
	before := r.state(ctx, t, kinds)
	r.set(ctx, t, "install", "crds: {oadp: false, keep: false}\n"+noProcesses)
	require.Len(t, live(ctx, t, r.stack, readObjects(t, "deploy/crds")), 7)
	assert.Equal(t, before, r.state(ctx, t, kinds))
	awaitServed(ctx, t, r.stack, readObjects(t, "deploy/crds"))
	r.must(ctx, t, "uninstall", "--wait")
	assert.Equal(t, before, r.state(ctx, t, kinds))
	for _, o := range kinds {
		require.NoError(t, r.stack.Client().Delete(ctx, o))
	}
	r.awaitGone(ctx, t, readObjects(t, "deploy/crds"))
}

// adopts goes from kustomize to Helm as docs/install.md says.
func (r release) adopts(ctx context.Context, t *testing.T) {
	flags := regexp.MustCompile("To change from kustomize to Helm, add `([^`]*)`").FindStringSubmatch(readFile(t, "docs", "install.md"))
	require.NotNil(t, flags)
	base := render(t, inCheckout(t, "deploy", "base"))
	mustKubectl(ctx, t, r.stack, env.Admin, "apply", "--server-side", "-k", inCheckout(t, "deploy", "base"))
	before := live(ctx, t, r.stack, base)
	r.set(ctx, t, "install", "crds: {keep: false}\n"+noProcesses, strings.Fields(flags[1])...)
	for i, after := range live(ctx, t, r.stack, base) {
		assert.Equal(t, before[i].GetUID(), after.GetUID(), id(after))
		if id(after) != "ConfigMap/holdfast" { // the release's has another name
			assert.Equal(t, "Helm", after.GetLabels()["app.kubernetes.io/managed-by"], id(after))
		}
	}
	awaitServed(ctx, t, r.stack, base.ofKind("CustomResourceDefinition"))
	r.must(ctx, t, "uninstall", "--wait")
	left := base.find(t, "ConfigMap/holdfast")
	require.NoError(t, r.stack.Client().Delete(ctx, left.DeepCopy()), "what the release does not know stays")
	r.awaitGone(ctx, t, base)
}

func (r release) awaitGone(ctx context.Context, t *testing.T, all objects) {
	t.Helper()
	for _, o := range all {
		eventually.Succeeds(t, time.Minute, func() error {
			err := r.stack.Client().Get(ctx, client.ObjectKeyFromObject(o), o.DeepCopy())
			if err == nil {
				return fmt.Errorf("%s is still there", id(o))
			}
			return client.IgnoreNotFound(err)
		})
	}
}

func (r release) works(ctx context.Context, t *testing.T) {
	r.set(ctx, t, "install", "", "--wait")
	for _, o := range live(ctx, t, r.stack, renderChart(t, env.OADPNamespace, r.values)) {
		assert.Equal(t, "Helm", o.GetLabels()["app.kubernetes.io/managed-by"], id(o))
	}
	r.must(ctx, t, "test")
	eventually.Succeeds(t, time.Minute, func() error { // when the tenants' roles have the rights
		plan := inCheckout(t, "deploy", "samples", "backupplan.yaml")
		_, err := kubectl(ctx, t, r.stack, tenantUser, "apply", "-n", tenantNamespace, "-f", plan)
		return err
	})
	eventually.Succeeds(t, 3*time.Minute, func() error {
		next, err := kubectl(ctx, t, r.stack, tenantUser, "get", "bplan", "-n", tenantNamespace, "nightly",
			"-o", "jsonpath={.status.nextRun}")
		if err == nil && next == "" {
			err = errors.New("the tenant's plan is not served yet")
		}
		return err
	})
}

func (r release) rollsBack(ctx context.Context, t *testing.T) {
	read := func() (settings, budget string) {
		settings = mustKubectl(ctx, t, r.stack, env.Admin, "get", "configmap", "-n", env.OADPNamespace, "holdfast", "-o", "jsonpath={.data}")
		return settings, mustKubectl(ctx, t, r.stack, env.Admin, "get", "poddisruptionbudget", "-n", env.OADPNamespace, workerName,
			"-o", "jsonpath={.spec.maxUnavailable}")
	}
	settings, budget := read()
	assert.Equal(t, "1", budget)
	const withFoundationDB = "fdb: {enabled: true, replicas: 0}\n"
	r.set(ctx, t, "upgrade", withFoundationDB+"temporal: {namespace: nowhere}\npodDisruptionBudget: {maxUnavailable: 2}\n")
	changed, budget := read()
	assert.Equal(t, "2", budget)
	assert.Contains(t, changed, `"TEMPORAL_NAMESPACE":"nowhere"`)
	fdb := objects{renderChart(t, env.OADPNamespace, r.values+withFoundationDB).find(t, "Deployment/"+fdbName)}
	kinds := readObjects(t, "deploy/components/fdb/crds")
	require.Len(t, live(ctx, t, r.stack, append(kinds, fdb...)), len(kinds)+1)
	require.ErrorContains(t, r.try(ctx, t, "test"), "pod holdfast-test-temporal failed", "there is no such namespace in Temporal")

	r.must(ctx, t, "rollback", "1", "--wait")
	again, budget := read()
	assert.Equal(t, "1", budget)
	assert.Equal(t, settings, again)
	r.awaitGone(ctx, t, fdb)
	require.Len(t, live(ctx, t, r.stack, kinds), len(kinds), "with crds.keep")
	r.must(ctx, t, "test")
}

func (r release) leavesKinds(ctx context.Context, t *testing.T) {
	all := renderChart(t, env.OADPNamespace, r.values)
	kinds := all.ofKind("CustomResourceDefinition")
	r.must(ctx, t, "uninstall", "--wait")
	r.awaitGone(ctx, t, slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool { return slices.Contains(kinds, o) }))
	require.Len(t, live(ctx, t, r.stack, kinds), 7)
	mustKubectl(ctx, t, r.stack, env.Admin, "get", "backupplan", "-n", tenantNamespace, "nightly")
}

func (r release) removesKinds(ctx context.Context, t *testing.T) {
	r.set(ctx, t, "install", "crds: {keep: false}\nfdb: {enabled: true, replicas: 0}\n"+noProcesses)
	mustKubectl(ctx, t, r.stack, env.Admin, "delete", "backupplan", "-n", tenantNamespace, "nightly")
	kinds := append(readObjects(t, "deploy/crds"), readObjects(t, "deploy/components/fdb/crds")...)
	awaitServed(ctx, t, r.stack, kinds)
	r.must(ctx, t, "uninstall", "--wait")
	r.awaitGone(ctx, t, kinds)
}
