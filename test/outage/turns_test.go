package outage_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/test/env"
)

// Each case has a queue before Velero of its own: it is another Kubernetes cluster to Holdfast.
var turnScenarios = []scenario{{
	name:    "two backups of which Velero has one at a time",
	inTurns: true,
	before:  func(*testCase) {},
	act: func(c *testCase) {
		c.backUpAs("first")
		c.backUp()
	},
	want: "both Completed, one after the other",
	done: (*testCase).oneAfterTheOther,
	check: func(c *testCase, e effects) {
		assert.Len(c.t, e.Backups, 2)
		assert.NotEmpty(c.t, e.Files)
		assert.Equal(c.t, []string{
			"create backups NAMESPACE-first-UUID", "create backups NAMESPACE-nightly-UUID",
			"patch nonadminbackups first", "patch nonadminbackups nightly",
		}, e.Writes)
	},
	sample: []string{
		"worker before regular give-velero-turns",
		"watcher after regular give-velero-turns (2)",
		"temporal after regular give-velero-turns",
	},
	newer: true,
}, {
	name:    "a turn that is given back, and another after the spec was mended",
	inTurns: true,
	before:  func(*testCase) {},
	act: func(c *testCase) {
		c.backUpAs("nightly", func(spec *velerov1.BackupSpec) { spec.ExcludedNamespaces = []string{"other"} })
		c.await("refused", c.refused)
		c.patch(`{"spec":{"backupSpec":{"excludedNamespaces":null}}}`)
	},
	want: "Completed",
	done: (*testCase).completed,
	check: func(c *testCase, e effects) {
		assert.Len(c.t, e.Backups, 1)
		assert.NotEmpty(c.t, e.Files)
		assert.Equal(c.t, []string{"create backups NAMESPACE-nightly-UUID", "patch nonadminbackups nightly"}, e.Writes)
	},
	sample: []string{"worker before local return-velero-turn"},
	newer:  true,
}, {
	name:    "two restores of which Velero has one at a time",
	inTurns: true,
	before:  func(c *testCase) { loseAfterBackup(c) },
	act: func(c *testCase) {
		c.restoreAs("first")
		c.awaitFor(patience, "the first one's Velero Restore", func() bool {
			made, err := c.veleroRestores()
			return err == nil && len(made) == 1
		})
		c.restore()
	},
	want: "both finalized, one after the other",
	done: (*testCase).oneRestoreAfterTheOther,
	check: func(c *testCase, e effects) {
		assert.Len(c.t, e.Restored.Restores, 2)
		assert.Equal(c.t, "Completed", e.Restored.Phase)
		assert.Subset(c.t, e.Writes, []string{
			"create restores NAMESPACE-back-UUID", "create restores NAMESPACE-first-UUID",
			"patch nonadminrestores back", "patch nonadminrestores first",
		})
	},
	sample: []string{"worker after regular give-velero-turns"},
	newer:  true,
}}

// giveTurns has the administrator's policy give one turn at a time until the test ends.
func giveTurns(t *testing.T, r *rig) {
	t.Helper()
	setPolicy(t, r, "queue: {maxActive: 1, maxActiveRestores: 1}")
	t.Cleanup(func() { setPolicy(t, r, "{}") })
}

// setPolicy sets Holdfast's own part of the administrator's policy.
func setPolicy(t *testing.T, r *rig, own string) {
	t.Helper()
	merge, err := json.Marshal(map[string]any{"data": map[string]string{policy.ConfigMapOwnKey: own}})
	require.NoError(t, err)
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: policy.ConfigMapName}}
	require.NoError(t, r.admin.Patch(context.Background(), configMap, client.RawPatch(types.MergePatchType, merge)))
}

// oneAfterTheOther reports whether the case's two Velero Backups have ended, and fails the test if one began before the end of the
// other.
func (c *testCase) oneAfterTheOther() bool {
	made, err := c.veleroBackups()
	if err != nil || len(made) < 2 || !c.completed() {
		return false
	}
	for i := range made {
		if made[i].Status.Phase != velerov1.BackupPhaseCompleted {
			return false
		}
	}
	// Their times are whole seconds.
	after := func(x, y velerov1.Backup) bool { return !y.CreationTimestamp.Before(x.Status.CompletionTimestamp) }
	assert.True(c.t, after(made[0], made[1]) || after(made[1], made[0]), "one of them had no turn yet: %v", made)
	return true
}

// oneRestoreAfterTheOther is oneAfterTheOther for the case's two restores.
func (c *testCase) oneRestoreAfterTheOther() bool {
	made, err := c.veleroRestores()
	if err != nil || len(made) < 2 || !c.allFinalized() {
		return false
	}
	for i := range made {
		if made[i].Status.CompletionTimestamp == nil {
			return false
		}
	}
	after := func(x, y velerov1.Restore) bool { return !y.CreationTimestamp.Before(x.Status.CompletionTimestamp) }
	assert.True(c.t, after(made[0], made[1]) || after(made[1], made[0]), "one of them had no turn yet: %v", made)
	return true
}

func (c *testCase) allFinalized() bool {
	var all oadpv1alpha1.NonAdminRestoreList
	err := c.admin.List(c.t.Context(), &all, client.InNamespace(c.namespace))
	return err == nil && !slices.ContainsFunc(all.Items, func(nar oadpv1alpha1.NonAdminRestore) bool {
		return nar.Status.Finalization == nil || !nar.Status.Finalization.Phase.Final()
	})
}

// veleroRestores are the Velero Restores of the case's objects.
func (c *testCase) veleroRestores() ([]velerov1.Restore, error) {
	var restores velerov1.RestoreList
	err := c.admin.List(c.t.Context(), &restores, client.InNamespace(env.OADPNamespace),
		client.MatchingLabels{oadpv1alpha1.OadpLabel: oadpv1alpha1.OadpLabelValue})
	return slices.DeleteFunc(restores.Items, func(made velerov1.Restore) bool {
		return made.Annotations[oadpv1alpha1.NarOriginNamespaceAnnotation] != c.namespace
	}), err
}
