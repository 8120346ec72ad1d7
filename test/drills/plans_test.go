package drills_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// plan creates a BackupPlan that makes one run now, none by its schedule, and a drill every minute.
func (x *tenant) plan(timeout string) *holdfastv1alpha1.BackupPlan {
	x.t.Helper()
	plan := &holdfastv1alpha1.BackupPlan{
		ObjectMeta: metav1.ObjectMeta{Name: "nightly", Annotations: map[string]string{holdfastv1alpha1.AnnotationRunNow: "1"}},
		Spec: holdfastv1alpha1.BackupPlanSpec{
			Schedule: "0 0 29 2 *", Jitter: "0s",
			Template: holdfastv1alpha1.BackupTemplate{Spec: holdfastv1alpha1.BackupTemplateSpec{BackupSpec: &velerov1.BackupSpec{
				SnapshotVolumes: ptr.To(false), DefaultVolumesToFsBackup: ptr.To(false),
			}}},
			Drill:     &holdfastv1alpha1.PlanDrill{Schedule: "* * * * *", Timeout: timeout},
			Objective: &holdfastv1alpha1.Objective{RecoveryPoint: "26h", Verified: "168h"},
		},
	}
	x.create(plan)
	return plan
}

func (x *tenant) awaitPlan(plan *holdfastv1alpha1.BackupPlan, want string, ok func(*holdfastv1alpha1.BackupPlanStatus) bool,
) *holdfastv1alpha1.BackupPlanStatus {
	x.t.Helper()
	now := &holdfastv1alpha1.BackupPlan{}
	eventually.Succeeds(x.t, 2*patience, func() error {
		err := x.client.Get(context.Background(), client.ObjectKeyFromObject(plan), now)
		if err == nil && !ok(&now.Status) {
			err = fmt.Errorf("plan %s/%s, not yet: %s: %+v, %+v", plan.Namespace, plan.Name, want, now.Status, now.Status.Drills)
		}
		return err
	})
	return &now.Status
}

// shown waits until a NonAdminBackup shows the verdict of a drill, and returns both.
func (x *tenant) shown(backup string) (*oadpv1alpha1.NonAdminBackup, *metav1.Condition) {
	x.t.Helper()
	nab, verdict := &oadpv1alpha1.NonAdminBackup{}, (*metav1.Condition)(nil)
	eventually.IsTrue(x.t, patience, fmt.Sprintf("backup %s/%s shows a verdict", x.namespace, backup), func() bool {
		err := x.client.Get(context.Background(), client.ObjectKey{Namespace: x.namespace, Name: backup}, nab)
		verdict = meta.FindStatusCondition(nab.Status.Conditions, holdfastv1alpha1.ConditionVerified)
		return err == nil && verdict != nil
	})
	return nab, verdict
}

// drills are those of the plan, by name.
func (x *tenant) drills(plan *holdfastv1alpha1.BackupPlan) map[string]*holdfastv1alpha1.RestoreDrill {
	x.t.Helper()
	list := &holdfastv1alpha1.RestoreDrillList{}
	require.NoError(x.t, x.client.List(x.t.Context(), list, client.InNamespace(x.namespace),
		client.MatchingLabels{holdfastv1alpha1.LabelPlan: plan.Name}))
	drills := map[string]*holdfastv1alpha1.RestoreDrill{}
	for i := range list.Items {
		drills[list.Items[i].Name] = &list.Items[i]
	}
	return drills
}

func (x *tenant) patch(object client.Object, merge string) {
	x.t.Helper()
	require.NoError(x.t, x.client.Patch(x.t.Context(), object, client.RawPatch(types.MergePatchType, []byte(merge))))
}

func TestAPlanHasItsNewestGoodBackupVerified(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "heidi")
	x.create(workload("web", running), configMap("settings"))
	plan := x.plan("5m")
	status := x.awaitPlan(plan, "a backup is verified", func(s *holdfastv1alpha1.BackupPlanStatus) bool {
		return s.LastVerified != nil && meta.IsStatusConditionTrue(s.Conditions, holdfastv1alpha1.ConditionObjectiveMet)
	})
	good := status.LastGood.Name
	assert.Equal(t, good, status.LastVerified.Name)
	assert.False(t, status.LastVerified.Verified.Before(&status.LastVerified.Time), "%+v", status.LastVerified)
	nab, shown := x.shown(good)
	assert.Equal(t, metav1.ConditionTrue, shown.Status)
	assert.Equal(t, nab.Status.VeleroBackup.Status.CompletionTimestamp.UTC(), status.LastVerified.Time.UTC())
	drill := x.drills(plan)[nab.Status.LastDrill.Name]
	require.NotNil(t, drill, "it is one of the plan's")
	assert.Equal(t, good, drill.Spec.BackupName)
	assert.Equal(t, nab.UID, drill.Status.BackupUID)
	assert.Contains(t, shown.Message, "RestoreDrill "+drill.Name+", ")
	t.Logf("%s: %s", shown.Reason, shown.Message)

	x.patch(plan, `{"spec":{"paused":true}}`)
	x.awaitPlan(plan, "paused, and its drills are over", func(s *holdfastv1alpha1.BackupPlanStatus) bool {
		return s.Paused != "" && s.Drills.Next == nil && s.Drills.Last.Phase == string(holdfastv1alpha1.DrillEnded)
	})
	for i := range 3 { // older ones that say they are the plan's, and cannot be made
		old := &holdfastv1alpha1.RestoreDrill{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint("old-", i), Labels: map[string]string{holdfastv1alpha1.LabelPlan: plan.Name},
				Annotations: map[string]string{
					holdfastv1alpha1.AnnotationPlanUID: string(plan.UID), holdfastv1alpha1.AnnotationDue: fmt.Sprintf("2026-01-0%dT00:00:00Z", i+1),
				},
			},
			Spec: holdfastv1alpha1.RestoreDrillSpec{BackupName: "nowhere"},
		}
		x.create(old)
	}
	eventually.IsTrue(t, patience, "the newest stay", func() bool { return len(x.drills(plan)) == 3 })
	assert.NotContains(t, x.drills(plan), "old-0")

	require.NoError(t, x.client.Delete(t.Context(), drill))
	require.NoError(t, x.client.Delete(t.Context(), plan))
	eventually.IsTrue(t, patience, "the drill goes", func() bool {
		return apierrors.IsNotFound(x.client.Get(context.Background(), client.ObjectKeyFromObject(drill), drill))
	})
	_, kept := x.shown(good)
	assert.Equal(t, shown, kept, "the verdict outlives drill and plan")
}

// A drill that waits for a workload until its time is over lasts longer than the time between two that are due.
func TestADrillThatIsDueWhileTheLastOneRunsIsSkipped(t *testing.T) {
	sample.InLong(t, "TestAPlanHasItsNewestGoodBackupVerified")
	t.Parallel()
	x := newTenant(t, "alice")
	x.create(workload("broken", "example.com/nowhere:1"), configMap("settings"))
	plan := x.plan("2m")
	var first string
	status := x.awaitPlan(plan, "a drill that runs, and one skipped", func(s *holdfastv1alpha1.BackupPlanStatus) bool {
		if s.Drills == nil || s.Drills.Last == nil {
			return false
		}
		first = s.Drills.Last.Name
		return s.Drills.LastSkipped != nil && s.Drills.LastSkipped.Time.After(s.Drills.Last.Time.Time)
	})
	assert.Equal(t, "the last drill is not over: RestoreDrill "+first, status.Drills.LastSkipped.Why)
	assert.Len(t, x.drills(plan), 1)
	var events corev1.EventList
	eventually.IsTrue(t, patience, "Event DrillSkipped", func() bool {
		if x.client.List(context.Background(), &events, client.InNamespace(x.namespace)) != nil {
			return false
		}
		for _, each := range events.Items {
			if each.InvolvedObject.Name == plan.Name && each.Reason == "DrillSkipped" {
				return true
			}
		}
		return false
	})

	nab, shown := x.shown(status.LastGood.Name)
	assert.Equal(t, "False ChecksFailed", string(shown.Status)+" "+shown.Reason)
	assert.Equal(t, first, nab.Status.LastDrill.Name)
	failed := x.awaitPlan(plan, "it knows", func(s *holdfastv1alpha1.BackupPlanStatus) bool {
		return s.Drills.Last.Name != first || s.Drills.Last.Verified == holdfastv1alpha1.ReasonChecksFailed
	})
	assert.Nil(t, failed.LastVerified)
}
