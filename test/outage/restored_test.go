package outage_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// restored is what a restore has left.
type restored struct {
	// Phase is status.finalization.phase.
	Phase string
	// Restores and Modifiers are the Velero Restores and the ConfigMaps that were made for it.
	Restores, Modifiers []string
	// ConfigMaps and Volume are what has come back: the tenant's objects, and the labels and policy of the claim's volume.
	ConfigMaps []string
	Volume     string
	// Results is what the results file in the bucket holds, Rewritten whether it was written after its publication.
	Results   string
	Rewritten bool
}

func (c *testCase) restoreObject() string {
	if c.nar == nil {
		return ""
	}
	nar, err := c.readRestore()
	require.NoError(c.t, err)
	if nar == nil {
		return ""
	}
	nar.Status.QueueInfo = nil // the watcher's estimate
	slices.SortFunc(nar.Status.Conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return c.plain(asJSON(map[string]any{"spec": nar.Spec, "finalizers": nar.Finalizers, "status": nar.Status}))
}

func (c *testCase) restored() restored {
	c.t.Helper()
	ctx := context.Background()
	var left restored
	ours := []client.ListOption{
		client.InNamespace(env.OADPNamespace), client.MatchingLabels{oadpv1alpha1.OadpLabel: oadpv1alpha1.OadpLabelValue},
	}
	restores, err := c.veleroRestores()
	require.NoError(c.t, err)
	for i := range restores {
		made := &restores[i]
		left.Restores = append(left.Restores, c.plain(fmt.Sprintf("%s %s %s", made.Name, made.Status.Phase, asJSON(made.Spec))))
	}
	var modifiers corev1.ConfigMapList
	require.NoError(c.t, c.admin.List(ctx, &modifiers, ours...))
	for i := range modifiers.Items {
		if made := &modifiers.Items[i]; made.Annotations[oadpv1alpha1.NarOriginNamespaceAnnotation] == c.namespace {
			left.Modifiers = append(left.Modifiers, c.plain(made.Name))
		}
	}
	var content corev1.ConfigMapList
	require.NoError(c.t, c.admin.List(ctx, &content, client.InNamespace(c.namespace), client.MatchingLabels(seeded())))
	for i := range content.Items {
		left.ConfigMaps = append(left.ConfigMaps, c.plain(content.Items[i].Name+" "+asJSON(content.Items[i].Data)))
	}
	left.Volume = c.volume()
	nar, err := c.readRestore()
	require.NoError(c.t, err)
	if nar != nil && nar.Status.Finalization != nil {
		left.Phase = string(nar.Status.Finalization.Phase)
		left.Results, left.Rewritten = c.results()
	}
	return left
}

// volume tells how the case's claim is bound, and to what.
func (c *testCase) volume() string {
	c.t.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	err := c.admin.Get(context.Background(), client.ObjectKey{Namespace: c.namespace, Name: "data"}, claim)
	if client.IgnoreNotFound(err) == nil && err != nil {
		return ""
	}
	require.NoError(c.t, err)
	if claim.Spec.VolumeName == "" {
		return string(claim.Status.Phase)
	}
	volume := &corev1.PersistentVolume{}
	require.NoError(c.t, c.admin.Get(context.Background(), client.ObjectKey{Name: claim.Spec.VolumeName}, volume))
	labels, err := json.Marshal(volume.Labels)
	require.NoError(c.t, err)
	return c.plain(fmt.Sprintf("%s %s %s %s", claim.Status.Phase, volume.Name, volume.Spec.PersistentVolumeReclaimPolicy, labels))
}

// resultsKey is where the results of the case's restore are, found on the S3 server's disk: it must be known while the API
// server is away.
func (c *testCase) resultsKey() (string, error) {
	dir := c.stack.Storage().Dir
	found, err := filepath.Glob(filepath.Join(dir, "*", "restores", c.namespace+"-back-*", "restore-*-results.gz"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("want one file of results, have %q: %w", found, err)
	}
	key, err := filepath.Rel(dir, found[0])
	return filepath.ToSlash(key), err
}

// results reads the results back from the bucket.
func (c *testCase) results() (content string, rewritten bool) {
	c.t.Helper()
	key, err := c.resultsKey()
	require.NoError(c.t, err)
	data, err := c.file(key)
	require.NoError(c.t, err)
	var results any
	require.NoError(c.t, json.Unmarshal(data, &results))
	written, err := c.written(key)
	require.NoError(c.t, err)
	return c.plain(asJSON(results)), !c.published.IsZero() && !written.Equal(c.published)
}
