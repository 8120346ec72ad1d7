package velero

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/starter/watch/watchtest"
)

// planned returns a plan whose workflow has seen all of it.
func planned() *holdfastv1alpha1.BackupPlan {
	plan := fake.BackupPlan(name)
	plan.Status.ObservedGeneration = plan.Generation
	return plan
}

func TestAPlansWorkflowRunsAsLongAsThePlanExists(t *testing.T) {
	const open, due, gone = "ensure plan team/nightly uid-nightly", "start plan team/nightly uid-nightly", "deleted plan team/nightly uid-nightly"
	fresh := planned()
	fresh.Status.ObservedGeneration = 0
	requested := planned()
	requested.Annotations = map[string]string{holdfastv1alpha1.AnnotationRunNow: "1"}
	handled := planned()
	handled.Annotations = requested.Annotations
	handled.Status.HandledRunNow = "1"
	long := planned()
	long.Annotations = map[string]string{holdfastv1alpha1.AnnotationRunNow: strings.Repeat("1", 1000)}
	long.Status.HandledRunNow = holdfastv1alpha1.RequestedRun(long.Annotations)
	restored := planned()
	restored.Status.UID = "uid-old"
	another := planned()
	another.UID = "uid-another"
	for title, test := range map[string]struct {
		there []client.Object
		want  string
	}{
		"nothing is due":     {[]client.Object{planned()}, open},
		"a new spec":         {[]client.Object{fresh}, due},
		"a run is requested": {[]client.Object{requested}, due},
		"and made":           {[]client.Object{handled}, open},
		"also a long value":  {[]client.Object{inCache(t, long)}, open},
		"another's status":   {[]client.Object{restored}, due},
		"it is gone":         {nil, gone},
		"another is there":   {[]client.Object{another}, gone},
	} {
		s := newStation(t, test.there...)
		_, err := s.plans.Reconcile(t.Context(), request(name))
		require.NoError(t, err, title)
		assert.Equal(t, []string{test.want}, s.signals.Sent, title)
	}
}

func TestWhichEventsConcernAPlan(t *testing.T) {
	s := newStation(t)
	before := planned()
	for title, test := range map[string]struct {
		change   func(*holdfastv1alpha1.BackupPlan)
		concerns bool
	}{
		"its status":               {func(p *holdfastv1alpha1.BackupPlan) { p.Status.Counts.Good++ }, false},
		"its status, by a restore": {func(p *holdfastv1alpha1.BackupPlan) { p.Status.UID = "uid-old" }, true},
		"its spec":                 {func(p *holdfastv1alpha1.BackupPlan) { p.Generation++ }, true},
		"a request for a run": {func(p *holdfastv1alpha1.BackupPlan) {
			p.Annotations = map[string]string{holdfastv1alpha1.AnnotationRunNow: "1"}
		}, true},
		"another annotation":    {func(p *holdfastv1alpha1.BackupPlan) { p.Annotations = map[string]string{"a": "b"} }, false},
		"it is being deleted":   {func(p *holdfastv1alpha1.BackupPlan) { p.DeletionTimestamp = &metav1.Time{Time: fake.PlanTime} }, true},
		"another incarnation 1": {func(p *holdfastv1alpha1.BackupPlan) { p.Generation++; p.Labels = map[string]string{"a": "b"} }, true},
	} {
		added := watchtest.Happens(t.Context(), s.plans.events(), before, edited(before, test.change))
		assert.Equal(t, test.concerns, len(added) > 0, title)
	}
	assert.Zero(t, s.defaults, "none is a default plan")
	marked := edited(before, func(p *holdfastv1alpha1.BackupPlan) {
		p.Labels = map[string]string{holdfastv1alpha1.LabelDefaultPlan: "true"}
	})
	watchtest.Happens(t.Context(), s.plans.events(), marked, before)
	watchtest.Happens(t.Context(), s.plans.events(), marked, edited(marked, func(p *holdfastv1alpha1.BackupPlan) { p.Generation++ }))
	watchtest.Happens(t.Context(), s.plans.events(), marked, nil)
	assert.Equal(t, 3, s.defaults, "somebody has changed it: it is put back")
	watchtest.Happens(t.Context(), s.plans.events(), marked, edited(marked, func(p *holdfastv1alpha1.BackupPlan) { p.Status.Counts.Good++ }))
	assert.Equal(t, 3, s.defaults)
}

func TestABackupConcernsThePlanThatItNames(t *testing.T) {
	s := newStation(t)
	nab := fake.NAB("nightly-20260801120100")
	nab.Labels = map[string]string{holdfastv1alpha1.LabelPlan: name}
	nab.Annotations = map[string]string{holdfastv1alpha1.AnnotationPlanUID: "uid-" + name}
	done := edited(nab, func(n *oadpv1alpha1.NonAdminBackup) {
		n.Status.VeleroBackup = &oadpv1alpha1.VeleroBackup{Status: &velerov1.BackupStatus{Phase: velerov1.BackupPhaseCompleted}}
	})
	as := func(phase velerov1.BackupPhase, begin *metav1.Time) *oadpv1alpha1.NonAdminBackup {
		return edited(nab, func(n *oadpv1alpha1.NonAdminBackup) {
			n.Status.Phase = oadpv1alpha1.NonAdminPhaseCreated
			n.Status.VeleroBackup = &oadpv1alpha1.VeleroBackup{Status: &velerov1.BackupStatus{Phase: phase, StartTimestamp: begin}}
		})
	}
	begin := metav1.NewTime(fake.PlanTime)
	fresh := edited(nab, func(n *oadpv1alpha1.NonAdminBackup) { n.Status.Phase = oadpv1alpha1.NonAdminPhaseNew })
	want := atOnce(controllers.Request{Namespace: fake.Namespace, Name: name, UID: "uid-" + name, Force: true})
	assert.Equal(t, want, watchtest.Happens(t.Context(), s.plans.backupEvents(), nab, done))
	assert.Empty(t, watchtest.Happens(t.Context(), s.plans.backupEvents(), nab, fresh), "nothing to do for a plan")
	assert.Equal(t, want, watchtest.Happens(t.Context(), s.plans.backupEvents(), fresh, as("", nil)), "to be recorded")
	assert.Empty(t, watchtest.Happens(t.Context(), s.plans.backupEvents(), as("", nil), as(velerov1.BackupPhaseNew, nil)))
	assert.Equal(t, want, watchtest.Happens(t.Context(), s.plans.backupEvents(), inCache(t, as("", nil)),
		inCache(t, as(velerov1.BackupPhaseInProgress, &begin))), "it has begun")
	assert.Empty(t, watchtest.Happens(t.Context(), s.plans.backupEvents(), as(velerov1.BackupPhaseInProgress, &begin),
		as(velerov1.BackupPhaseFinalizing, &begin)))
	asked := func(request string) *oadpv1alpha1.NonAdminBackup {
		return edited(nab, func(n *oadpv1alpha1.NonAdminBackup) {
			n.Status.Phase = oadpv1alpha1.NonAdminPhaseDeleting
			n.Status.VeleroBackup = &oadpv1alpha1.VeleroBackup{Name: "b"}
			n.Status.VeleroDeleteBackupRequest = &oadpv1alpha1.VeleroDeleteBackupRequest{Name: request}
		})
	}
	assert.Equal(t, want, watchtest.Happens(t.Context(), s.plans.backupEvents(), asked("b-1"), asked("b-2")), "others go")
	assert.Empty(t, watchtest.Happens(t.Context(), s.plans.backupEvents(), asked("b-2"), asked("b-3")), "nothing new for the plan")
	requested := edited(done, func(n *oadpv1alpha1.NonAdminBackup) { n.Spec.DeleteBackup, n.Generation = true, n.Generation+1 })
	deleted := edited(requested, isDeleted)
	assert.Equal(t, want, watchtest.Happens(t.Context(), s.plans.backupEvents(), inCache(t, done), inCache(t, requested)), "others count")
	assert.Empty(t, watchtest.Happens(t.Context(), s.plans.backupEvents(), inCache(t, requested), inCache(t, deleted)))
	assert.Empty(t, watchtest.Happens(t.Context(), s.plans.backupEvents(), inCache(t, deleted), inCache(t, edited(deleted, isDeleting))))
	assert.Equal(t, want, watchtest.Happens(t.Context(), s.plans.backupEvents(), inCache(t, requested), inCache(t, done)), "taken back")
	held := edited(done, func(n *oadpv1alpha1.NonAdminBackup) { n.Labels[holdfastv1alpha1.LabelHold] = "true" })
	assert.Equal(t, want, watchtest.Happens(t.Context(), s.plans.backupEvents(), inCache(t, done), inCache(t, held)), "it is held")
	verified := edited(done, func(n *oadpv1alpha1.NonAdminBackup) {
		n.Status.LastDrill = &oadpv1alpha1.BackupDrill{Name: "weekly", Concluded: begin}
	})
	assert.Equal(t, want, watchtest.Happens(t.Context(), s.plans.backupEvents(), inCache(t, done), inCache(t, verified)), "a drill has a verdict")
	assert.Equal(t, want, watchtest.Happens(t.Context(), s.plans.backupEvents(), nab, nil), "it is gone")
	assert.Empty(t, watchtest.Happens(t.Context(), s.plans.backupEvents(), fake.NAB("own"), nil), "no plan's")
}

func TestADrillConcernsThePlanThatItNames(t *testing.T) {
	s := newStation(t)
	drill := fake.Drill("nightly-20260801120500", "b")
	drill.Labels = map[string]string{holdfastv1alpha1.LabelPlan: name}
	drill.Annotations = map[string]string{holdfastv1alpha1.AnnotationPlanUID: "uid-" + name}
	now := metav1.NewTime(fake.PlanTime)
	checking := edited(drill, func(d *holdfastv1alpha1.RestoreDrill) { d.Status.Phase = holdfastv1alpha1.DrillChecking })
	concluded := edited(checking, func(d *holdfastv1alpha1.RestoreDrill) { d.Status.Concluded = &now })
	ended := edited(concluded, func(d *holdfastv1alpha1.RestoreDrill) { d.Status.Ended = &now })
	want := atOnce(controllers.Request{Namespace: fake.Namespace, Name: name, UID: "uid-" + name, Force: true})
	happens := func(before, after *holdfastv1alpha1.RestoreDrill) any {
		return watchtest.Happens(t.Context(), s.plans.drillEvents(), inCache(t, before), inCache(t, after))
	}
	assert.Empty(t, happens(drill, checking))
	assert.Equal(t, want, happens(checking, concluded))
	assert.Equal(t, want, happens(concluded, ended))
	assert.Equal(t, want, watchtest.Happens(t.Context(), s.plans.drillEvents(), inCache(t, ended), nil), "it is gone")
	assert.Empty(t, watchtest.Happens(t.Context(), s.plans.drillEvents(), fake.Drill("own", "b"), nil), "no plan's")
}

// What the policy allows of a plan only its workflow judges: it may hold back runs that nothing else tells of.
func TestAPlansWorkflowHearsOfAnotherPolicy(t *testing.T) {
	s := newStation(t, planned())
	s.plans.PolicyWritten(t.Context(), true)
	assert.Empty(t, s.plans.Requested(), "the policy is read for the first time: it need not be another one")
	s.plans.PolicyWritten(t.Context(), false)
	assert.Equal(t, forced(name), s.plans.Requested())
}

func TestPlansAreCounted(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status}
	}
	of := func(name string, good, pending time.Duration, conditions ...metav1.Condition) *holdfastv1alpha1.BackupPlan {
		plan := fake.BackupPlan(name)
		late, at := metav1.NewTime(time.Now().Add(-time.Hour)), func(d time.Duration) metav1.Time { return metav1.NewTime(fake.PlanTime.Add(d)) }
		plan.Status.Conditions, plan.Status.NextRun = conditions, &late
		plan.Status.LastGood = &holdfastv1alpha1.GoodRun{Name: "g", Time: at(good)}
		since := at(pending)
		plan.Status.Retention = &holdfastv1alpha1.Retention{PendingSince: &since}
		return plan
	}
	ready := condition(holdfastv1alpha1.ConditionReady, metav1.ConditionTrue)
	paused := of("paused", 3*time.Hour, 3*time.Hour, ready)
	paused.Status.Paused, paused.Status.NextRun = holdfastv1alpha1.PausedBySpec, nil
	paused.Status.Content = inCache(t, &holdfastv1alpha1.BackupPlan{Status: holdfastv1alpha1.BackupPlanStatus{
		Content: &holdfastv1alpha1.Content{Less: 2},
	}}).Status.Content
	unverified := of("unverified", 4*time.Hour, 4*time.Hour, ready, metav1.Condition{
		Type: holdfastv1alpha1.ConditionObjectiveMet, Status: metav1.ConditionFalse, Reason: holdfastv1alpha1.ReasonVerificationStale,
	})
	unverified.Status.LastVerified = &holdfastv1alpha1.VerifiedRun{Name: "v", Time: metav1.NewTime(fake.PlanTime)}
	s := newStation(t, fake.BackupPlan("new"), paused, inCache(t, unverified),
		of("missed", time.Hour, 2*time.Hour, ready, condition(holdfastv1alpha1.ConditionObjectiveMet, metav1.ConditionFalse)),
		of("refused", 2*time.Hour, time.Hour, condition(holdfastv1alpha1.ConditionReady, metav1.ConditionFalse)),
	)
	census := &metrics.Census{}
	require.NoError(t, s.plans.Count(t.Context(), census))
	assert.Equal(t, map[metrics.PlanState]int{
		metrics.PlanNew: 1, metrics.PlanPaused: 1, metrics.PlanReady: 2, metrics.PlanNotReady: 1,
	}, census.Plans.Plans)
	assert.Equal(t, 1, census.Plans.ObjectivesMissed)
	assert.Equal(t, 1, census.Plans.VerificationsMissed)
	assert.Equal(t, fake.PlanTime, census.Plans.OldestVerified.UTC())
	assert.Equal(t, 3, census.Plans.Overdue)
	assert.Equal(t, 1, census.Plans.LessContent)
	assert.Equal(t, fake.PlanTime.Add(time.Hour), census.Plans.OldestGood.UTC())
	assert.Equal(t, fake.PlanTime.Add(time.Hour), census.Plans.OldestPending.UTC())
	assert.Nil(t, census.Plans.Each, "the metrics name no tenant by default")
	s.plans.tenantLabels = true
	require.NoError(t, s.plans.Count(t.Context(), census))
	assert.Len(t, census.Plans.Each, 5)
}
