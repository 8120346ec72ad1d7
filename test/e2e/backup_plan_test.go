package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	temporalclient "go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

type backupPlan = holdfastv1alpha1.BackupPlan

// plan creates a BackupPlan as the tenant.
func (x *tenant) plan(name, schedule string, alter func(*holdfastv1alpha1.BackupPlanSpec)) *backupPlan {
	x.t.Helper()
	plan := &backupPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name},
		Spec: holdfastv1alpha1.BackupPlanSpec{
			Schedule: schedule, Jitter: "0s",
			Template: holdfastv1alpha1.BackupTemplate{Spec: holdfastv1alpha1.BackupTemplateSpec{BackupSpec: &velerov1.BackupSpec{
				SnapshotVolumes: ptr.To(false), DefaultVolumesToFsBackup: ptr.To(false),
			}}},
		},
	}
	if alter != nil {
		alter(&plan.Spec)
	}
	require.NoError(x.t, x.client.Create(x.t.Context(), plan))
	return plan
}

func (x *tenant) awaitPlan(plan *backupPlan, action string, ok func(*backupPlan) bool) *backupPlan {
	x.t.Helper()
	return awaitObject(x.t, admin, plan, 8*time.Minute, action, func(now *backupPlan, there bool) bool {
		x.checkTakenUpOnce()
		return there && ok(now)
	})
}

// runs are the NonAdminBackups of a plan, by name.
func (x *tenant) runs(plan *backupPlan) []oadpv1alpha1.NonAdminBackup {
	x.t.Helper()
	list := &oadpv1alpha1.NonAdminBackupList{}
	require.NoError(x.t, admin.List(x.t.Context(), list, client.InNamespace(x.namespace),
		client.MatchingLabels{holdfastv1alpha1.LabelPlan: plan.Name}))
	slices.SortFunc(list.Items, func(a, b oadpv1alpha1.NonAdminBackup) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}

// A plan every minute keeps the last two good backups: names, what is left, and nothing of the others in the bucket.
func TestAPlanMakesItsBackupsAndKeepsTheLastTwo(t *testing.T) {
	t.Parallel()
	repeated(t, "dave", (*tenant).keepsTheLastTwo)
}

func (x *tenant) keepsTheLastTwo() {
	t := x.t
	plan := x.plan("minutely", "* * * * *", func(spec *holdfastv1alpha1.BackupPlanSpec) {
		spec.Keep = &holdfastv1alpha1.Keep{Last: 2}
		spec.Objective = &holdfastv1alpha1.Objective{RecoveryPoint: "10m"}
	})
	copied := false
	x.awaitPlan(plan, "four good runs, two left", func(now *backupPlan) bool {
		if now.Status.Counts.Good > 0 && !copied { // a copy by hand, with the plan's label and UID
			copied = true
			first := x.runs(plan)[0]
			forged := &oadpv1alpha1.NonAdminBackup{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: x.namespace, Name: "copy", Labels: first.Labels, Annotations: first.Annotations,
				},
				Spec: first.Spec,
			}
			require.NoError(t, x.client.Create(t.Context(), forged))
		}
		return now.Status.Counts.Good >= 4
	})
	x.patchPlan(plan, `{"spec":{"paused":true}}`)
	now := x.awaitPlan(plan, "paused, two and the copy left", func(now *backupPlan) bool {
		status := now.Status
		return status.Paused != "" && status.Counts.Stored == 2+1 && len(status.Retention.Due) == 0 && len(status.Retention.Kept) == 2 &&
			status.Recent[0].Phase == string(velerov1.BackupPhaseCompleted)
	})
	left := []string{"copy", now.Status.Recent[0].Name, now.Status.Recent[1].Name}
	var names []string
	for _, nab := range x.runs(plan) {
		names = append(names, nab.Name)
		if nab.Name == "copy" {
			assert.False(t, nab.Spec.DeleteBackup, "no record says that the plan has made it")
			continue
		}
		due, err := time.Parse(time.RFC3339, nab.Annotations[holdfastv1alpha1.AnnotationDue])
		require.NoError(t, err)
		assert.Equal(t, "minutely-"+due.Format("20060102150405"), nab.Name)
		assert.Zero(t, due.Second())
	}
	assert.ElementsMatch(t, left, names)
	assert.Len(t, x.inBucket(), 3, "no others in the bucket")
	assert.Equal(t, "True", conditionOf(now, holdfastv1alpha1.ConditionReady), fmt.Sprint(now.Status))
	assert.Equal(t, "True", conditionOf(now, holdfastv1alpha1.ConditionObjectiveMet))
}

// inBucket are the folders of the tenant's backups in the bucket.
func (x *tenant) inBucket() map[string]bool {
	x.t.Helper()
	objects, err := stack.Objects("velero/backups/")
	require.NoError(x.t, err)
	folders := map[string]bool{}
	for _, object := range objects {
		if folder := strings.Split(object.Key, "/")[2]; strings.HasPrefix(folder, x.namespace) {
			folders[folder] = true
		}
	}
	return folders
}

func conditionOf(plan *backupPlan, kind string) string {
	for _, condition := range plan.Status.Conditions {
		if condition.Type == kind {
			return string(condition.Status)
		}
	}
	return ""
}

// farOff is a schedule of which nothing is due while the tests run.
const farOff = "0 0 29 2 *"

func scheduleOf(plan *backupPlan) temporalclient.ScheduleHandle {
	ref := contract.ObjectRef{Namespace: plan.Namespace, Name: plan.Name, UID: string(plan.UID)}
	return temporal.ScheduleClient().GetHandle(context.Background(), contract.WorkflowID(stack.ClusterID(), contract.KindPlan, ref))
}

// ready creates a plan, and waits until it has its Schedule.
func (x *tenant) ready(name string) *backupPlan {
	x.t.Helper()
	plan := x.plan(name, farOff, nil)
	return x.awaitPlan(plan, "ready", func(now *backupPlan) bool { return now.Status.NextRun != nil })
}

func paused(by holdfastv1alpha1.PausedBy) func(*backupPlan) bool {
	return func(now *backupPlan) bool { return now.Status.Paused == by }
}

// An operator pauses and resumes a plan's Schedule in Temporal, beside the tenant.
func TestAnOperatorsPauseOfAPlanHolds(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "dave")
	plan := x.ready("held")
	handle := scheduleOf(plan)
	require.NoError(t, handle.Pause(t.Context(), temporalclient.SchedulePauseOptions{Note: "maintenance"}))
	now := x.awaitPlan(plan, "paused by the operator", paused(holdfastv1alpha1.PausedByOperator))
	assert.Nil(t, now.Status.NextRun)
	x.patchPlan(plan, `{"spec":{"paused":true}}`)
	x.awaitPlan(plan, "paused by both", paused(holdfastv1alpha1.PausedByBoth))
	x.patchPlan(plan, `{"spec":{"paused":false}}`)
	x.awaitPlan(plan, "paused by the operator alone", paused(holdfastv1alpha1.PausedByOperator))
	described, err := handle.Describe(t.Context())
	require.NoError(t, err)
	assert.True(t, described.Schedule.State.Paused)
	assert.Equal(t, "maintenance", described.Schedule.State.Note, "an operator's note is left")
	require.NoError(t, handle.Unpause(t.Context(), temporalclient.ScheduleUnpauseOptions{}))
	x.awaitPlan(plan, "resumed", func(now *backupPlan) bool { return now.Status.Paused == "" && now.Status.NextRun != nil })
}

func (x *tenant) patchPlan(plan *backupPlan, merge string) {
	x.t.Helper()
	require.NoError(x.t, x.client.Patch(x.t.Context(), plan.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(merge))))
}

// What else somebody does to a Schedule is put back; a trigger and a backfill make one run each.
func TestAPlansScheduleIsEditedDeletedTriggeredAndBackfilled(t *testing.T) {
	t.Parallel()
	repeated(t, "dave", (*tenant).putsSchedulesBack)
}

func (x *tenant) putsSchedulesBack() {
	t := x.t
	edited, deleted, triggered, backfilled := x.ready("edited"), x.ready("deleted"), x.ready("triggered"), x.ready("backfilled")
	before, err := scheduleOf(edited).Describe(t.Context())
	require.NoError(t, err)
	require.NoError(t, scheduleOf(edited).Update(t.Context(), temporalclient.ScheduleUpdateOptions{
		DoUpdate: func(input temporalclient.ScheduleUpdateInput) (*temporalclient.ScheduleUpdate, error) {
			schedule := input.Description.Schedule
			schedule.Spec = &temporalclient.ScheduleSpec{Intervals: []temporalclient.ScheduleIntervalSpec{{Every: 12 * time.Hour}}}
			return &temporalclient.ScheduleUpdate{Schedule: &schedule}, nil
		},
	}))
	require.NoError(t, scheduleOf(deleted).Delete(t.Context()))
	begun := time.Now().Truncate(time.Second)
	require.NoError(t, scheduleOf(triggered).Trigger(t.Context(), temporalclient.ScheduleTriggerOptions{}))
	times := before.Info.NextActionTimes // those of all: the schedule is the same
	require.NoError(t, scheduleOf(backfilled).Backfill(t.Context(), temporalclient.ScheduleBackfillOptions{
		Backfill: []temporalclient.ScheduleBackfill{{Start: times[0].Add(-24*time.Hour).AddDate(-40, 0, 0), End: time.Now()}},
	}))
	for _, plan := range []*backupPlan{triggered, backfilled} {
		now := x.awaitPlan(plan, "one run", func(now *backupPlan) bool { return now.Status.Counts.Good == 1 })
		runs := x.runs(plan)
		require.Len(t, runs, 1)
		due, err := time.Parse(time.RFC3339, runs[0].Annotations[holdfastv1alpha1.AnnotationDue])
		require.NoError(t, err)
		assert.WithinRange(t, due, begun, time.Now(), "dated now")
		assert.Zero(t, now.Status.Counts.Missed)
	}
	awaitSuccessFor(t, 2*patience, func(ctx context.Context) error {
		after, err := scheduleOf(edited).Describe(ctx)
		again, gone := scheduleOf(deleted).Describe(ctx)
		switch {
		case err != nil || gone != nil:
			return errors.Join(err, gone)
		case len(after.Schedule.Spec.Intervals) != 0 || len(after.Schedule.Spec.Calendars) == 0:
			return fmt.Errorf("the edited Schedule has %v", after.Schedule.Spec)
		case len(again.Info.NextActionTimes) == 0:
			return errors.New("the deleted Schedule has no next time")
		}
		return nil
	})
}

// A tenant requests a run, and cannot reach beyond its namespace by a plan.
func TestAPlanIsTheTenantsOwn(t *testing.T) {
	t.Parallel()
	repeated(t, "erin", (*tenant).ownsItsPlans)
}

func (x *tenant) ownsItsPlans() {
	t := x.t
	other := newTenant(t, "frank")
	plan := x.ready("own")
	for _, value := range []string{"1", "2"} {
		x.patchPlan(plan, `{"metadata":{"annotations":{"holdfast.dev/run-now":"`+value+`"}}}`)
		plan = x.awaitPlan(plan, "a run", func(now *backupPlan) bool { return now.Status.HandledRunNow == value })
	}
	x.awaitPlan(plan, "two good runs", func(now *backupPlan) bool { return now.Status.Counts.Good == 2 })

	aiming := x.plan("aiming", farOff, func(spec *holdfastv1alpha1.BackupPlanSpec) {
		spec.Template.Spec.BackupSpec.IncludedNamespaces = []string{other.namespace}
	})
	x.patchPlan(aiming, `{"metadata":{"annotations":{"holdfast.dev/run-now":"1"}}}`)
	x.awaitPlan(aiming, "refused", func(now *backupPlan) bool { return now.Status.Counts.Failed == 1 })
	assert.Empty(t, veleroBackupsOf(t, other.namespace))
	for _, forbidden := range []string{
		`{"metadata":{"labels":{"holdfast.dev/hold":"false"}}}`, `{"metadata":{"annotations":{"openshift.io/oadp-nab-origin-name":"a"}}}`,
	} {
		err := x.client.Patch(t.Context(), plan.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"template":`+forbidden+`}}`)))
		require.ErrorContains(t, err, "are Holdfast's own", forbidden)
	}
	stranger := plan.DeepCopy()
	require.Error(t, other.client.Patch(t.Context(), stranger, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":true}}`))))
	require.NoError(t, x.client.Delete(t.Context(), plan))
	assert.Len(t, x.runs(plan), 2, "they stay")
}

// What only minGood keeps is moved on, on Velero's own Backup, before Velero deletes it.
func TestTheLastGoodBackupDoesNotExpire(t *testing.T) {
	t.Parallel()
	repeated(t, "dave", (*tenant).keepsTheLastGood)
}

func (x *tenant) keepsTheLastGood() {
	t := x.t
	const ttl = 40 * time.Second // half of it before the end it is extended
	plan := x.plan("lasting", farOff, func(spec *holdfastv1alpha1.BackupPlanSpec) {
		spec.Template.Spec.BackupSpec.TTL = metav1.Duration{Duration: ttl}
		spec.Keep = &holdfastv1alpha1.Keep{MinGood: ptr.To(int32(1))}
	})
	x.awaitPlan(plan, "ready", func(now *backupPlan) bool { return now.Status.NextRun != nil })
	x.patchPlan(plan, `{"metadata":{"annotations":{"holdfast.dev/run-now":"1"}}}`)
	var first time.Time
	now := x.awaitPlan(plan, "extended", func(now *backupPlan) bool {
		good := now.Status.LastGood
		if good == nil || good.Expires == nil {
			return false
		}
		if first.IsZero() {
			first = good.Expires.Time
		}
		return good.Expires.After(first)
	})
	made := veleroBackupsOf(t, x.namespace)
	require.Len(t, made, 1)
	// On a slow machine it has been extended once more.
	assert.False(t, made[0].Status.Expiration.Time.Before(now.Status.LastGood.Expires.Time), "on Velero's own Backup")
	assert.Equal(t, velerov1.BackupPhaseCompleted, made[0].Status.Phase)
	assert.Equal(t, ttl, made[0].Spec.TTL.Duration, "the spec is as it was")
	require.NoError(t, x.client.Delete(t.Context(), plan)) // or it is extended for ever
}

// Not parallel: the policy is everybody's.
func TestPlansFollowThePolicy(t *testing.T) {
	repeated(t, "carol", (*tenant).plansByThePolicy)
}

func (x *tenant) plansByThePolicy() {
	t := x.t
	const rules = `
plans: {minInterval: 1h, maxKept: 5}
defaultPlans:
- name: given
  namespaceSelector: {matchLabels: {backup: gold}}
  spec: {schedule: "0 0 29 2 *", template: {spec: {backupSpec: {}}}, keep: {last: %d}}
`
	setPolicy(t, map[string]string{"holdfast": fmt.Sprintf(rules, 9)})
	often := x.plan("often", "*/5 * * * *", func(spec *holdfastv1alpha1.BackupPlanSpec) { spec.Keep = &holdfastv1alpha1.Keep{Last: 3} })
	now := x.awaitPlan(often, "forbidden", func(now *backupPlan) bool { return conditionOf(now, holdfastv1alpha1.ConditionReady) == "False" })
	ready := meta.FindStatusCondition(now.Status.Conditions, holdfastv1alpha1.ConditionReady)
	assert.Equal(t, holdfastv1alpha1.ReasonForbidden, ready.Reason)
	assert.Equal(t, "the schedule makes runs 5m0s apart; the administrator allows 1h0m0s or more; "+
		"keep names up to 6 backups; the administrator allows 5", ready.Message)

	x.label("backup", "gold")
	given := &backupPlan{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "given"}}
	given = x.awaitPlan(given, "given, and ready", func(now *backupPlan) bool { return now.Status.NextRun != nil })
	for _, change := range []string{`{"spec":{"paused":true}}`, `{"metadata":{"labels":null}}`, `{"metadata":{"finalizers":["a.example/b"]}}`} {
		err := x.client.Patch(t.Context(), given.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(change)))
		require.ErrorContains(t, err, "this plan can only be annotated", change)
	}
	require.ErrorContains(t, x.client.Delete(t.Context(), given.DeepCopy()), "this plan can only be annotated")
	x.patchPlan(given, `{"metadata":{"annotations":{"holdfast.dev/run-now":"1"}}}`)
	x.awaitPlan(given, "a run that the tenant has requested", func(now *backupPlan) bool { return now.Status.Counts.Good == 1 })

	setPolicy(t, map[string]string{"holdfast": fmt.Sprintf(rules, 8)})
	x.awaitPlan(given, "as the policy is now", func(now *backupPlan) bool { return now.Spec.Keep.Last == 8 })
	setPolicy(t, map[string]string{"holdfast": "{}"})
	awaitObject(t, admin, given, patience, "gone", func(_ *backupPlan, there bool) bool { return !there })
	assert.Len(t, x.runs(given), 1, "its backups stay")
	x.awaitPlan(often, "allowed", func(now *backupPlan) bool { return conditionOf(now, holdfastv1alpha1.ConditionReady) == "True" })
	require.NoError(t, x.client.Delete(t.Context(), often))
}

// label sets a label of the tenant's namespace, as the administrator.
func (x *tenant) label(key, value string) {
	x.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: x.namespace}}
	merge := `{"metadata":{"labels":{"` + key + `":"` + value + `"}}}`
	require.NoError(x.t, admin.Patch(x.t.Context(), namespace, client.RawPatch(types.MergePatchType, []byte(merge))))
}
