package outage_test

import (
	"slices"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/contract"
)

// scenario is a piece of a tenant's life. A capability joins the kill matrix by adding one: everything else is generic.
type scenario struct {
	name string
	// withoutVelero: Velero is stopped as long as cases of the scenario run.
	withoutVelero bool
	// inTurns: the administrator's policy gives one turn at a time as long as cases of the scenario run.
	inTurns bool
	// drills: the administrator's policy allows drills as long as cases of the scenario run, so that digests are recorded, too.
	drills bool
	// inLong: it runs in make test-long only; every activity is in another one too.
	inLong bool
	// sample are the disturbances that every run of the tests has.
	sample []string
	// recorded are those that `make histories` needs, too: without them the baseline has holes.
	recorded []string
	// rolledOut says when every run of the tests replaces the worker, as outage.RolloutOf has it; during it, if that is empty.
	rolledOut []string
	// newer: the workflows of the scenario are histories.Newer, so that no older worker can be replaced.
	newer bool
	// before brings the case to where the scenario begins; nothing is disturbed yet.
	before func(*testCase)
	// act is what the tenant does.
	act func(*testCase)
	// want says how it ends, done tells whether it has.
	want string
	done func(*testCase) bool
	// check looks at what an undisturbed run has left.
	check func(*testCase, effects)
}

var scenarios = slices.Concat(backupScenarios, locationScenarios, restoreScenarios, downloadScenarios, planScenarios, drillScenarios, turnScenarios)

var backupScenarios = []scenario{
	{
		name:   "create",
		before: func(*testCase) {},
		act:    (*testCase).backUp,
		want:   "Completed",
		done:   (*testCase).completed,
		check: func(c *testCase, e effects) {
			assert.Len(c.t, e.Backups, 1)
			assert.NotEmpty(c.t, e.Files)
			assert.Equal(c.t, []string{"create backups NAMESPACE-nightly-UUID", "patch nonadminbackups nightly"}, e.Writes)
		},
		sample:   []string{"worker after local refresh-backup"},
		recorded: []string{"watcher before signal", "temporal after local refresh-backup (2)"},
	},
	{
		name: "mend a refused spec",
		before: func(c *testCase) {
			c.backUpAs("nightly", func(spec *velerov1.BackupSpec) { spec.ExcludedNamespaces = []string{"other"} })
			c.await("refused", c.refused)
		},
		act:  func(c *testCase) { c.patch(`{"spec":{"backupSpec":{"excludedNamespaces":null}}}`) },
		want: "Completed",
		done: (*testCase).completed,
		check: func(c *testCase, e effects) {
			assert.Len(c.t, e.Backups, 1)
			assert.NotEmpty(c.t, e.Files)
			assert.Equal(c.t, []string{"create backups NAMESPACE-nightly-UUID", "patch nonadminbackups nightly"}, e.Writes)
		},
		sample: []string{"worker after local start-backup"},
	},
	{
		name:   "delete with the data",
		before: backedUp,
		act:    func(c *testCase) { c.patch(`{"spec":{"deleteBackup":true}}`) },
		want:   "gone",
		done:   (*testCase).gone,
		check: func(c *testCase, e effects) {
			assert.Equal(c.t, effects{Writes: e.Writes}, e, "nothing is left in cluster or bucket")
			assert.Contains(c.t, e.Writes, "create deletebackuprequests NAMESPACE-nightly-UUID-1")
		},
		sample:   []string{"temporal before local request-velero-deletion"},
		recorded: []string{"worker before regular request-velero-deletion", "watcher after local request-velero-deletion"},
	},
	{
		name:   "delete by force",
		before: backedUp,
		act:    func(c *testCase) { c.patch(`{"spec":{"forceDeleteBackup":true}}`) },
		want:   "gone",
		done:   (*testCase).gone,
		check: func(c *testCase, e effects) {
			assert.Empty(c.t, e.Object)
			assert.NotEmpty(c.t, e.Files, "the data are kept")
		},
		sample: []string{"worker before local delete-velero-objects"},
	},
	{
		name:   "delete plainly, then with the data",
		before: backedUp,
		act: func(c *testCase) {
			require.NoError(c.t, c.admin.Delete(c.t.Context(), c.nab.DeepCopy()))
			c.await("deletion pending", c.deletionPending)
			c.patch(`{"spec":{"deleteBackup":true}}`)
		},
		want: "gone",
		done: (*testCase).gone,
		check: func(c *testCase, e effects) {
			assert.Equal(c.t, effects{Writes: e.Writes}, e, "nothing is left in cluster or bucket")
			assert.Contains(c.t, e.Writes, "create deletebackuprequests NAMESPACE-nightly-UUID-1")
			assert.NotContains(c.t, e.Writes, "delete nonadminbackups nightly", "the tenant has done that")
		},
		sample: []string{"watcher before local refresh-backup (2)"},
	},
	{
		name:          "delete what Velero has not begun",
		withoutVelero: true,
		before:        queued,
		act:           func(c *testCase) { c.patch(`{"spec":{"deleteBackup":true}}`) },
		want:          "gone",
		done:          (*testCase).gone,
		check: func(c *testCase, e effects) {
			assert.Equal(c.t, effects{Writes: e.Writes}, e, "nothing is left")
			assert.Contains(c.t, e.Writes, "delete backups NAMESPACE-nightly-UUID", "withdrawn")
			assert.NotContains(c.t, e.Writes, "create deletebackuprequests NAMESPACE-nightly-UUID-1")
		},
		sample: []string{"watcher after local withdraw-velero-backup"},
	},
	{
		name:   "an invalid edit after the end",
		before: backedUp,
		act:    func(c *testCase) { c.patch(`{"spec":{"backupSpec":{"excludedNamespaces":["other"]}}}`) },
		want:   "the edit refused",
		done:   (*testCase).refused,
		check: func(c *testCase, e effects) {
			assert.Contains(c.t, e.Object, "excludedNamespaces is restricted")
			assert.Contains(c.t, e.Object, `"phase": "Created"`)
			assert.Len(c.t, e.Backups, 1)
			assert.NotEmpty(c.t, e.Files)
		},
		sample: []string{"worker before regular admit-backup"},
	},
}

// leftOut are the activities that no scenario comes to, and why.
var leftOut = map[string]string{
	contract.CheckVeleroStall.Name: "comes by the clock, as often as there is time, so that two runs differ without a kill; " +
		"it writes one condition, and its DownloadRequest is removed by Velero if it cannot do it itself",
	contract.CheckRestoreStall.Name:  "as check-velero-stall",
	contract.MarkBackupDeleting.Name: "refresh-backup does the same with its own read; by itself it comes only if the spec is edited meanwhile",
	contract.SynchronizeBackups.Name: "comes by a Schedule, for all namespaces at once; each of its writes is judged by a live read, " +
		"and what a run has not come to is the next one's (TestAProcessThatDiesBeforeTheMarkIsMadeUpFor)",
	contract.ExtendPlanBackup.Name: "comes by the clock, a week before a backup expires; it sets one time, and is repeated if that was not written",
	contract.MakePlanDrill.Name:    "comes by the clock; a drill that an attempt has made is found by its name (TestADrillThatIsRepeatedFindsItsOwn)",
	contract.DeletePlanDrill.Name:  "as make-plan-drill; it deletes one object, by its UID",
	contract.StartDrillJob.Name:    "needs a node: test/drills kills the workers while the Job runs (TestKilledAtEveryPhaseADrillEndsTheSame)",
	contract.FindTurns.Name:        "comes at the start of a queue, and by the clock; it only reads, and each kill of a queue has it begin anew",
	contract.KeepDefaultPlans.Name: "as synchronize-backups; each of its writes stands by itself, and the next pass makes up for it",
	contract.CollectOrphans.Name:   "as synchronize-backups; each deletion stands by itself",
	contract.InspectWorker.Name:    "comes with a heartbeat, once a minute; it only reads",
}

// allActivities returns the names of all activities of Velero's half.
func allActivities() []string {
	var names []string
	for _, kind := range workflows.Kinds() {
		if kind.Queue == contract.QueueVelero {
			names = append(names, kind.Activities...)
		}
	}
	return names
}

func backedUp(c *testCase) {
	c.backUp()
	c.await("Completed", c.completed)
}

// queued brings the case to where the Velero Backup is made and Velero, which does not run, has not begun it.
func queued(c *testCase) {
	c.backUp()
	c.awaitFor(patience, "a place in the queue", func() bool {
		nab, err := c.read()
		return err == nil && nab != nil && nab.Status.Phase == oadpv1alpha1.NonAdminPhaseCreated &&
			nab.Status.QueueInfo != nil && nab.Status.QueueInfo.EstimatedQueuePosition > 0 // so the watcher knows of both
	})
}

func (c *testCase) deletionPending() bool {
	nab, err := c.read()
	if err != nil || nab == nil {
		return false
	}
	deleting := meta.FindStatusCondition(nab.Status.Conditions, string(oadpv1alpha1.NonAdminConditionDeleting))
	return deleting != nil && deleting.Message == oadpv1alpha1.MessageBackupDeletionPending
}

// refused reports whether the spec as it is now was found invalid.
func (c *testCase) refused() bool {
	nab, err := c.read()
	if err != nil || nab == nil {
		return false
	}
	accepted := meta.FindStatusCondition(nab.Status.Conditions, string(oadpv1alpha1.NonAdminConditionAccepted))
	return accepted != nil && accepted.Reason == oadpv1alpha1.ReasonInvalidBackupSpec && accepted.ObservedGeneration == nab.Generation
}
