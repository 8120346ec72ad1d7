package fdb_test

import (
	"slices"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"holdfast.dev/holdfast/activities"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
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
	wish string
	done func(*testCase) bool
	// ends: the object's workflow has nothing more to do then.
	ends bool
	// check looks at what an undisturbed run has left.
	check func(*testCase, effects)
	// sample are the disturbances that every run of the tests has.
	sample []string
}

// created is the scenario in which everything begins.
const created = "create"

var scenarios = []scenario{
	{
		name: created, before: func(*testCase) {}, act: (*testCase).backUp,
		wish: "reconciled", done: (*testCase).reconciled,
		check: func(c *testCase, e effects) {
			assert.Len(c.t, e.Commands, 1)
			assert.Len(c.t, e.Containers, 1)
			assert.Contains(c.t, e.Object, `"state": "RunningDifferentially"`)
			assert.Contains(c.t, e.Writes, "create deployments orders")
		},
		sample: []string{"worker after regular run-fdb-command start", "temporal before regular run-fdb-command start"},
	},
	{
		name: "change the destination", before: reconciled,
		act: func(c *testCase) {
			c.edit(func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.Destination.Path += "/moved" })
		},
		wish: "reconciled at another place", done: (*testCase).reconciled,
		check: func(c *testCase, e effects) {
			require.Len(c.t, e.Commands, 3, "start, abort, start")
			assert.Contains(c.t, e.Commands[1], "abort")
			assert.Len(c.t, e.Containers, 2)
		},
		sample: []string{"worker after regular run-fdb-command abort"},
	},
	{
		name: "modify the period", before: reconciled,
		act: func(c *testCase) {
			c.edit(func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.SnapshotPeriodSeconds = 3600 })
		},
		wish: "reconciled with another period", done: (*testCase).reconciled,
		check: func(c *testCase, e effects) {
			require.Len(c.t, e.Commands, 2)
			assert.Contains(c.t, e.Commands[1], "modify")
			assert.Contains(c.t, e.Database, "every 3600 s")
		},
		sample: []string{"worker before regular run-fdb-command modify"},
	},
	{
		name: "pause", before: reconciled, act: (*testCase).pause,
		wish: "paused", done: (*testCase).reconciled,
		check: func(c *testCase, e effects) {
			require.Len(c.t, e.Commands, 2)
			assert.Contains(c.t, e.Database, "paused: true")
			assert.Contains(c.t, e.Owner, "paused: true")
		},
		sample: []string{"watcher before signal"},
	},
	{
		name: "resume",
		before: func(c *testCase) {
			reconciled(c)
			c.pause()
			c.await("paused", c.reconciled)
		},
		act:  func(c *testCase) { c.toState(fdbv1alpha1.BackupStateRunning) },
		wish: "resumed", done: (*testCase).reconciled,
		check: func(c *testCase, e effects) {
			require.Len(c.t, e.Commands, 3)
			assert.Contains(c.t, e.Database, "paused: false")
		},
	},
	{
		name: "stop", before: reconciled,
		act:  func(c *testCase) { c.toState(fdbv1alpha1.BackupStateStopped) },
		wish: "stopped", done: (*testCase).reconciled, ends: true,
		check: func(c *testCase, e effects) {
			require.Len(c.t, e.Commands, 2)
			assert.Contains(c.t, e.Database, "Aborted")
			assert.Empty(c.t, e.Owner)
		},
	},
	{
		name: "delete", before: reconciled,
		act:  func(c *testCase) { require.NoError(c.t, c.admin.Delete(c.t.Context(), c.backup.DeepCopy())) },
		wish: "gone", done: (*testCase).gone, ends: true,
		check: func(c *testCase, e effects) {
			assert.Empty(c.t, e.Object)
			assert.Contains(c.t, e.Database, "Aborted")
			assert.Len(c.t, e.Containers, 1, "the data are kept")
		},
		sample: []string{"worker after regular run-fdb-command abort"},
	},
}

// leftOut are the activities that no scenario comes to, and why.
var leftOut = map[string]string{
	contract.ActivityDescribeWorkflows: "comes by the clock, a minute after there is somebody to look after; it only reads",
}

// allActivities returns the names of the activities that serve FoundationDB backups.
func allActivities() []string {
	var names registry
	(&activities.FDBBackups{}).Register(&names)
	(&activities.FDBTools{}).Register(&names)
	(&activities.FDBCoordination{}).Register(&names)
	slices.Sort(names.registered)
	return slices.Compact(names.registered)
}

type registry struct {
	worker.ActivityRegistry
	registered []string
}

// RegisterActivityWithOptions implements worker.ActivityRegistry.
func (r *registry) RegisterActivityWithOptions(_ any, options activity.RegisterOptions) {
	r.registered = append(r.registered, options.Name)
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
