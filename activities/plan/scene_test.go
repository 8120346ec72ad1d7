package plan_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/plan"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/workflows/contract"
)

const minutely = "minutely"

// scene is one plan, at a time.
type scene struct {
	*fake.World
	t         *testing.T
	schedules schedules
	now       time.Time
	made      []contract.PlanBackup
	// items and volumes are what Velero counts of the next backups; it counts nothing if there are no items.
	items, volumes int
	// reader is what plans are read by.
	reader client.Reader
}

func newScene(t *testing.T, alter func(*holdfastv1alpha1.BackupPlan), objects ...client.Object) *scene {
	t.Helper()
	plan := fake.BackupPlan(minutely)
	if alter != nil {
		alter(plan)
	}
	s := &scene{World: fake.New(t, append(objects, plan)...), t: t, now: fake.PlanTime}
	return s.among(0)
}

// try runs an activity of plans under its wire name.
func (s *scene) try(activity string, step contract.PlanStep) (contract.PlanView, error) {
	s.t.Helper()
	step.Cluster, step.Ref, step.Made = fake.Cluster, fake.Ref(minutely), s.made
	plans := &plan.Activities{
		Cluster: s.Backups.Cluster,
		Gatherer: &plan.Gatherer{
			Reader: s.reader, Policy: s.Backups.Gatherer.Policy, ClusterID: fake.Cluster, OADPNamespace: fake.OADPNamespace,
		},
		Schedules: &s.schedules, Now: func() time.Time { return s.now },
	}
	return activitytest.Performed[contract.PlanView](s.t, plans, activity, step)
}

func (s *scene) act(activity string, step contract.PlanStep) contract.PlanView {
	s.t.Helper()
	view, err := s.try(activity, step)
	require.NoError(s.t, err)
	if view.MadeNow != nil && !slices.Contains(s.made, *view.MadeNow) {
		s.made = append(s.made, *view.MadeNow)
	}
	return view
}

func (s *scene) refresh() contract.PlanView {
	s.t.Helper()
	return s.act(contract.RefreshPlan.Name, contract.PlanStep{})
}

// run makes the run that is due, and gives its NonAdminBackup a UID, as the API server does.
func (s *scene) run() *oadpv1alpha1.NonAdminBackup {
	s.t.Helper()
	view := s.refresh()
	require.NotZero(s.t, view.Due)
	s.act(contract.RunPlan.Name, contract.PlanStep{})
	return s.Read(contract.PlanRunName(minutely, time.Unix(view.Due, 0)))
}

// ends gives a NonAdminBackup its Velero Backup, which has ended.
func (s *scene) ends(nab *oadpv1alpha1.NonAdminBackup, phase velerov1.BackupPhase) {
	s.t.Helper()
	begin, expires := metav1.NewTime(s.now), metav1.NewTime(s.now.Add(cmp.Or(nab.Spec.BackupSpec.TTL.Duration, 720*time.Hour)))
	completed := metav1.NewTime(s.now.Add(30 * time.Second))
	name := owner.NACUUID(fake.Cluster, nab.Namespace, nab.Name, string(nab.UID))
	made := &velerov1.Backup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fake.OADPNamespace, Name: name,
			Labels:      map[string]string{oadpv1alpha1.OadpLabel: oadpv1alpha1.OadpLabelValue, oadpv1alpha1.NabOriginNACUUIDLabel: name},
			Annotations: map[string]string{oadpv1alpha1.NabOriginNamespaceAnnotation: nab.Namespace, oadpv1alpha1.NabOriginNameAnnotation: nab.Name},
		},
		Status: velerov1.BackupStatus{Phase: phase, StartTimestamp: &begin, CompletionTimestamp: &completed, Expiration: &expires},
	}
	if s.items > 0 {
		made.Status.Progress = &velerov1.BackupProgress{TotalItems: s.items, ItemsBackedUp: s.items}
		made.Status.CSIVolumeSnapshotsCompleted = s.volumes
	}
	require.NoError(s.t, s.Client.Create(s.t.Context(), made))
	nab = s.Read(nab.Name)
	nab.Status.Phase = oadpv1alpha1.NonAdminPhaseCreated
	nab.Status.VeleroBackup = &oadpv1alpha1.VeleroBackup{NACUUID: name, Name: name, Namespace: fake.OADPNamespace, Spec: &made.Spec, Status: &made.Status}
	require.NoError(s.t, s.Client.Status().Update(s.t.Context(), nab))
}

// runs has so many runs complete, a minute after each other, and returns their names.
func (s *scene) runs(n int) (names []string) {
	s.t.Helper()
	for range n {
		s.now = s.now.Add(time.Minute)
		nab := s.run()
		s.ends(nab, velerov1.BackupPhaseCompleted)
		names = append(names, nab.Name)
	}
	return names
}

func (s *scene) status() *holdfastv1alpha1.BackupPlanStatus { return &s.ReadPlan(minutely).Status }

func (s *scene) reason(kind string) string {
	s.t.Helper()
	condition := meta.FindStatusCondition(s.status().Conditions, kind)
	require.NotNil(s.t, condition, kind)
	return string(condition.Status) + " " + condition.Reason
}
