package finalization_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/finalization"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/location/locationtest"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

const undoName = "undo"

// aftermath is a world with a restore that Velero has ended, and the bucket of its backup.
type aftermath struct {
	*fake.World
	t      *testing.T
	folder string
	// lost is the task whose first answer never arrives; losses counts them.
	lost   string
	losses int
}

// newAftermath: a claim with a new volume, a Deployment that is ready, and a ConfigMap of ours; nothing is wrong.
func newAftermath(t *testing.T, phase velerov1.RestorePhase, objects ...client.Object) *aftermath {
	t.Helper()
	nar := fake.NAR(undoName, workflowtest.Backup)
	restore := &velerov1.Restore{
		ObjectMeta: owner.Restore.Meta(nar, fake.VeleroName(undoName), fake.OADPNamespace, fake.VeleroName(undoName)),
		Spec:       velerov1.RestoreSpec{BackupName: fake.VeleroName(workflowtest.Backup)},
		Status:     velerov1.RestoreStatus{Phase: phase},
	}
	modifier := &corev1.ConfigMap{
		ObjectMeta: owner.Restore.Meta(nar, fake.VeleroName(undoName), fake.OADPNamespace, fake.VeleroName(undoName)),
	}
	labels := map[string]string{velerov1.RestoreNameLabel: restore.Name}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: fake.Namespace, Name: "data", UID: "uid-data", Labels: labels},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv"},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv", Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": "csi"}},
		Spec: corev1.PersistentVolumeSpec{
			ClaimRef:                      &corev1.ObjectReference{Namespace: fake.Namespace, Name: "data", UID: "uid-data"},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
	all := append([]client.Object{nar, restore, modifier, claim, volume}, fake.Taken(workflowtest.Backup, fake.AdminLocation, "")...)
	a := &aftermath{World: fake.New(t, append(all, objects...)...), t: t, folder: t.TempDir()}
	backup := "backups/" + fake.VeleroName(workflowtest.Backup) + "/" + fake.VeleroName(workflowtest.Backup)
	a.put(backup+"-volumeinfo.json.gz", []map[string]any{{
		"pvcName": "data", "pvcNamespace": fake.Namespace, "backupMethod": "PodVolumeBackup",
		"pvInfo": map[string]any{"reclaimPolicy": "Retain", "labels": map[string]string{"disk": "fast"}},
	}})
	a.put(backup+"-resource-list.json.gz", map[string][]string{"v1/ConfigMap": {"team/a"}})
	a.put(a.file("resource-list.json.gz"), map[string][]string{"v1/ConfigMap": {"team/a(created)"}})
	a.put(a.file("results.gz"), map[string]any{"errors": map[string]any{"namespaces": map[string]any{"team": []string{"velero's"}}}})
	return a
}

func (a *aftermath) file(end string) string {
	return "restores/" + fake.VeleroName(undoName) + "/restore-" + fake.VeleroName(undoName) + "-" + end
}

func (a *aftermath) put(key string, content any) {
	a.t.Helper()
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	require.NoError(a.t, json.NewEncoder(writer).Encode(content))
	require.NoError(a.t, writer.Close())
	file := filepath.Join(a.folder, filepath.FromSlash(key))
	require.NoError(a.t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(a.t, os.WriteFile(file, packed.Bytes(), 0o600))
}

func (a *aftermath) results() string {
	a.t.Helper()
	written, err := os.ReadFile(filepath.Join(a.folder, filepath.FromSlash(a.file("results.gz"))))
	require.NoError(a.t, err)
	reader, err := gzip.NewReader(bytes.NewReader(written))
	require.NoError(a.t, err)
	var content bytes.Buffer
	_, err = content.ReadFrom(reader)
	require.NoError(a.t, err)
	return content.String()
}

// finalize runs the workflow to its end. change, if set, alters the activities before.
func (a *aftermath) finalize(change func(*workflowtest.Scenario, *finalization.Activities)) (contract.FinalizationResult, error) {
	s := locationtest.NewRun(a.World)
	finalizations := a.Finalizations(a.folder, s.Now)
	var registry worker.ActivityRegistry = s
	if change != nil {
		change(s, finalizations)
	}
	if a.lost != "" {
		registry = lossy{Reregistration: workflowtest.Reregistration{Scenario: s}, lost: a.lost, losses: &a.losses}
	}
	finalizations.Register(registry)
	s.ExecuteWorkflow(contract.KindFinalization.Workflow, contract.ObjectInput{Cluster: fake.Cluster, Ref: fake.Ref(undoName)})
	require.True(a.t, s.IsWorkflowCompleted(), "the finalization does not end")
	var result contract.FinalizationResult
	err := s.GetWorkflowError()
	if err == nil {
		require.NoError(a.t, s.GetWorkflowResult(&result))
	}
	return result, err
}

func (a *aftermath) status() *oadpv1alpha1.RestoreFinalization {
	return a.ReadRestore(undoName).Status.Finalization
}

func (a *aftermath) effects() []string {
	var effects []string
	for _, write := range a.Writes() {
		if write != "patch status NonAdminRestore" {
			effects = append(effects, write)
		}
	}
	return effects
}

func unready() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: fake.Namespace, Name: "web", Labels: map[string]string{velerov1.RestoreNameLabel: fake.VeleroName(undoName)},
	}, Status: appsv1.DeploymentStatus{ObservedGeneration: 99}}
}

func TestAFinalizationDoesItsTasksInOrder(t *testing.T) {
	a := newAftermath(t, velerov1.RestorePhaseCompleted)
	before := a.results()
	result, err := a.finalize(nil)
	require.NoError(t, err)
	assert.Equal(t, contract.FinalizationResult{Phase: "Completed"}, result)
	assert.Equal(t, []string{"patch PersistentVolume", "delete ConfigMap"}, a.effects())
	assert.Equal(t, before, a.results(), "nothing to add")
	status := a.status()
	assert.EqualValues(t, "Completed", status.Phase)
	require.Len(t, status.Tasks, 3)
	for i, name := range []string{"volumes", "cleanup", "validation"} {
		assert.Equal(t, name, status.Tasks[i].Name)
		assert.EqualValues(t, "Completed", status.Tasks[i].Phase)
		assert.NotNil(t, status.Tasks[i].StartTimestamp)
		assert.NotNil(t, status.Tasks[i].CompletionTimestamp)
	}
	assert.Empty(t, status.VeleroErrors)

	again, err := a.finalize(nil)
	require.NoError(t, err)
	assert.Equal(t, result, again)
	assert.Len(t, a.effects(), 2, "what has ended is not done again")
}

func TestAKindThatANamesakeKeepsOutIsNamedOnTheObject(t *testing.T) {
	a := newAftermath(t, velerov1.RestorePhaseCompleted)
	made := a.VeleroRestore(fake.VeleroName(undoName))
	made.Spec.IncludedResources = []string{"configmaps"}
	made.Spec.ResourceModifier = &corev1.TypedLocalObjectReference{Kind: "ConfigMap", Name: made.Name}
	made.Annotations["holdfast.dev/shadowed-resources"] = "services=services.serving.knative.dev"
	require.NoError(t, a.Client.Update(t.Context(), made))
	backup := "backups/" + fake.VeleroName(workflowtest.Backup) + "/" + fake.VeleroName(workflowtest.Backup)
	a.put(backup+"-resource-list.json.gz", map[string][]string{"v1/ConfigMap": {"team/a"}, "v1/Service": {"team/web"}})
	_, err := a.finalize(nil)
	require.NoError(t, err)
	message := conditionOf(a.ReadRestore(undoName), "Filtered").Message
	assert.Contains(t, message, "1 left out, 0 refused")
	assert.Contains(t, message, "services (services.serving.knative.dev)")
}

func TestVelerosErrorsAreShownAndEndInPartiallyFailed(t *testing.T) {
	a := newAftermath(t, velerov1.RestorePhasePartiallyFailed)
	var phases []string
	a.Lose(func(_ string, object client.Object) error {
		if nar, is := object.(*oadpv1alpha1.NonAdminRestore); is {
			phases = append(phases, string(nar.Status.Finalization.Phase))
		}
		return nil
	})
	result, err := a.finalize(nil)
	require.NoError(t, err)
	assert.Equal(t, contract.FinalizationResult{Phase: "PartiallyFailed"}, result)
	assert.Equal(t, []string{"velero's"}, a.status().VeleroErrors)
	const meanwhile = "FinalizingPartiallyFailed"
	assert.Equal(t, []string{meanwhile, meanwhile, meanwhile, "PartiallyFailed"}, phases)
}

func TestAWorkloadThatNeverGetsReadyIsAWarning(t *testing.T) {
	a := newAftermath(t, velerov1.RestorePhaseCompleted, unready())
	result, err := a.finalize(func(s *workflowtest.Scenario, _ *finalization.Activities) {
		s.RegisterDelayedCallback(func() {
			status := a.status()
			assert.EqualValues(t, "Finalizing", status.Phase)
			assert.EqualValues(t, "InProgress", status.Tasks[2].Phase)
			assert.Contains(t, workflowtest.CurrentDetails(t, s), "`validation` InProgress")
			var state contract.FinalizationState
			answer, err := s.QueryWorkflow(contract.QueryState)
			require.NoError(t, err)
			require.NoError(t, answer.Get(&state))
			assert.Equal(t, "Finalizing", state.Record.Phase)
		}, 20*time.Second)
	})
	require.NoError(t, err)
	assert.Equal(t, contract.FinalizationResult{Phase: "Completed", Warnings: 1}, result)
	assert.Equal(t, []string{"Deployment web is not ready: 0 of 1 replicas are"}, a.status().Tasks[2].Warnings)
	assert.Contains(t, a.results(), "holdfast validation: Deployment web is not ready: 0 of 1 replicas are")
	assert.Contains(t, a.results(), "velero's")
	assert.GreaterOrEqual(t, a.status().CompletionTimestamp.Sub(a.status().StartTimestamp.Time), 10*time.Minute)
	assert.Less(t, a.status().CompletionTimestamp.Sub(a.status().StartTimestamp.Time), 11*time.Minute)
}

func TestAWorkloadThatGetsReadyEndsTheWait(t *testing.T) {
	a := newAftermath(t, velerov1.RestorePhaseCompleted, unready())
	result, err := a.finalize(func(s *workflowtest.Scenario, _ *finalization.Activities) {
		s.After(3*time.Minute, func(w *fake.World) {
			ready := unready()
			require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(ready), ready))
			ready.Status.AvailableReplicas, ready.Status.ObservedGeneration = 1, 99
			require.NoError(t, w.Client.Status().Update(t.Context(), ready))
		})
	})
	require.NoError(t, err)
	assert.Equal(t, contract.FinalizationResult{Phase: "Completed"}, result)
	assert.Less(t, a.status().CompletionTimestamp.Sub(a.status().StartTimestamp.Time), 4*time.Minute)
}

func TestADeletedObjectEndsItsFinalization(t *testing.T) {
	a := newAftermath(t, velerov1.RestorePhaseCompleted, unready())
	result, err := a.finalize(func(s *workflowtest.Scenario, _ *finalization.Activities) {
		s.After(2*time.Minute, func(w *fake.World) { w.Remove(w.ReadRestore(undoName)) })
	})
	require.NoError(t, err)
	assert.Equal(t, contract.FinalizationResult{}, result)
	assert.Nil(t, a.ReadRestore(undoName))
}

func TestATaskThatCanNeverBeDoneIsAnErrorAndTheOthersGoOn(t *testing.T) {
	a := newAftermath(t, velerov1.RestorePhaseCompleted)
	a.Fail(func(verb string, object client.Object) error {
		if _, is := object.(*corev1.ConfigMap); is && verb == "delete" {
			return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("ConfigMap").GroupKind(), object.GetName(), nil)
		}
		return nil
	})
	result, err := a.finalize(nil)
	require.NoError(t, err)
	assert.Equal(t, contract.FinalizationResult{Phase: "PartiallyFailed", Errors: 1}, result)
	assert.EqualValues(t, "PartiallyFailed", a.status().Tasks[1].Phase)
	assert.EqualValues(t, "Completed", a.status().Tasks[2].Phase)
	assert.Contains(t, a.results(), "holdfast cleanup: ")
}

// The store is away for longer than anything waits: the status says so, and what could be done is done.
func TestAStoreThatStaysAwayIsAnError(t *testing.T) {
	a := newAftermath(t, velerov1.RestorePhaseCompleted)
	result, err := a.finalize(func(_ *workflowtest.Scenario, f *finalization.Activities) {
		f.Finder.Stores.OpenLocation = awayLocation
	})
	require.NoError(t, err)
	assert.Equal(t, contract.FinalizationResult{Phase: "PartiallyFailed", Errors: 2}, result)
	assert.Equal(t, []string{"delete ConfigMap"}, a.effects())
	condition := conditionOf(a.ReadRestore(undoName), "Finalized")
	assert.Contains(t, condition.Message, "the object store did not answer in time")
	assert.Contains(t, condition.Message, "the restore's results in the object store do not contain them")
}

func TestAnOutageOfTheAPIServerEndsInTheRightStatus(t *testing.T) {
	for _, outage := range []time.Duration{30 * time.Second, 5 * time.Minute, 2 * time.Hour} {
		t.Run(outage.String(), func(t *testing.T) {
			a := newAftermath(t, velerov1.RestorePhaseCompleted)
			a.Fail(func(string, client.Object) error { return fake.ErrAway })
			var back time.Time
			result, err := a.finalize(func(s *workflowtest.Scenario, _ *finalization.Activities) {
				s.RegisterDelayedCallback(func() { back = s.Now(); a.Fail(nil) }, outage)
			})
			require.NoError(t, err)
			assert.Equal(t, "Completed", result.Phase)
			assert.Equal(t, []string{"patch PersistentVolume", "delete ConfigMap"}, a.effects())
			assert.Less(t, a.status().CompletionTimestamp.Sub(back), 15*time.Second)
		})
	}
}

// Killed before and after every write, and begun again by the parent: each effect happens once, each line is there once.
func TestAKillAtAnyWriteOfAFinalizationHasNoEffect(t *testing.T) {
	spoil := func(a *aftermath) *aftermath {
		a.put("backups/"+fake.VeleroName(workflowtest.Backup)+"/"+fake.VeleroName(workflowtest.Backup)+"-resource-list.json.gz",
			map[string][]string{"v1/ConfigMap": {"team/a", "team/gone"}})
		return a
	}
	whole := spoil(newAftermath(t, velerov1.RestorePhaseCompleted))
	want, err := whole.finalize(nil)
	require.NoError(t, err)
	require.Equal(t, 1, want.Warnings)
	writes := len(whole.Writes())
	require.Greater(t, writes, 4)
	for kill := range writes {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d, after it: %v", kill, after), func(t *testing.T) {
				a := spoil(newAftermath(t, velerov1.RestorePhaseCompleted))
				seen := 0
				die := func(_ string, object client.Object) error {
					if seen++; seen != kill+1 {
						return nil
					}
					if _, is := object.(*oadpv1alpha1.NonAdminRestore); is {
						return workflowtest.ErrKilled // the workflow ends, and its parent begins another
					}
					return fake.ErrAway // the attempt ends, and another begins
				}
				if after {
					a.Lose(die)
				} else {
					a.Fail(die)
				}
				var ended error
				var result contract.FinalizationResult
				for range 3 {
					if result, ended = a.finalize(nil); ended == nil {
						break
					}
				}
				require.NoError(t, ended)
				assert.Equal(t, want, result)
				assert.Equal(t, []string{"patch PersistentVolume", "delete ConfigMap"}, a.effects())
				assert.Equal(t, 1, bytes.Count([]byte(a.results()), []byte("ConfigMap gone")))
				assert.Equal(t, 1, bytes.Count([]byte(a.results()), []byte("velero's")))
			})
		}
	}
}

// The worker dies when a task has done its part and nobody knows: an activity's result is lost, and it runs again.
func TestALostAnswerOfATaskChangesNothing(t *testing.T) {
	for _, lost := range []string{"volumes", "cleanup", "validation", "publish"} {
		t.Run(lost, func(t *testing.T) {
			a := newAftermath(t, velerov1.RestorePhaseCompleted, unready())
			a.lost = lost
			result, err := a.finalize(nil)
			require.NoError(t, err)
			assert.Equal(t, 1, a.losses)
			assert.Equal(t, contract.FinalizationResult{Phase: "Completed", Warnings: 1}, result)
			assert.Equal(t, []string{"patch PersistentVolume", "delete ConfigMap"}, a.effects())
			assert.Equal(t, 1, bytes.Count([]byte(a.results()), []byte("Deployment web is not ready")))
		})
	}
}

func TestAWorkflowThatIsCancelledEnds(t *testing.T) {
	a := newAftermath(t, velerov1.RestorePhaseCompleted, unready())
	_, err := a.finalize(func(s *workflowtest.Scenario, _ *finalization.Activities) {
		s.RegisterDelayedCallback(s.CancelWorkflow, time.Minute)
	})
	var cancelled *temporal.CanceledError
	require.ErrorAs(t, err, &cancelled)
	result, err := a.finalize(nil)
	require.NoError(t, err)
	assert.Equal(t, "Completed", result.Phase)
}
