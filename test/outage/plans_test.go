package outage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	temporalclient "go.temporal.io/sdk/client"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// The runs of the first plan are requested, the first through Temporal, the second through the object: its schedule is far off.
var planScenarios = []scenario{{
	name:   "a plan's two runs, of which it keeps one",
	before: planned,
	act: func(c *testCase) {
		require.NoError(c.t, c.schedule().Trigger(c.t.Context(), temporalclient.ScheduleTriggerOptions{}))
		c.await("a good run", c.planIs(func(s *holdfastv1alpha1.BackupPlanStatus) bool { return s.Counts.Good == 1 }))
		c.patchPlan(`{"metadata":{"annotations":{"holdfast.dev/run-now":"1"}}}`)
		c.await("another, and the first gone", c.planIs(func(s *holdfastv1alpha1.BackupPlanStatus) bool {
			return s.Counts.Good == 2 && s.Counts.Stored == 1 && len(s.Retention.Kept) == 1 && len(s.Recent) == 2 &&
				s.Recent[1].Phase == holdfastv1alpha1.PhaseDeleted
		}))
		c.planned = c.planStatus()
		c.await("its Schedule is there", func() bool { return c.describeSchedule() == nil }) // again, if Temporal has lost it
		require.NoError(c.t, c.admin.Delete(c.t.Context(), c.plan.DeepCopy()))
	},
	want: "the plan gone, its Schedule too",
	done: (*testCase).planGone,
	check: func(c *testCase, e effects) {
		assert.Len(c.t, e.Backups, 1, "deleting a plan keeps its backups")
		assert.NotEmpty(c.t, e.Files)
		assert.Equal(c.t, 2, occurrencesOf(e.Writes, "create nonadminbackups nightly-plan-STAMP"))
		assert.Contains(c.t, e.Plan, `"good": 2`)
		assert.NotContains(c.t, e.Plan, `"missed"`)
	},
	sample: []string{"worker before local record-plan-backups"},
	recorded: []string{
		"worker after regular run-plan",
		"watcher after local delete-plan-backup",
		"temporal after local record-plan-backups",
	},
	newer: true,
}, {
	name:   "a plan's run that is due",
	before: func(*testCase) {},
	act: func(c *testCase) {
		due := time.Now().UTC().Add(time.Minute + 10*time.Second) // so that the plan is ready before it
		c.planAs(due.Format("4 15 2 1") + " *")
		c.await("a good run", c.planIs(func(s *holdfastv1alpha1.BackupPlanStatus) bool {
			return s.Counts.Good == 1 && len(s.Retention.Kept) == 1
		}))
		c.planned = c.planStatus()
		require.NoError(c.t, c.admin.Delete(c.t.Context(), c.plan.DeepCopy()))
	},
	want: "the plan gone, its Schedule too",
	done: (*testCase).planGone,
	check: func(c *testCase, e effects) {
		assert.Len(c.t, e.Backups, 1)
		assert.NotEmpty(c.t, e.Files)
		assert.Equal(c.t, 1, occurrencesOf(e.Writes, "create nonadminbackups nightly-plan-STAMP"))
		assert.NotContains(c.t, e.Plan, `"missed"`)
	},
	sample: []string{"worker after regular run-plan"},
	newer:  true,
}}

// planned creates the case's plan, of which nothing is due meanwhile, and waits until it has its Schedule.
func planned(c *testCase) { c.planAs("0 0 1 1 *") }

func (c *testCase) planAs(schedule string) {
	c.t.Helper()
	c.plan = &holdfastv1alpha1.BackupPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "nightly-plan"}, // so long that no time is left in Velero's names
		Spec: holdfastv1alpha1.BackupPlanSpec{
			Schedule: schedule, Jitter: "0s", Keep: &holdfastv1alpha1.Keep{Last: 1},
			Template: holdfastv1alpha1.BackupTemplate{Spec: holdfastv1alpha1.BackupTemplateSpec{BackupSpec: &velerov1.BackupSpec{
				SnapshotVolumes: ptr.To(false), DefaultVolumesToFsBackup: ptr.To(false),
				IncludedResources: []string{"configmaps"},
				LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "seed"}},
			}}},
		},
	}
	require.NoError(c.t, c.admin.Create(c.t.Context(), c.plan))
	c.await("ready", c.planIs(func(s *holdfastv1alpha1.BackupPlanStatus) bool { return s.NextRun != nil }))
}

func (c *testCase) patchPlan(merge string) {
	c.t.Helper()
	require.NoError(c.t, c.admin.Patch(c.t.Context(), c.plan.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(merge))))
}

func (c *testCase) planIs(ok func(*holdfastv1alpha1.BackupPlanStatus) bool) func() bool {
	return func() bool {
		now := &holdfastv1alpha1.BackupPlan{}
		return c.admin.Get(context.Background(), client.ObjectKeyFromObject(c.plan), now) == nil && ok(&now.Status)
	}
}

// planStatus is the plan's status, without what depends on how many passes there were.
func (c *testCase) planStatus() string {
	c.t.Helper()
	now := &holdfastv1alpha1.BackupPlan{}
	require.NoError(c.t, c.admin.Get(c.t.Context(), client.ObjectKeyFromObject(c.plan), now))
	now.Status.HandledDue, now.Status.HandledSchedule = nil, "" // of a schedule, and of this case alone
	now.Status.Days = inAll(now.Status.Days)
	return c.plain(asJSON(now.Status))
}

// inAll adds up days: midnight may come amid a case.
func inAll(days []holdfastv1alpha1.Day) []holdfastv1alpha1.Day {
	all := holdfastv1alpha1.Day{}
	for _, day := range days {
		all.Good += day.Good
		all.Failed += day.Failed
		all.Missed += day.Missed
		all.Skipped += day.Skipped
	}
	return []holdfastv1alpha1.Day{all}
}

// planNow says of a plan what is to be seen of it, for a failure's text.
func (c *testCase) planNow() string {
	now := &holdfastv1alpha1.BackupPlan{}
	if err := c.admin.Get(context.Background(), client.ObjectKeyFromObject(c.plan), now); err != nil {
		return err.Error()
	}
	return asJSON(now.Status)
}

func (c *testCase) planRef() contract.ObjectRef {
	return contract.ObjectRef{Namespace: c.namespace, Name: c.plan.Name, UID: string(c.plan.UID)}
}

func (c *testCase) schedule() temporalclient.ScheduleHandle {
	return c.temporal.ScheduleClient().GetHandle(context.Background(), contract.WorkflowID(c.namespace, contract.KindPlan, c.planRef()))
}

// describeSchedule returns an error if the plan has no Schedule.
func (c *testCase) describeSchedule() error {
	ctx, cancel := context.WithTimeout(context.Background(), callPatience)
	defer cancel()
	_, err := c.schedule().Describe(ctx)
	return err
}

// planGone: the object, its Schedule and its workflow.
func (c *testCase) planGone() bool {
	err := c.admin.Get(context.Background(), client.ObjectKeyFromObject(c.plan), &holdfastv1alpha1.BackupPlan{})
	if !apierrors.IsNotFound(err) {
		return false
	}
	if c.describeSchedule() == nil {
		return false
	}
	c.awaitEnd(contract.KindPlan, c.plan)
	return true
}

// Temporal is away over two due times: the newest is made up, and the other one is counted.
func TestAPlanMakesUpTheNewestRunAfterTemporalWasAway(t *testing.T) {
	sample.InLong(t, "TestKilledAnywhere") // of what is due once, which takes a minute by the clock; this takes three
	r := theRig(t)
	withCase(t, r, (*testCase).missesARun)
}

func (c *testCase) missesARun() {
	c.t.Helper()
	t, r := c.t, c.rig
	c.planAs("* * * * *")
	c.await("a good run", c.planIs(func(s *holdfastv1alpha1.BackupPlanStatus) bool { return s.Counts.Good >= 1 }))
	temporal := r.stack.Component(env.Temporal)
	before := c.runs()
	require.NoError(t, temporal.Pause())
	away := time.Now()
	time.Sleep(time.Until(away.Truncate(time.Minute).Add(2*time.Minute + 10*time.Second)))
	assert.Equal(t, before, c.runs(), "nothing is made while Temporal is away")
	require.NoError(t, temporal.Resume())
	c.await("one missed, one made up", c.planIs(func(s *holdfastv1alpha1.BackupPlanStatus) bool { return s.Counts.Missed >= 1 }))
	c.await("one made up", func() bool { return c.runs() > before })
	assert.True(t, c.planIs(func(s *holdfastv1alpha1.BackupPlanStatus) bool { return s.Counts.Missed == 1 })())
	require.NoError(t, c.admin.Delete(t.Context(), c.plan.DeepCopy()))
	c.await("gone", c.planGone)
}

// runs is the number of the plan's backups.
func (c *testCase) runs() int {
	c.t.Helper()
	list := &oadpv1alpha1.NonAdminBackupList{}
	require.NoError(c.t, c.admin.List(c.t.Context(), list, client.InNamespace(c.namespace)))
	return len(list.Items)
}

// scheduleOf says of a Schedule what is to be seen of it, for a failure's text.
func (c *testCase) scheduleOf() string {
	ctx, cancel := context.WithTimeout(context.Background(), callPatience)
	defer cancel()
	described, err := c.schedule().Describe(ctx)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("paused %t, %q, next %v", described.Schedule.State.Paused, described.Schedule.State.Note, described.Info.NextActionTimes)
}
