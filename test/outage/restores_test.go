package outage_test

import (
	"bytes"
	"context"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/k8s/process/failpoint"
	"holdfast.dev/holdfast/test/outage"
	"holdfast.dev/holdfast/workflows/contract"
)

// The restores' writes by the worker, from creation to the end.
var (
	restoreWrites  = []string{"create restores NAMESPACE-back-UUID", "patch nonadminrestores back"}
	volumePatch    = "patch persistentvolumes NAMESPACE-data"
	modifierWrites = []string{"create configmaps NAMESPACE-back-UUID", "delete configmaps NAMESPACE-back-UUID"}
)

var restoreScenarios = []scenario{
	{
		name: "restore a backup", inLong: true,
		before: func(c *testCase) { lost(c, corev1.PersistentVolumeReclaimRetain) },
		act:    (*testCase).restore,
		want:   "finalized",
		done:   (*testCase).finalized,
		check: func(c *testCase, e effects) {
			assert.ElementsMatch(c.t, append([]string{volumePatch}, restoreWrites...), forRestore(e.Writes))
			assert.Equal(c.t, "Completed", e.Restored.Phase)
			assert.Len(c.t, e.Restored.ConfigMaps, 3)
			assert.Contains(c.t, e.Restored.Volume, `"tier":"gold"`)
			assert.Contains(c.t, e.Restored.Volume, "Retain")
			assert.NotContains(c.t, e.Restored.Results, "holdfast")
		},
	},
	{
		name:   "restore with warnings",
		before: func(c *testCase) { lost(c, "Recycle") },
		act:    (*testCase).restore,
		want:   "finalized",
		done:   (*testCase).finalized,
		check: func(c *testCase, e effects) {
			assert.ElementsMatch(c.t, append([]string{volumePatch}, restoreWrites...), forRestore(e.Writes))
			assert.Equal(c.t, "Completed", e.Restored.Phase)
			assert.Contains(c.t, e.Restored.Volume, `"tier":"gold"`)
			assert.Equal(c.t, 1, strings.Count(e.Restored.Results, "holdfast volumes: "), e.Restored.Results)
			assert.False(c.t, c.published.IsZero(), "the results were published")
		},
		sample: []string{
			"watcher before regular run-finalization-task cleanup", "watcher after regular publish-finalization",
			"temporal before regular run-finalization-task validation",
		},
		recorded: []string{
			"worker before regular run-finalization-task volumes",
			"worker after regular publish-finalization",
			"temporal after local record-finalization end",
		},
	},
	{
		name: "restore from a tenant's location what is not wholly allowed", inLong: true,
		before: func(c *testCase) {
			approved(c)
			loseAfterBackup(c, func(spec *velerov1.BackupSpec) { spec.StorageLocation = "own" })
			c.refuseClaims()
			c.watchPublication()
		},
		act:  (*testCase).restore,
		want: "finalized",
		done: (*testCase).finalized,
		check: func(c *testCase, e effects) {
			assert.ElementsMatch(c.t, append(modifierWrites, restoreWrites...), forRestore(e.Writes))
			assert.Equal(c.t, "PartiallyFailed", e.Restored.Phase)
			assert.Empty(c.t, e.Restored.Modifiers, "cleaned up")
			assert.Equal(c.t, 1, strings.Count(e.Restored.Results, "holdfast validation: PersistentVolumeClaim data is in the backup"),
				e.Restored.Results)
			assert.Contains(c.t, e.Restored.Results, "minimum storage usage", "Velero's own line is kept")
		},
	},
	{
		name: "edit a restore, then delete it",
		before: func(c *testCase) {
			loseAfterBackup(c)
			c.restore()
			c.await("finalized", c.finalized)
		},
		act: func(c *testCase) {
			merge := `{"spec":{"restoreSpec":{"includeClusterResources":true}}}`
			require.NoError(c.t, c.admin.Patch(c.t.Context(), c.nar.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(merge))))
			c.await("the edit refused", c.editRefused)
			c.deleteRestore()
		},
		want:     "gone",
		done:     (*testCase).restoreGone,
		check:    nothingLeftOfRestore,
		sample:   []string{"watcher after signal"},
		recorded: []string{"worker after local delete-velero-restore", "temporal before local release-restore"},
	},
	{
		name: "delete a restore whose workload is waited for", inLong: true,
		before: func(c *testCase) {
			c.pod()
			loseAfterBackup(c)
			c.restore()
			c.awaitFor(patience, "the validation waits", c.validating)
		},
		act:   (*testCase).deleteRestore,
		want:  "gone",
		done:  (*testCase).restoreGone,
		check: nothingLeftOfRestore,
	},
}

// forRestore leaves out what was written before the restore.
func forRestore(writes []string) []string {
	var chosen []string
	for _, write := range writes {
		if strings.Contains(write, "-back-") || strings.HasSuffix(write, " back") || write == volumePatch {
			chosen = append(chosen, write)
		}
	}
	return chosen
}

func nothingLeftOfRestore(c *testCase, e effects) {
	assert.Empty(c.t, e.Restore)
	assert.Equal(c.t, restored{ConfigMaps: e.Restored.ConfigMaps, Volume: e.Restored.Volume}, e.Restored, "but what was restored")
	assert.Len(c.t, e.Restored.ConfigMaps, 3)
	assert.NotEmpty(c.t, e.Files, "the backup stays")
	for _, file := range e.Files {
		assert.NotContains(c.t, file, "restores/")
	}
	assert.Contains(c.t, e.Writes, "delete restores NAMESPACE-back-UUID")
}

// loseAfterBackup brings the case to where what is backed up is gone, and a new volume is there for the claim.
func loseAfterBackup(c *testCase, changes ...func(*velerov1.BackupSpec)) {
	c.t.Helper()
	c.claim()
	c.backUpAs("nightly", append(changes, func(spec *velerov1.BackupSpec) {
		spec.IncludedResources = []string{"configmaps", "persistentvolumeclaims", "pods"}
	})...)
	c.await("Completed", c.completed)
	c.lose()
	c.reserveVolume()
}

// lost does so too, and gives the finalization something to do: a new volume that lacks what the backup's had. Velero, which
// would see to that itself, must have ended before the backup's notes say so.
func lost(c *testCase, policy corev1.PersistentVolumeReclaimPolicy) {
	c.t.Helper()
	loseAfterBackup(c)
	backup := c.nacuuid()
	planned := failpoint.Point{Step: contract.PlanFinalization.Name, Form: failpoint.Local}
	c.Driver.At(outage.Moment{Point: planned, Occurrence: 1}, func() error {
		return c.putFile("velero/backups/"+backup+"/"+backup+"-volumeinfo.json.gz", []objectstore.VolumeInfo{{
			PVCName: "data", PVCNamespace: c.namespace, PVName: "old", BackupMethod: objectstore.MethodPodVolumeBackup,
			PVInfo: &objectstore.PVSettings{ReclaimPolicy: string(policy), Labels: map[string]string{"tier": "gold"}},
		}})
	})
	if policy != corev1.PersistentVolumeReclaimRetain {
		c.watchPublication()
	}
}

// watchPublication notes when the restore's results were written by the first attempt to publish, if it came to that.
func (c *testCase) watchPublication() {
	published := failpoint.Point{Step: contract.PublishFinalization.Name, Form: failpoint.Regular, After: true}
	c.Driver.At(outage.Moment{Point: published, Occurrence: 1}, func() error {
		key, err := c.resultsKey()
		if err != nil {
			return err
		}
		results, err := c.file(key)
		if err != nil || !bytes.Contains(results, []byte("holdfast ")) {
			return err
		}
		c.published, err = c.written(key)
		return err
	})
}

// nacuuid is the name of the case's Velero Backup.
func (c *testCase) nacuuid() string {
	c.t.Helper()
	nab, err := c.read()
	require.NoError(c.t, err)
	require.NotNil(c.t, nab)
	return nab.Status.VeleroBackup.NACUUID
}

// restore creates the case's NonAdminRestore.
func (c *testCase) restore() {
	c.t.Helper()
	c.restoreAs("back")
}

func (c *testCase) restoreAs(name string) {
	c.t.Helper()
	c.nar = &oadpv1alpha1.NonAdminRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name},
		Spec:       oadpv1alpha1.NonAdminRestoreSpec{RestoreSpec: &velerov1.RestoreSpec{BackupName: c.nab.Name}},
	}
	require.NoError(c.t, c.admin.Create(c.t.Context(), c.nar))
}

func (c *testCase) deleteRestore() {
	c.t.Helper()
	require.NoError(c.t, c.admin.Delete(c.t.Context(), c.nar.DeepCopy()))
}

// readRestore returns the NonAdminRestore, nil if it is gone.
func (c *testCase) readRestore() (*oadpv1alpha1.NonAdminRestore, error) {
	found := &oadpv1alpha1.NonAdminRestore{}
	err := c.admin.Get(context.Background(), client.ObjectKeyFromObject(c.nar), found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

func (c *testCase) finalized() bool {
	found, err := c.readRestore()
	return err == nil && found != nil && found.Status.Finalization != nil && found.Status.Finalization.Phase.Final()
}

// validating reports whether the last task of the finalization is under way.
func (c *testCase) validating() bool {
	found, err := c.readRestore()
	if err != nil || found == nil || found.Status.Finalization == nil {
		return false
	}
	tasks := found.Status.Finalization.Tasks
	return len(tasks) > 0 && tasks[len(tasks)-1].Phase == oadpv1alpha1.FinalizationPhaseInProgress
}

func (c *testCase) editRefused() bool {
	found, err := c.readRestore()
	if err != nil || found == nil {
		return false
	}
	accepted := meta.FindStatusCondition(found.Status.Conditions, string(oadpv1alpha1.NonAdminConditionAccepted))
	return accepted != nil && accepted.Status == metav1.ConditionFalse && accepted.ObservedGeneration == found.Generation
}

func (c *testCase) restoreGone() bool {
	found, err := c.readRestore()
	return err == nil && found == nil
}
