package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"holdfast.dev/holdfast/activities/fake"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/workflows/contract"
)

const earlier = "uid-before"

// restored is a scene with a plan that was restored with the status of the plan before it, and keeps the newest backup.
func restored(t *testing.T) *scene {
	return newScene(t, func(p *holdfastv1alpha1.BackupPlan) {
		p.Spec.Keep = &holdfastv1alpha1.Keep{Last: 1}
		p.Status.UID = earlier
		p.Status.Counts = holdfastv1alpha1.Counts{Good: 7}
		p.Status.Recent = []holdfastv1alpha1.Run{{Name: "gone", Phase: "Completed"}}
	})
}

// fromBucket is a Velero Backup that has come back from a bucket, with the record that a plan has made it.
func (s *scene) fromBucket(name, planUID string, began metav1.Time) *velerov1.Backup {
	vname := "team-" + name + "-5b0c8a3e-0000-4000-8000-000000000000"
	return &velerov1.Backup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fake.OADPNamespace, Name: vname, UID: types.UID("velero-" + name), CreationTimestamp: metav1.NewTime(s.now),
			Labels: map[string]string{
				oadpv1alpha1.OadpLabel: oadpv1alpha1.OadpLabelValue, oadpv1alpha1.NabOriginNACUUIDLabel: vname,
				oadpv1alpha1.ManagedByLabel: oadpv1alpha1.ManagedByLabelValue, holdfastv1alpha1.LabelRecordedPlan: planUID,
			},
			Annotations: map[string]string{
				oadpv1alpha1.NabOriginNamespaceAnnotation: fake.Namespace, oadpv1alpha1.NabOriginNameAnnotation: name,
				holdfastv1alpha1.AnnotationRecordedPlan: minutely,
				holdfastv1alpha1.AnnotationRecordedDue:  began.UTC().Format(time.RFC3339),
			},
		},
		Spec: velerov1.BackupSpec{StorageLocation: "default", IncludedNamespaces: []string{fake.Namespace}},
		Status: velerov1.BackupStatus{
			Phase: velerov1.BackupPhaseCompleted, StartTimestamp: &began, CompletionTimestamp: &began,
			Expiration: &metav1.Time{Time: s.now.Add(time.Hour)},
		},
	}
}

// create makes a backup that has come back and its NonAdminBackup.
func (s *scene) create(made *velerov1.Backup, nab *oadpv1alpha1.NonAdminBackup) {
	s.t.Helper()
	require.NoError(s.t, s.Client.Create(s.t.Context(), made))
	require.NoError(s.t, s.Client.Create(s.t.Context(), nab))
	nab.Status.Phase = oadpv1alpha1.NonAdminPhaseCreated
	nab.Status.VeleroBackup = &oadpv1alpha1.VeleroBackup{
		NACUUID: made.Name, Name: made.Name, Namespace: fake.OADPNamespace, Status: &made.Status,
	}
	require.NoError(s.t, s.Client.Status().Update(s.t.Context(), nab))
}

// comesBack has a backup come back from a bucket, as synchronization makes it: the NonAdminBackup without the plan's UID, as where the
// plan was not there yet. alter changes the Velero Backup.
func (s *scene) comesBack(name string, ago time.Duration, alter func(*velerov1.Backup)) {
	s.t.Helper()
	began := metav1.NewTime(s.now.Add(-ago))
	made := s.fromBucket(name, earlier, began)
	if alter != nil {
		alter(made)
	}
	nab := fake.NAB(name)
	nab.Labels = owner.SyncedLabels(made.Name)
	nab.Labels[holdfastv1alpha1.LabelPlan] = minutely
	nab.Annotations = map[string]string{holdfastv1alpha1.AnnotationDue: began.UTC().Format(time.RFC3339)}
	s.create(made, nab)
}

func TestARestoredPlanHasTheBackupsOfTheOneBeforeIt(t *testing.T) {
	amongOthers(t, func(t *testing.T, others int64) {
		s := restored(t).among(others)
		s.comesBack("old", 3*time.Hour, nil)
		s.comesBack("new", 2*time.Hour, nil)
		view := s.refresh()
		assert.Equal(t, "old", view.Delete)
		status := s.status()
		assert.EqualValues(t, "uid-"+minutely, status.UID)
		assert.Equal(t, []types.UID{earlier}, status.Continues)
		assert.Equal(t, "new", status.LastGood.Name)
		assert.Equal(t, holdfastv1alpha1.Counts{Good: 7, Stored: 2}, status.Counts, "the counts go on")
		assert.Empty(t, status.Recent)
		assert.Equal(t, "uid-"+minutely, s.Read("new").Annotations[holdfastv1alpha1.AnnotationPlanUID])

		s.comesBack("later", time.Hour, nil)
		assert.NotEqual(t, "later", s.refresh().Delete)
		assert.Equal(t, "later", s.status().LastGood.Name, "what comes back later counts, too")
		s.act(contract.DeletePlanBackup.Name, contract.PlanStep{Backup: "old"})
		assert.True(t, s.Read("old").Spec.DeleteBackup, "its own rules delete it")
	})
}

func TestWhatARestoredPlanDoesNotAdopt(t *testing.T) {
	amongOthers(t, func(t *testing.T, others int64) {
		for sentence, alter := range map[string]func(*velerov1.Backup){
			"a plan before it that was deleted": func(b *velerov1.Backup) { b.Labels[holdfastv1alpha1.LabelRecordedPlan] = "uid-deleted" },
			"a plan of another name":            func(b *velerov1.Backup) { b.Annotations[holdfastv1alpha1.AnnotationRecordedPlan] = "other" },
			"no record":                         func(b *velerov1.Backup) { delete(b.Labels, holdfastv1alpha1.LabelRecordedPlan) },
			"another namespace's":               func(b *velerov1.Backup) { b.Annotations[oadpv1alpha1.NabOriginNamespaceAnnotation] = "bank" },
			"it did not come back": func(b *velerov1.Backup) {
				b.CreationTimestamp = metav1.NewTime(b.Status.CompletionTimestamp.Add(-time.Minute))
			},
			"another tenant's location": func(b *velerov1.Backup) {
				b.Spec.StorageLocation = "bank-own-5b0c8a3e-0000-4000-8000-000000000000"
			},
		} {
			t.Run(sentence, func(t *testing.T) {
				s := restored(t).among(others)
				s.comesBack("old", 3*time.Hour, alter)
				s.comesBack("new", 2*time.Hour, nil)
				assert.Empty(t, s.refresh().Delete)
				assert.Empty(t, s.Read("old").Annotations[holdfastv1alpha1.AnnotationPlanUID])
			})
		}
	})
}

// A plan of the same name that a tenant has made anew has no status of the one before it.
func TestAPlanThatIsOnlyOfTheSameNameAdoptsNothing(t *testing.T) {
	amongOthers(t, func(t *testing.T, others int64) {
		s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) { p.Spec.Keep = &holdfastv1alpha1.Keep{Last: 1} })
		s.among(others)
		s.comesBack("old", 3*time.Hour, nil)
		s.comesBack("new", 2*time.Hour, nil)
		assert.Empty(t, s.refresh().Delete)
		assert.Nil(t, s.status().LastGood)
	})
}

func TestWhatWasHeldIsHeldAgain(t *testing.T) {
	s := restored(t)
	plan := s.ReadPlan(minutely)
	plan.Status.Held = []string{"later", "old"}
	require.NoError(t, s.Client.Status().Update(t.Context(), plan))
	s.comesBack("old", 3*time.Hour, nil)
	s.comesBack("new", 2*time.Hour, nil)
	assert.Empty(t, s.refresh().Delete)
	assert.Equal(t, holdfastv1alpha1.LabelHoldValue, s.Read("old").Labels[holdfastv1alpha1.LabelHold])
	assert.Equal(t, []string{"later", "old"}, s.status().Held, "the other one may still come back")

	released := s.Read("old")
	delete(released.Labels, holdfastv1alpha1.LabelHold)
	require.NoError(t, s.Client.Update(t.Context(), released))
	assert.Equal(t, "old", s.refresh().Delete, "the tenant has decided since")
	assert.Equal(t, []string{"later"}, s.status().Held)
}

func TestAPlanAdoptsManyByAndBy(t *testing.T) {
	amongOthers(t, func(t *testing.T, others int64) {
		s := restored(t).among(others)
		for n := range 30 {
			s.comesBack("run-"+string(rune('a'+n%26))+string(rune('a'+n/26)), time.Duration(n+1)*time.Hour, nil)
		}
		view := s.refresh()
		assert.LessOrEqual(t, view.WakeIn, time.Second, "soon again")
		assert.EqualValues(t, 20, s.status().Counts.Stored)
		s.refresh()
		assert.EqualValues(t, 30, s.status().Counts.Stored)
	})
}

// A backup that holds far less comes back first. It does not become the measure by which the full one is deleted.
func TestWhatBackupsHoldIsJudgedOfAllThatComeBack(t *testing.T) {
	s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) {
		p.Spec.Keep = &holdfastv1alpha1.Keep{Last: 1, MinGood: new(int32(1))}
		p.Status.UID = earlier
		p.CreationTimestamp = metav1.NewTime(fake.PlanTime)
	})
	holding := func(items int) func(*velerov1.Backup) {
		return func(b *velerov1.Backup) {
			b.Status.Progress = &velerov1.BackupProgress{TotalItems: items, ItemsBackedUp: items}
		}
	}
	s.comesBack("less", 2*time.Hour, holding(4))
	assert.Empty(t, s.refresh().Delete)
	s.comesBack("full", 3*time.Hour, holding(4000))
	assert.Empty(t, s.refresh().Delete)
	require.NotNil(t, s.status().Content)
	assert.Equal(t, "full", s.status().Content.Usual[0].Name)
}
