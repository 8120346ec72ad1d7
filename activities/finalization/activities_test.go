package finalization_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/temporal"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/finalization"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/workflows/contract"
)

const undo = "undo"

// veleroEnded returns a world with a restore that Velero has ended in that phase, and the activities that follow it.
func veleroEnded(t *testing.T, phase velerov1.RestorePhase, objects ...client.Object) (*fake.World, *finalization.Activities) {
	t.Helper()
	nar := fake.NAR(undo, activitytest.Name)
	made := &velerov1.Restore{
		ObjectMeta: owner.Restore.Meta(nar, fake.VeleroName(undo), fake.OADPNamespace, fake.VeleroName(undo)),
		Spec:       velerov1.RestoreSpec{BackupName: fake.VeleroName(activitytest.Name)},
		Status:     velerov1.RestoreStatus{Phase: phase},
	}
	w := fake.New(t, append(append(objects, nar, made), fake.Taken(activitytest.Name, fake.AdminLocation, "")...)...)
	return w, w.Finalizations(t.TempDir(), nil)
}

func planOf(t *testing.T, f *finalization.Activities) contract.FinalizationPlan {
	t.Helper()
	planned, err := activitytest.Performed[contract.FinalizationPlan](t, f, contract.PlanFinalization.Name,
		contract.ObjectStep{Ref: fake.Ref(undo)})
	require.NoError(t, err)
	return planned
}

func TestAFinalizationIsDueWhenVeleroHasRestoredWhatItCould(t *testing.T) {
	for phase, want := range map[velerov1.RestorePhase]bool{
		"": false, "New": false, "InProgress": false, "WaitingForPluginOperations": false, "Finalizing": false,
		"FinalizingPartiallyFailed": false, "Failed": false, "FailedValidation": false, "ANewOne": false,
		"Completed": true, "PartiallyFailed": true,
	} {
		t.Run(string(phase), func(t *testing.T) {
			_, f := veleroEnded(t, phase)
			planned := planOf(t, f)
			assert.Equal(t, want, planned.Due)
			assert.Equal(t, phase == "PartiallyFailed", planned.VeleroFailed)
			assert.Equal(t, want, len(planned.Tasks) == 3)
		})
	}
}

func TestThereIsNothingToFinalize(t *testing.T) {
	for title, change := range map[string]func(*fake.World){
		"the object is gone": func(w *fake.World) { w.Remove(w.ReadRestore(undo)) },
		"it is being deleted": func(w *fake.World) {
			nar := w.ReadRestore(undo)
			nar.Finalizers = []string{oadpv1alpha1.NarFinalizer}
			require.NoError(t, w.Client.Update(t.Context(), nar))
			require.NoError(t, w.Client.Delete(t.Context(), nar))
		},
		"it is another one": func(w *fake.World) {
			w.Remove(w.ReadRestore(undo))
			next := fake.NAR(undo, activitytest.Name)
			next.UID = "uid-of-the-next"
			require.NoError(t, w.Client.Create(t.Context(), next))
		},
		"the Velero Restore is gone": func(w *fake.World) { w.Remove(w.VeleroRestore(fake.VeleroName(undo))) },
		"the Velero Restore is somebody else's": func(w *fake.World) {
			made := w.VeleroRestore(fake.VeleroName(undo))
			made.Annotations[oadpv1alpha1.NarOriginNamespaceAnnotation] = "crew"
			require.NoError(t, w.Client.Update(t.Context(), made))
		},
	} {
		t.Run(title, func(t *testing.T) {
			w, f := veleroEnded(t, "Completed")
			change(w)
			assert.Equal(t, contract.FinalizationPlan{}, planOf(t, f))
		})
	}
}

func TestAForgedStatusReachesNobody(t *testing.T) {
	stranger := fake.NAR(undo, activitytest.Name)
	stranger.Namespace = "crew"
	theirs := &velerov1.Restore{
		ObjectMeta: owner.Restore.Meta(stranger, activitytest.Victims, fake.OADPNamespace, activitytest.Victims),
		Status:     velerov1.RestoreStatus{Phase: "Completed"},
	}
	w, f := veleroEnded(t, "Completed", theirs)
	w.Remove(w.VeleroRestore(fake.VeleroName(undo)))
	nar := w.ReadRestore(undo)
	for _, forged := range []string{activitytest.Victims, "../x"} {
		nar.Status.VeleroRestore = &oadpv1alpha1.VeleroRestore{NACUUID: forged, Name: forged, Namespace: fake.OADPNamespace}
		require.NoError(t, w.Client.Status().Update(t.Context(), nar))
		assert.False(t, planOf(t, f).Due, forged)
	}
}

func TestATaskThatWaitsHoldsNobody(t *testing.T) {
	labels := map[string]string{velerov1.RestoreNameLabel: fake.VeleroName(undo)}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: fake.Namespace, Name: "web", Labels: labels}}
	_, f := veleroEnded(t, "Completed", web)
	_, err := activitytest.Performed[contract.FinalizationOutcome](t, f, contract.RunFinalizationTask.Name, contract.FinalizationTaskStep{
		Ref: fake.Ref(undo), Task: "validation", Deadline: time.Now().Add(time.Hour),
	})
	var waits *temporal.ApplicationError
	require.ErrorAs(t, err, &waits)
	assert.Equal(t, contract.ErrorNotYet, waits.Type())
	assert.Equal(t, temporal.ApplicationErrorCategoryBenign, waits.Category())
	assert.Equal(t, 5*time.Second, waits.NextRetryDelay())
	assert.Equal(t, "waits for Deployment web", waits.Message())
	assert.False(t, waits.NonRetryable())

	outcome, err := activitytest.Performed[contract.FinalizationOutcome](t, f, contract.RunFinalizationTask.Name, contract.FinalizationTaskStep{
		Ref: fake.Ref(undo), Task: "validation", Deadline: time.Now(),
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"Deployment web is not ready: 0 of 1 replicas are"}, outcome.Warnings.Namespace)
}

func TestATaskWhoseRestoreIsGone(t *testing.T) {
	step := contract.FinalizationTaskStep{Ref: fake.Ref(undo), Task: "cleanup"}
	w, f := veleroEnded(t, "Completed")
	w.Remove(w.VeleroRestore(fake.VeleroName(undo)))
	outcome, err := activitytest.Performed[contract.FinalizationOutcome](t, f, contract.RunFinalizationTask.Name, step)
	require.NoError(t, err)
	assert.Equal(t, []string{"the Velero Restore is gone"}, outcome.Errors.Velero)
	published, err := activitytest.Performed[contract.FinalizationPublished](t, f, contract.PublishFinalization.Name,
		contract.FinalizationPublication{Ref: fake.Ref(undo)})
	require.NoError(t, err)
	assert.Equal(t, "the Velero Restore is gone", published.Problem)

	w.Remove(w.ReadRestore(undo))
	outcome, err = activitytest.Performed[contract.FinalizationOutcome](t, f, contract.RunFinalizationTask.Name, step)
	require.NoError(t, err)
	assert.True(t, outcome.Gone)
}

func TestAnUnknownTaskIsForAnotherWorker(t *testing.T) {
	_, f := veleroEnded(t, "Completed")
	_, err := activitytest.Performed[contract.FinalizationOutcome](t, f, contract.RunFinalizationTask.Name,
		contract.FinalizationTaskStep{Ref: fake.Ref(undo), Task: "later"})
	var application *temporal.ApplicationError
	require.ErrorAs(t, err, &application)
	assert.False(t, application.NonRetryable())
}

func recordPhase(t *testing.T, f *finalization.Activities, phase string) error {
	t.Helper()
	_, err := activitytest.Performed[contract.FinalizationResult](t, f, contract.RecordFinalization.Name, contract.FinalizationRecord{
		Ref: fake.Ref(undo), Phase: phase, StartedAt: time.Now(), EndedAt: time.Now(), Errors: 1,
		Tasks: []contract.RecordedTask{{Name: "volumes", Phase: "PartiallyFailed", Errors: []string{"boom"}}},
	})
	return err
}

func TestARecordIsWrittenOnceAndToldOnce(t *testing.T) {
	w, f := veleroEnded(t, "Completed")
	writes := activitytest.WritesOf(w, func() {
		require.NoError(t, recordPhase(t, f, "PartiallyFailed"))
		require.NoError(t, recordPhase(t, f, "PartiallyFailed"))
		require.NoError(t, recordPhase(t, f, "Finalizing"), "late")
	})
	assert.Equal(t, []string{"patch status NonAdminRestore"}, writes)
	nar := w.ReadRestore(undo)
	assert.EqualValues(t, "PartiallyFailed", nar.Status.Finalization.Phase)
	assert.Equal(t, []string{"boom"}, nar.Status.Finalization.Tasks[0].Errors)
	assert.True(t, meta.IsStatusConditionTrue(nar.Status.Conditions, "Finalized"))
	events := activitytest.Events(w)
	require.Len(t, events, 1)
	assert.Contains(t, events[0], "Warning FinalizationPartiallyFailed the finalization is complete: 1 errors")
	planned := planOf(t, f)
	assert.Equal(t, contract.FinalizationResult{Phase: "PartiallyFailed", Errors: 1}, planned.Ended)
	assert.False(t, planned.Due)
}

// Where OADP's CRDs are installed, the API server drops status.finalization.
func TestAFinalizationThatHasEndedIsNotDueAgainWithOADPsCRDs(t *testing.T) {
	for _, ended := range []string{"Completed", "PartiallyFailed"} {
		w, f := veleroEnded(t, "Completed")
		w.OADPsCRDs = true
		require.NoError(t, recordPhase(t, f, "Finalizing"))
		require.True(t, planOf(t, f).Due)
		require.Empty(t, activitytest.Events(w))
		require.NoError(t, recordPhase(t, f, ended))
		require.Nil(t, w.ReadRestore(undo).Status.Finalization)
		planned := planOf(t, f)
		assert.Equal(t, ended, planned.Ended.Phase)
		assert.False(t, planned.Due)
		assert.Len(t, activitytest.Events(w), 1)
		assert.Empty(t, activitytest.WritesOf(w, func() { require.NoError(t, recordPhase(t, f, ended)) }))
	}
}

func TestAStatusThatIsTooLargeKeepsTheVerdict(t *testing.T) {
	w, f := veleroEnded(t, "Completed")
	w.Fail(func(_ string, object client.Object) error {
		nar, is := object.(*oadpv1alpha1.NonAdminRestore)
		if is && len(nar.Status.Finalization.Tasks[0].Errors) > 0 {
			return activitytest.ErrTooLarge
		}
		return nil
	})
	require.NoError(t, recordPhase(t, f, "PartiallyFailed"))
	finalization := w.ReadRestore(undo).Status.Finalization
	assert.EqualValues(t, "PartiallyFailed", finalization.Phase)
	assert.Equal(t, 1, finalization.Errors)
	assert.Empty(t, finalization.Tasks[0].Errors)
}

func TestRecordsOfAnObjectThatIsGone(t *testing.T) {
	w, f := veleroEnded(t, "Completed")
	w.Remove(w.ReadRestore(undo))
	require.NoError(t, recordPhase(t, f, "Completed"))

	w, f = veleroEnded(t, "Completed")
	w.Fail(func(string, client.Object) error { return activitytest.ErrNotFound })
	require.NoError(t, recordPhase(t, f, "Completed"))

	w, f = veleroEnded(t, "Completed")
	w.Fail(func(string, client.Object) error { return errors.New("connection refused") })
	activitytest.RequireError(t, recordPhase(t, f, "Completed"), contract.ErrorKubernetes, true)
}
