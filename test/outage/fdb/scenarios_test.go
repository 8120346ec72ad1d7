package fdb_test

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/contract"
)

// scenario is a piece of a backup's life.
type scenario struct {
	name string
	// before brings the case to where the scenario begins; nothing is disturbed yet.
	before func(*testCase)
	// act is what the tenant does.
	act func(*testCase)
	// done tells whether it has come about.
	want string
	done func(*testCase) bool
	// ends: the object's workflow has nothing more to do then.
	ends bool
	// check looks at what an undisturbed run has left.
	check func(*testCase, effects)
	// inLong: it runs in make test-long only; every activity is in another one too, and test/fdb has what nothing disturbs.
	inLong bool
	// sample are the disturbances that every run of the tests has.
	sample []string
	// recorded are those that `make histories` needs, too: without them the baseline has holes.
	recorded []string
	// rolledOut says when every run of the tests replaces the worker, as outage.RolloutOf has it; during it, if that is empty.
	rolledOut []string
}

// created is the scenario in which everything begins.
const created = "create"

var scenarios = []scenario{
	{
		name: created, before: func(*testCase) {}, act: (*testCase).backUp,
		want: "reconciled", done: (*testCase).reconciled,
		check: func(c *testCase, e effects) {
			assert.Len(c.t, e.Commands, 1)
			assert.Len(c.t, e.Containers, 1)
			assert.Contains(c.t, e.Object, `"state": "RunningDifferentially"`)
			assert.Contains(c.t, e.Writes, "create deployments orders")
		},
		sample:   []string{"temporal before regular run-fdb-command start"},
		recorded: []string{"worker after regular run-fdb-command start"},
	},
	{
		name: "change the destination", inLong: true, before: reconciled,
		act: func(c *testCase) {
			c.edit(func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.Destination.Path += "/moved" })
		},
		want: "reconciled at another place", done: (*testCase).reconciled,
		check: func(c *testCase, e effects) {
			require.Len(c.t, e.Commands, 3, "start, abort, start")
			assert.Contains(c.t, e.Commands[1], "abort")
			assert.Len(c.t, e.Containers, 2)
		},
		sample: []string{"worker after regular run-fdb-command abort"},
	},
	{
		name: "modify the period", inLong: true, before: reconciled,
		act: func(c *testCase) {
			c.edit(func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.SnapshotPeriodSeconds = 3600 })
		},
		want: "reconciled with another period", done: (*testCase).reconciled,
		check: func(c *testCase, e effects) {
			require.Len(c.t, e.Commands, 2)
			assert.Contains(c.t, e.Commands[1], "modify")
			assert.Contains(c.t, e.Database, "every 3600 s")
		},
		sample: []string{"worker before regular run-fdb-command modify"},
	},
	{
		name: "pause", before: reconciled, act: (*testCase).pause,
		want: "paused", done: (*testCase).reconciled,
		check: func(c *testCase, e effects) {
			require.Len(c.t, e.Commands, 2)
			assert.Contains(c.t, e.Database, "paused: true")
			assert.Contains(c.t, e.Owner, "paused: true")
		},
		sample: []string{"watcher before signal"},
	},
	{
		name: "resume", inLong: true,
		before: func(c *testCase) {
			reconciled(c)
			c.pause()
			c.await("paused", c.reconciled)
		},
		act:  func(c *testCase) { c.toState(fdbv1alpha1.BackupStateRunning) },
		want: "resumed", done: (*testCase).reconciled,
		check: func(c *testCase, e effects) {
			require.Len(c.t, e.Commands, 3)
			assert.Contains(c.t, e.Database, "paused: false")
		},
	},
	{
		name: "stop", inLong: true, before: reconciled,
		act:  func(c *testCase) { c.toState(fdbv1alpha1.BackupStateStopped) },
		want: "stopped", done: (*testCase).reconciled, ends: true,
		check: func(c *testCase, e effects) {
			require.Len(c.t, e.Commands, 2)
			assert.Contains(c.t, e.Database, "Aborted")
			assert.Empty(c.t, e.Owner)
		},
	},
	{
		name: "delete", before: reconciled,
		act:  func(c *testCase) { require.NoError(c.t, c.admin.Delete(c.t.Context(), c.backup.DeepCopy())) },
		want: "gone", done: (*testCase).gone, ends: true,
		check: func(c *testCase, e effects) {
			assert.Empty(c.t, e.Object)
			assert.Contains(c.t, e.Database, "Aborted")
			assert.Empty(c.t, e.Containers, "the data go with it")
		},
		sample:   []string{"temporal before local apply-fdb-pod 1"},
		recorded: []string{"worker after regular run-fdb-command abort", "worker after regular delete-fdb-pod 1"},
	},
	{
		name: "expire", before: (*testCase).aged,
		act: func(c *testCase) {
			c.edit(func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.Expiry.MaxRetention = "5s" })
		},
		want: "expired", done: (*testCase).expired,
		check: func(c *testCase, e effects) {
			expired := 0
			for _, command := range e.Commands {
				if strings.HasPrefix(command, "expire") {
					expired++
				}
			}
			assert.Equal(c.t, 1, expired, "%v", e.Commands)
			assert.Contains(c.t, e.Writes, "create pods orders-expiry-POD")
		},
		sample:   []string{"worker before local apply-fdb-pod 1", "temporal after local apply-fdb-pod 1"},
		recorded: []string{"worker after regular request-fdb-container expire", "watcher before signal"},
	},
	{
		name: "restore", before: (*testCase).emptied, act: (*testCase).restoreIt,
		want: "restored", done: (*testCase).restoreDone, ends: true,
		check: func(c *testCase, e effects) {
			assert.Equal(c.t, map[string]string{"kept": "yes"}, e.Keys)
			assert.Contains(c.t, e.Restore, `"state": "Completed"`)
		},
		sample:   []string{"worker after local plan-fdb-restore"},
		recorded: []string{"temporal before regular run-fdb-restore-command restore", "watcher before signal"},
	},
	{
		name: "stop a restore",
		before: func(c *testCase) {
			c.emptied()
			require.NoError(c.t, c.sim.Control(c.database, func(control *fdbsim.Control) { control.Restore = time.Hour }))
			c.restoreIt()
			c.await("it runs", func() bool { return c.restoreState() == fdbv1alpha1.RestoreRunning })
		},
		act: func(c *testCase) {
			stop := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"restoreState":"Stopped"}}`))
			require.NoError(c.t, c.admin.Patch(c.t.Context(), c.restore.DeepCopy(), stop))
		},
		want: "aborted", done: func(c *testCase) bool { return c.restoreState() == fdbv1alpha1.RestoreAborted }, ends: true,
		check: func(c *testCase, e effects) {
			assert.Empty(c.t, e.Keys, "nothing was written yet")
			assert.Contains(c.t, e.Restore, "the destination holds partial data")
		},
		sample: []string{"worker after regular run-fdb-restore-command abort-restore"},
	},
	{
		name: "delete a restore",
		before: func(c *testCase) {
			c.emptied()
			c.restoreIt()
			c.await("restored", c.restoreDone)
			// It says so, and then leaves its database's owner: that is part of no deletion.
			c.awaitStatus(c.restoreWorkflow(), enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED)
		},
		act:  func(c *testCase) { require.NoError(c.t, c.admin.Delete(c.t.Context(), c.restore.DeepCopy())) },
		want: "the restore is gone", done: (*testCase).restoreGone, ends: true,
		check: func(c *testCase, e effects) {
			assert.Empty(c.t, e.Restore)
			assert.Equal(c.t, map[string]string{"kept": "yes"}, e.Keys, "what was restored stays")
		},
	},
}

// aDrill is why the activities of a drill are left out: it takes a second database, and its restore is one of these scenarios.
const aDrill = "test/fdb kills the workers in every phase of a drill (TestKilledAtEveryPhaseADrillEndsTheSame), and a run that " +
	"is lost at any of these is TestLostAtAnyActivityADrillEndsTheSame"

// leftOut are the activities that no scenario comes to, and why.
var leftOut = map[string]string{
	contract.ObserveFDBDrill.Name: aDrill,
	contract.AdmitFDBDrill.Name:   aDrill, contract.SurveyFDBDrill.Name: aDrill, contract.PlanFDBDrill.Name: aDrill,
	contract.StartFDBDrillRestore.Name: aDrill, contract.CheckFDBDrill.Name: aDrill, contract.ConcludeFDBDrill.Name: aDrill,
	contract.RemoveFDBDrillRestore.Name: aDrill, contract.EndFDBDrill.Name: aDrill,
	contract.DescribeWorkflows.Name:   "comes by the clock, a minute after there is somebody to look after; it only reads",
	contract.ReplayOpenWorkflows.Name: "is a rollout's, and of no object; it only reads",
}

// allActivities returns the names of all activities of FoundationDB's half.
func allActivities() []string {
	var names []string
	for _, kind := range workflows.Kinds() {
		if kind.Queue != contract.QueueVelero {
			names = append(names, kind.Activities...)
		}
	}
	slices.Sort(names)
	return names
}

func reconciled(c *testCase) {
	c.backUp()
	c.await("reconciled", c.reconciled)
}

func (c *testCase) toState(state fdbv1alpha1.BackupState) {
	c.t.Helper()
	c.edit(func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.BackupState = state })
}

func (c *testCase) pause() { c.toState(fdbv1alpha1.BackupStatePaused) }

// aged makes a backup of which some is older than five seconds, with a snapshot every second.
func (c *testCase) aged() {
	c.t.Helper()
	c.backUpEvery(1)
	c.await("some of it is old", func() bool {
		present, err := c.read()
		if err != nil || present == nil || len(present.Status.Backups) == 0 {
			return false
		}
		entry := present.Status.Backups[0]
		return c.reconciled() && entry.OldestData != nil && entry.LatestRestorable.Version-entry.OldestData.Version > 15_000_000
	})
}

func (c *testCase) expired() bool {
	present, err := c.read()
	return err == nil && present != nil && present.Status.Expiry != nil &&
		present.Status.Expiry.Reason == fdbv1alpha1.ExpiryExpired && c.reconciled()
}

// emptied makes a backup with one key, and a database that has lost it.
func (c *testCase) emptied() {
	c.t.Helper()
	require.NoError(c.t, c.sim.Set(c.database, map[string]string{"kept": "yes"}))
	reconciled(c)
	c.toState(fdbv1alpha1.BackupStateStopped)
	c.await("stopped", c.reconciled)
	require.NoError(c.t, c.sim.Clear(c.database, "", "\xff"))
}

// restoreIt creates the case's FoundationDBRestore.
func (c *testCase) restoreIt() {
	c.t.Helper()
	c.restore = &fdbv1alpha1.FoundationDBRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name},
		Spec:       fdbv1alpha1.FoundationDBRestoreSpec{BackupName: name, DestinationClusterName: name},
	}
	require.NoError(c.t, c.admin.Create(c.t.Context(), c.restore))
}

// readRestore returns the FoundationDBRestore, nil if there is none.
func (c *testCase) readRestore() (*fdbv1alpha1.FoundationDBRestore, error) {
	if c.restore == nil {
		return nil, nil
	}
	present := &fdbv1alpha1.FoundationDBRestore{}
	err := c.admin.Get(context.Background(), client.ObjectKeyFromObject(c.restore), present)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return present, err
}

func (c *testCase) restoreGone() bool {
	present, err := c.readRestore()
	return err == nil && present == nil
}

// restoreState is what status.state shows; empty if it is not known.
func (c *testCase) restoreState() fdbv1alpha1.ObservedRestoreState {
	present, err := c.readRestore()
	if err != nil || present == nil {
		return ""
	}
	return present.Status.State
}

func (c *testCase) restoreDone() bool {
	present, err := c.readRestore()
	return err == nil && present != nil && present.Status.State == fdbv1alpha1.RestoreCompleted && present.Status.RestoredVersion != 0
}
