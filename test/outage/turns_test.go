package outage_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
}}

// giveTurns has the administrator's policy give one turn at a time until the test ends.
func giveTurns(t *testing.T, r *rig) {
	t.Helper()
	set := func(merge string) {
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: policy.ConfigMapName}}
		require.NoError(t, r.admin.Patch(context.Background(), configMap, client.RawPatch(types.MergePatchType, []byte(merge))))
	}
	set(`{"data":{"` + policy.ConfigMapOwnKey + `":"queue: {maxActive: 1}"}}`)
	t.Cleanup(func() { set(`{"data":{"` + policy.ConfigMapOwnKey + `":null}}`) })
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
