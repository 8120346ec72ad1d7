package drill_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"holdfast.dev/holdfast/activities/fake"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/workflows/contract"
)

// checked makes all checks and concludes.
func (s *scene) checked(drill *holdfastv1alpha1.RestoreDrill) contract.DrillView {
	s.t.Helper()
	for _, check := range drill.Status.Checks {
		require.NoError(s.t, s.check(check.Name, contract.DrillStep{}))
	}
	return s.steps(contract.ConcludeDrill.Name)
}

// What the drill's namespace refuses says nothing about the backup.
func TestWhatTheNamespaceRefusesIsNotVerified(t *testing.T) {
	const service = `error restoring services/drill-x/web: Service "web" is invalid: spec.ports[0].nodePort: Forbidden: ` +
		"may not be used when `type` is 'ClusterIP'"
	const claim = `error restoring persistentvolumeclaims/drill-x/data: persistentvolumeclaims "data" is forbidden: exceeded quota: holdfast-drill`
	s := newScene(t, fake.Drill(weekly, nightly))
	s.restored()
	s.backedUp(objectstore.ResourceList{
		"v1/ConfigMap": {"team/a"}, "v1/Service": {"team/web"}, "v1/PersistentVolumeClaim": {"team/data"},
	})
	s.velero(velerov1.RestorePhasePartiallyFailed, objectstore.ResourceList{
		"v1/ConfigMap": {s.name() + "/a(created)"}, "v1/Service": {s.name() + "/web(failed)"},
		"v1/PersistentVolumeClaim": {s.name() + "/data(failed)"},
	}, objectstore.Results{objectstore.ErrorsKey: {Namespaces: map[string][]string{s.name(): {service, claim}}}})
	view := s.checked(s.ReadDrill(weekly))
	assert.Equal(t, "True", view.Verified)
	assert.Equal(t, holdfastv1alpha1.ReasonVerifiedInPart, s.verified().Reason)
	failed, notVerified := s.found()
	assert.Empty(t, failed)
	assert.Equal(t, []string{
		"a drill does not restore a Service with a node port of its own: " + service,
		"a drill does not restore what is beyond the ResourceQuota of its namespace: " + claim,
		"the data of claim data are not in the backup",
	}, notVerified)
}

func TestErrorsThatVelerosResultsDoNotNameAreFound(t *testing.T) {
	s := newScene(t, fake.Drill(weekly, nightly))
	s.restored()
	restore := s.VeleroRestore(s.name())
	restore.Status.Phase, restore.Status.Errors = velerov1.RestorePhasePartiallyFailed, 2
	require.NoError(t, s.Client.Update(t.Context(), restore))
	assert.Equal(t, "False", s.checked(s.ReadDrill(weekly)).Verified)
	assert.Equal(t, "Velero reports 2 errors, and its results name 0 of them", s.verified().Message)
}

func TestAnEmptyBackupIsNotVerified(t *testing.T) {
	s := newScene(t, fake.Drill(weekly, nightly))
	s.restored()
	s.backedUp(nil)
	s.velero(velerov1.RestorePhaseCompleted, nil, nil)
	assert.Equal(t, "Unknown", s.checked(s.ReadDrill(weekly)).Verified)
	assert.Equal(t, "the backup holds nothing that a drill restores", s.verified().Message)
}

// Somebody deletes what the drill needs: nothing good and nothing bad is said of the backup.
func TestADrillThatLosesWhatItNeedsIsNotVerified(t *testing.T) {
	for title, test := range map[string]struct {
		lose func(*scene)
		want string
	}{
		"its namespace": {func(s *scene) {
			require.NoError(t, s.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name()}}))
		}, "was deleted before the drill was over"},
		"its backup": {func(s *scene) {
			s.backedUp(objectstore.ResourceList{"v1/ConfigMap": {"team/a", "team/gone"}})
			nab := s.Read(nightly)
			nab.Spec.DeleteBackup = true
			require.NoError(t, s.Client.Update(t.Context(), nab))
		}, "NonAdminBackup nightly was deleted during the drill"},
	} {
		t.Run(title, func(t *testing.T) {
			s := newScene(t, fake.Drill(weekly, nightly))
			s.restored()
			test.lose(s)
			assert.Equal(t, "Unknown", s.checked(s.ReadDrill(weekly)).Verified)
			assert.Contains(t, s.verified().Message, test.want)
		})
	}
}

// An error that does not pass holds no namespace beyond the drill's time.
func TestACheckThatCannotBeMadeEndsWithTheTime(t *testing.T) {
	s := newScene(t, fake.Drill(weekly, nightly))
	s.restored()
	s.FailReads(func(object runtime.Object) error {
		if _, is := object.(*velerov1.PodVolumeRestoreList); is {
			return errors.New("the API server is away")
		}
		return nil
	})
	require.Error(t, s.check(holdfastv1alpha1.CheckObjects, contract.DrillStep{}))
	s.after = 30 * time.Minute
	require.NoError(t, s.check(holdfastv1alpha1.CheckObjects, contract.DrillStep{}))
	_, notVerified := s.found()
	require.Len(t, notVerified, 1)
	assert.Contains(t, notVerified[0], "the check did not finish in time: ")

	view, err := s.step(contract.ConcludeDrill.Name, contract.DrillStep{GivenUp: "check workloadsReady was given up: the worker was killed"})
	require.NoError(t, err)
	assert.Equal(t, "Unknown", view.Verified)
	_, notVerified = s.found()
	assert.Equal(t, "check workloadsReady was given up: the worker was killed", notVerified[1])
}

// A Deployment whose Pods the namespace refuses is not waited for.
func TestPodsThatAreRefusedAreNotWaitedFor(t *testing.T) {
	s := newScene(t, fake.Drill(weekly, nightly))
	s.restored()
	one := int32(1)
	const why = `pods "web-1" is forbidden: violates PodSecurity "restricted:latest"`
	require.NoError(t, s.Client.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.name(), Name: "web", Labels: map[string]string{velerov1.RestoreNameLabel: s.name()}},
		Spec:       appsv1.DeploymentSpec{Replicas: &one},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 99, Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: why,
		}}},
	}))
	assert.Equal(t, "Unknown", s.checked(s.ReadDrill(weekly)).Verified)
	assert.Equal(t, "a drill does not run a Pod that the Pod Security level of its namespace refuses: "+why, s.verified().Message)
}

// The time of a drill begins when Velero does: how long others keep Velero says nothing about the backup.
func TestTheTimeOfADrillBeginsWithVelero(t *testing.T) {
	s := newScene(t, fake.Drill(weekly, nightly))
	s.steps(contract.AdmitDrill.Name)
	s.makeNamespace()
	s.steps(contract.StartDrillRestore.Name)
	restore := s.VeleroRestore(s.name())
	started := metav1.NewTime(begin.Add(29 * time.Minute))
	restore.Status.Phase, restore.Status.StartTimestamp = velerov1.RestorePhaseInProgress, &started
	require.NoError(t, s.Client.Update(t.Context(), restore))
	s.after = 58 * time.Minute
	assert.False(t, s.steps(contract.RefreshDrill.Name).Late)
	s.after = 59 * time.Minute
	assert.True(t, s.steps(contract.RefreshDrill.Name).Late)
	assert.Equal(t, "False", s.steps(contract.ConcludeDrill.Name).Verified)
}

// What keeps the restore from being made must not keep the namespace, for which others wait.
func TestADrillThatIsNotStartedInTimeHasNoVerdict(t *testing.T) {
	s := newScene(t, fake.Drill(weekly, nightly))
	s.steps(contract.AdmitDrill.Name)
	s.makeNamespace()
	assert.True(t, s.steps(contract.RefreshDrill.Name).Late, "the namespace is from long ago")
	assert.Equal(t, "Unknown", s.steps(contract.ConcludeDrill.Name).Verified)
	assert.Contains(t, s.verified().Message, "the restore was not started within 30m")
}

func TestADrillThatWaitsEndsWhenDrillsAreSwitchedOff(t *testing.T) {
	s := newScene(t, fake.Drill(weekly, nightly))
	s.steps(contract.AdmitDrill.Name)
	s.Policy.Drills.Enabled = false
	assert.True(t, s.steps(contract.RefreshDrill.Name).Ended)
	assert.Contains(t, s.verified().Message, "allows no drills")
}

// A StatefulSet has no condition for that, but an Event, which is of the past once it has its Pods.
func TestAStatefulSetWhosePodsAreRefusedIsNotWaitedFor(t *testing.T) {
	const why = `create Claim data-db-0 for Pod db-0 in StatefulSet db failed error: exceeded quota: holdfast-drill`
	for pods, want := range map[int32]string{0: "Unknown", 1: "False"} {
		s := newScene(t, fake.Drill(weekly, nightly))
		s.restored()
		of := metav1.ObjectMeta{Namespace: s.name(), Name: "db", Labels: map[string]string{velerov1.RestoreNameLabel: s.name()}}
		require.NoError(t, s.Client.Create(t.Context(), &appsv1.StatefulSet{
			ObjectMeta: of, Status: appsv1.StatefulSetStatus{ObservedGeneration: 99, Replicas: pods},
		}))
		require.NoError(t, s.Client.Create(t.Context(), &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.name(), Name: "db.1"}, Reason: "FailedCreate", Message: why,
			InvolvedObject: corev1.ObjectReference{Kind: "StatefulSet", Name: "db"},
		}))
		if pods > 0 {
			s.after = 30 * time.Minute // it is waited for
		}
		assert.Equal(t, want, s.checked(s.ReadDrill(weekly)).Verified, pods)
	}
}

// A refusal that may pass, such as that of a webhook that does not answer, is waited for.
func TestARefusalThatMayPassIsWaitedFor(t *testing.T) {
	s := newScene(t, fake.Drill(weekly, nightly))
	s.restored()
	one := int32(1)
	require.NoError(t, s.Client.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.name(), Name: "web", Labels: map[string]string{velerov1.RestoreNameLabel: s.name()}},
		Spec:       appsv1.DeploymentSpec{Replicas: &one},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 99, Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "failed calling webhook: no route to host",
		}}},
	}))
	require.NoError(t, s.check(holdfastv1alpha1.CheckObjects, contract.DrillStep{}))
	require.ErrorContains(t, s.check(holdfastv1alpha1.CheckWorkloads, contract.DrillStep{}), "waits for Deployment web")
	s.after = 30 * time.Minute
	require.NoError(t, s.check(holdfastv1alpha1.CheckWorkloads, contract.DrillStep{}))
	failed, _ := s.found()
	assert.Equal(t, []string{"Deployment web is not ready: 0 of 1 replicas are: failed calling webhook: no route to host"}, failed)
}

func TestADrillWithoutRoomForItsStatusIsRefused(t *testing.T) {
	drill := fake.Drill(weekly, nightly)
	jobOf(`{"spec":{"containers":[{"name":"main","image":"check","args":["` + strings.Repeat("x", 600<<10) + `"]}]}}`)(drill)
	s := newScene(t, drill)
	view := s.steps(contract.AdmitDrill.Name)
	assert.True(t, view.Oversized && view.Ended)
	assert.Contains(t, s.verified().Message, "more than 512 KiB")
}

// One drill of a namespace runs at a time, in the order in which they were created.
func TestADrillWaitsForOlderOnesOfItsNamespace(t *testing.T) {
	older := fake.Drill("a-older", nightly)
	older.CreationTimestamp = metav1.NewTime(begin.Add(-time.Hour))
	older.Status.Backup, older.Status.Phase = nightly, holdfastv1alpha1.DrillChecking
	drill := fake.Drill(weekly, nightly)
	drill.CreationTimestamp = metav1.NewTime(begin)
	s := newScene(t, older, drill)
	view := s.steps(contract.AdmitDrill.Name, contract.RefreshDrill.Name)
	assert.Equal(t, 1, view.Ahead)
	assert.Equal(t, "a-older", view.Oldest)
	assert.Equal(t, holdfastv1alpha1.DrillWaiting, s.status().Phase)
	assert.Equal(t, "waits for RestoreDrill a-older: one drill of a namespace runs at a time", s.verified().Message)

	ended := s.ReadDrill("a-older")
	ended.Status.Phase = holdfastv1alpha1.DrillEnded
	require.NoError(t, s.Client.Status().Update(t.Context(), ended))
	assert.Zero(t, s.steps(contract.RefreshDrill.Name).Ahead)
}
