package drill_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	veleroshared "github.com/vmware-tanzu/velero/pkg/apis/velero/shared"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/testsuite"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
	"holdfast.dev/holdfast/workflows/contract"
)

const weekly, nightly = "weekly", "nightly"

// begin is when the scenes begin.
var begin = time.Date(2026, 11, 25, 2, 0, 0, 0, time.UTC)

// scene is a world with a drill of a backup that is good, where drills are on.
type scene struct {
	*fake.World
	t      *testing.T
	folder string
	after  time.Duration
}

func newScene(t *testing.T, objects ...client.Object) *scene {
	t.Helper()
	objects = append(objects, fake.Taken(nightly, fake.AdminLocation, "")...)
	s := &scene{World: fake.New(t, objects...), t: t, folder: t.TempDir()}
	s.Policy.Drills = policy.Drills{Enabled: true}
	s.backedUp(nil)
	s.recordDigests()
	return s
}

// archived are the files of the backup's archive when it was complete.
func archived() map[string]string {
	return map[string]string{
		"metadata/version": "1.1.0",
		"resources/configmaps/namespaces/team/a.json":                             `{"kind":"ConfigMap","metadata":{"name":"a"},"data":{"size":"1"}}`,
		"resources/configmaps/v1-preferredversion/namespaces/team/a.json":         `{"kind":"ConfigMap","metadata":{"name":"a"},"data":{"size":"1"}}`,
		"resources/secrets/namespaces/team/keys.json":                             `{"kind":"Secret","metadata":{"name":"keys"},"data":{"password":"b2xk"}}`,
		"resources/deployments.apps/namespaces/team/web.json":                     `{"kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":1}}`,
		"resources/persistentvolumes/cluster/pv-1.json":                           `{"kind":"PersistentVolume"}`,
		"resources/customresourcedefinitions.apiextensions.k8s.io/cluster/x.json": `{}`,
	}
}

// archive writes the backup's archive.
func (s *scene) archive(files map[string]string) {
	s.t.Helper()
	s.pack(fake.Archive(s.t, files))
}

func (s *scene) pack(archive []byte) {
	s.t.Helper()
	s.write("backups/"+fake.VeleroName(nightly)+"/"+fake.VeleroName(nightly)+".tar.gz", archive)
}

// recordDigests records the digests of the backup.
func (s *scene) recordDigests() {
	s.t.Helper()
	s.archive(archived())
	made := s.Velero(fake.VeleroName(nightly))
	completed := metav1.NewTime(begin.Add(-time.Hour))
	made.Status.CompletionTimestamp = &completed
	metav1.SetMetaDataAnnotation(&made.ObjectMeta, holdfastv1alpha1.AnnotationDigests, holdfastv1alpha1.DigestsDue)
	require.NoError(s.t, s.Client.Update(s.t.Context(), made))
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	s.Digests(s.folder, func() time.Time { return begin }).Register(env)
	_, err := env.ExecuteActivity(contract.RecordDigests.Name, contract.BackupStep{Ref: fake.Ref(nightly)})
	require.NoError(s.t, err)
}

func (s *scene) name() string { return owner.DrillName(fake.Cluster, "uid-"+weekly) }

func (s *scene) step(activity string, in contract.DrillStep) (view contract.DrillView, err error) {
	s.t.Helper()
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	s.Drills(s.folder, func() time.Time { return begin.Add(s.after) }).Register(env)
	in.Ref = fake.Ref(weekly)
	answer, err := env.ExecuteActivity(activity, in)
	if err == nil {
		require.NoError(s.t, answer.Get(&view))
	}
	return view, err
}

func (s *scene) steps(activities ...string) (view contract.DrillView) {
	s.t.Helper()
	for _, activity := range activities {
		var err error
		view, err = s.step(activity, contract.DrillStep{})
		require.NoError(s.t, err, activity)
	}
	return view
}

func (s *scene) status() *holdfastv1alpha1.RestoreDrillStatus { return &s.ReadDrill(weekly).Status }

func (s *scene) verified() *metav1.Condition {
	s.t.Helper()
	condition := meta.FindStatusCondition(s.status().Conditions, holdfastv1alpha1.ConditionVerified)
	require.NotNil(s.t, condition)
	return condition
}

// makeNamespace makes the namespace, as the drills' worker does.
func (s *scene) makeNamespace() {
	s.t.Helper()
	drill := s.ReadDrill(weekly)
	require.NoError(s.t, s.Client.Create(s.t.Context(), &corev1.Namespace{ObjectMeta: owner.DrillMeta(fake.Cluster, drill, "")}))
}

// velero ends the Velero Restore.
func (s *scene) velero(phase velerov1.RestorePhase, restored objectstore.ResourceList, results objectstore.Results) {
	s.t.Helper()
	restore := s.VeleroRestore(s.name())
	started, completed := metav1.NewTime(begin), metav1.NewTime(begin.Add(42*time.Second))
	restore.Status.Phase, restore.Status.StartTimestamp, restore.Status.CompletionTimestamp = phase, &started, &completed
	require.NoError(s.t, s.Client.Update(s.t.Context(), restore))
	s.put("restores/"+s.name()+"/restore-"+s.name()+"-resource-list.json.gz", restored)
	s.put("restores/"+s.name()+"/restore-"+s.name()+"-results.gz", results)
}

func (s *scene) backedUp(list objectstore.ResourceList) {
	s.put("backups/"+fake.VeleroName(nightly)+"/"+fake.VeleroName(nightly)+"-resource-list.json.gz", list)
}

func (s *scene) put(key string, content any) {
	s.t.Helper()
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	require.NoError(s.t, json.NewEncoder(writer).Encode(content))
	require.NoError(s.t, writer.Close())
	s.write(key, packed.Bytes())
}

func (s *scene) write(key string, content []byte) {
	s.t.Helper()
	file := filepath.Join(s.folder, filepath.FromSlash(key))
	require.NoError(s.t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(s.t, os.WriteFile(file, content, 0o600))
}

func TestADrillThatCannotBeMadeIsOverAtOnce(t *testing.T) {
	plan := &holdfastv1alpha1.BackupPlan{ObjectMeta: metav1.ObjectMeta{Namespace: fake.Namespace, Name: "plan"}}
	ofPlan := func(d *holdfastv1alpha1.RestoreDrill) { d.Spec.BackupName, d.Spec.PlanName = "", "plan" }
	for title, test := range map[string]struct {
		change func(*scene)
		drill  func(*holdfastv1alpha1.RestoreDrill)
		there  []client.Object
		want   string
	}{
		"drills are off":     {change: func(s *scene) { s.Policy.Drills.Enabled = false }, want: "the administrator's policy allows no drills (drills.enabled)"},
		"no such backup":     {drill: func(d *holdfastv1alpha1.RestoreDrill) { d.Spec.BackupName = "other" }, want: `"other" not found`},
		"no such plan":       {drill: ofPlan, want: `there is no BackupPlan "plan" in this namespace`},
		"no good backup yet": {drill: ofPlan, there: []client.Object{plan}, want: `BackupPlan "plan" has no good backup`},
		"the backup is not complete": {change: func(s *scene) {
			made := s.Velero(fake.VeleroName(nightly))
			made.Status.Phase = velerov1.BackupPhaseFailed
			require.NoError(s.t, s.Client.Update(s.t.Context(), made))
		}, want: "is not complete (phase Failed)"},
		"the admission policy is missing": {change: func(s *scene) { s.Allowed = fake.Allowlist{Problem: "no policy"} }, want: "nothing can be restored for a drill now: no policy"},
		"nothing can be checked": {change: func(s *scene) { s.Policy.Drills.WithoutNetworkPolicies = true }, drill: func(d *holdfastv1alpha1.RestoreDrill) {
			no := false
			d.Spec.Checks.Objects = &no
		}, want: "none of spec.checks can be made"},
	} {
		t.Run(title, func(t *testing.T) {
			drill := fake.Drill(weekly, nightly)
			if test.drill != nil {
				test.drill(drill)
			}
			s := newScene(t, append(test.there, drill)...)
			if test.change != nil {
				test.change(s)
			}
			view := s.steps(contract.AdmitDrill.Name)
			assert.True(t, view.Ended && view.Concluded)
			assert.Equal(t, metav1.ConditionUnknown, s.verified().Status)
			assert.Equal(t, holdfastv1alpha1.ReasonNotVerified, s.verified().Reason)
			assert.Contains(t, s.verified().Message, test.want)
			assert.Empty(t, s.status().Namespace)
			writes := len(s.Writes())
			s.steps(contract.AdmitDrill.Name, contract.StartDrillRestore.Name, contract.ConcludeDrill.Name, contract.RefreshDrill.Name)
			assert.Len(t, s.Writes(), writes, "once")
		})
	}
}

func TestADrillIsMadeOnceAndVerified(t *testing.T) {
	s := newScene(t, fake.Drill(weekly, nightly))
	view := s.steps(contract.AdmitDrill.Name)
	assert.True(t, view.Admitted)
	assert.Equal(t, "restricted", view.Namespace.Labels["pod-security.kubernetes.io/enforce"])
	assert.Equal(t, 1, view.Namespace.MaxActive)
	assert.Equal(t, s.name(), s.status().Namespace)
	view = s.steps(contract.StartDrillRestore.Name)
	assert.False(t, view.Velero.Exists, "not without its namespace")

	s.makeNamespace()
	for range 2 {
		view = s.steps(contract.StartDrillRestore.Name)
		assert.True(t, view.Velero.Exists && view.Velero.Begun)
	}
	made := s.VeleroRestore(s.name())
	assert.Equal(t, map[string]string{fake.Namespace: s.name()}, made.Spec.NamespaceMapping)
	modifier := strings.ReplaceAll(s.Modifier(s.name()).Data[restorespec.ModifierKey], `\"`, `"`)
	assert.Contains(t, modifier, `"holdfast.dev/restored-into":"Of.the.kind.of.its.folder"`)
	assert.Contains(t, modifier, s.name())
	assert.Equal(t, begin.Add(30*time.Minute).Unix(), view.Deadline)

	s.backedUp(objectstore.ResourceList{
		"v1/ConfigMap": {"team/a", "team/b"}, "rbac.authorization.k8s.io/v1/Role": {"team/r"}, "v1/Event": {"team/e"},
		"networking.k8s.io/v1/Ingress": {"team/i"},
	})
	s.velero(velerov1.RestorePhaseCompleted, objectstore.ResourceList{
		"v1/ConfigMap": {s.name() + "/a(created)", s.name() + "/b(created)"},
	}, nil)
	require.NoError(t, s.Client.Create(t.Context(), &velerov1.PodVolumeRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: fake.OADPNamespace, Name: "data", Labels: map[string]string{velerov1.RestoreNameLabel: s.name()}},
		Status:     velerov1.PodVolumeRestoreStatus{Progress: veleroshared.DataMoveOperationProgress{BytesDone: 4711}},
	}))
	s.after = time.Minute
	view = s.steps(contract.RefreshDrill.Name)
	for _, check := range []string{holdfastv1alpha1.CheckObjects, holdfastv1alpha1.CheckWorkloads} {
		require.Equal(t, check, view.Check)
		var err error
		view, err = s.step(contract.CheckDrill.Name, contract.DrillStep{Check: check})
		require.NoError(t, err)
	}
	assert.Empty(t, view.Check)
	view = s.steps(contract.ConcludeDrill.Name)
	assert.Equal(t, "True", view.Verified)
	assert.Equal(t, holdfastv1alpha1.ReasonVerifiedInPart, s.verified().Reason)
	assert.Equal(t, &holdfastv1alpha1.DrillMeasured{RestoreSeconds: 42, Objects: 2, Bytes: 4711}, s.status().Measured)
	require.Len(t, s.status().Findings, 1)
	assert.Equal(t, "a drill does not restore Ingress: i", s.status().Findings[0].Message)

	view = s.steps(contract.ReleaseDrillVolumes.Name, contract.RemoveDrillRestore.Name)
	assert.False(t, view.Velero.Exists)
	assert.Nil(t, s.Modifier(s.name()))
	s.steps(contract.EndDrill.Name)
	assert.Nil(t, s.status().Ended, "its namespace is there")
}

func TestWhatIsWrongIsFound(t *testing.T) {
	for title, test := range map[string]struct {
		phase   velerov1.RestorePhase
		came    []string
		results objectstore.Results
		reason  string
		finding string
	}{
		"an object is missing": {phase: velerov1.RestorePhaseCompleted, came: []string{"a(created)"}, reason: holdfastv1alpha1.ReasonChecksFailed, finding: "ConfigMap b is in the backup and was not restored"},
		"Velero reports an error": {
			phase: velerov1.RestorePhasePartiallyFailed, came: []string{"a(created)", "b(created)"}, reason: holdfastv1alpha1.ReasonChecksFailed,
			results: objectstore.Results{objectstore.ErrorsKey: {Velero: []string{"no space"}}}, finding: "Velero: no space",
		},
		"Velero fails": {phase: velerov1.RestorePhaseFailed, reason: holdfastv1alpha1.ReasonRestoreFailed},
	} {
		t.Run(title, func(t *testing.T) {
			drill := fake.Drill(weekly, nightly)
			drill.Spec.KeepOnFailure = "1h"
			s := newScene(t, drill)
			s.steps(contract.AdmitDrill.Name)
			s.makeNamespace()
			s.steps(contract.StartDrillRestore.Name)
			s.backedUp(objectstore.ResourceList{"v1/ConfigMap": {"team/a", "team/b"}})
			var came objectstore.ResourceList
			if test.came != nil {
				came = objectstore.ResourceList{}
				for _, name := range test.came {
					came["v1/ConfigMap"] = append(came["v1/ConfigMap"], s.name()+"/"+name)
				}
			}
			s.velero(test.phase, came, test.results)
			if test.phase != velerov1.RestorePhaseFailed {
				for _, check := range []string{holdfastv1alpha1.CheckObjects, holdfastv1alpha1.CheckWorkloads} {
					_, err := s.step(contract.CheckDrill.Name, contract.DrillStep{Check: check})
					require.NoError(t, err)
				}
			}
			view := s.steps(contract.ConcludeDrill.Name)
			assert.Equal(t, "False", view.Verified)
			assert.Equal(t, test.reason, s.verified().Reason)
			assert.True(t, view.Kept)
			assert.Equal(t, begin.Add(time.Hour).Unix(), view.KeptUntil)
			if test.finding != "" {
				require.Len(t, s.status().Findings, 1)
				assert.Equal(t, test.finding, s.status().Findings[0].Message)
			}
		})
	}
}

func TestWorkloadsAreWaitedForUntilTheDrillIsLate(t *testing.T) {
	s := newScene(t, fake.Drill(weekly, nightly))
	s.steps(contract.AdmitDrill.Name)
	s.makeNamespace()
	s.steps(contract.StartDrillRestore.Name)
	s.backedUp(objectstore.ResourceList{"apps/v1/Deployment": {"team/web"}})
	s.velero(velerov1.RestorePhaseCompleted, objectstore.ResourceList{"apps/v1/Deployment": {s.name() + "/web(created)"}}, nil)
	labels := map[string]string{velerov1.RestoreNameLabel: s.name()}
	one := int32(1)
	require.NoError(t, s.Client.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.name(), Name: "web", Labels: labels}, Spec: appsv1.DeploymentSpec{Replicas: &one},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 99},
	}))
	require.NoError(t, s.Client.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.name(), Name: "web-1", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: types.UID("r"), Controller: func() *bool { yes := true; return &yes }(),
		}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}},
		}}},
	}))
	_, err := s.step(contract.CheckDrill.Name, contract.DrillStep{Check: holdfastv1alpha1.CheckObjects})
	require.NoError(t, err)
	_, err = s.step(contract.CheckDrill.Name, contract.DrillStep{Check: holdfastv1alpha1.CheckWorkloads})
	require.ErrorContains(t, err, "waits for Deployment web")
	s.after = 30 * time.Minute
	_, err = s.step(contract.CheckDrill.Name, contract.DrillStep{Check: holdfastv1alpha1.CheckWorkloads})
	require.NoError(t, err)
	view := s.steps(contract.ConcludeDrill.Name)
	assert.Equal(t, "False", view.Verified)
	var messages []string
	for _, found := range s.status().Findings {
		messages = append(messages, found.Message)
	}
	assert.Equal(t, []string{
		"Deployment web is not ready: 0 of 1 replicas are", "Pod web-1: container main waits: ImagePullBackOff no such image",
	}, messages)
}

func TestARetainedVolumeGoesWithItsClaim(t *testing.T) {
	s := newScene(t, fake.Drill(weekly, nightly))
	s.steps(contract.AdmitDrill.Name)
	s.makeNamespace()
	bound := func(name, namespace, uid string) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
			"pv.kubernetes.io/provisioned-by": "example.com/disks",
		}}, Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Namespace: namespace, Name: "data", UID: types.UID(uid)},
		}}
	}
	claim := func(name, volume, uid string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.name(), Name: name, UID: types.UID(uid)},
			Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: volume},
		}
	}
	byHand := bound("by-hand", s.name(), "c-3")
	byHand.Annotations = nil
	for _, object := range []client.Object{
		bound("own", s.name(), "c-1"), bound("anothers", "shop", "c-9"), claim("data", "own", "c-1"), claim("aimed", "anothers", "c-2"),
		byHand, claim("by-hand", "by-hand", "c-3"),
	} {
		require.NoError(t, s.Client.Create(t.Context(), object))
	}
	s.steps(contract.ReleaseDrillVolumes.Name)
	for name, want := range map[string]corev1.PersistentVolumeReclaimPolicy{
		"own": corev1.PersistentVolumeReclaimDelete, "anothers": corev1.PersistentVolumeReclaimRetain,
		"by-hand": corev1.PersistentVolumeReclaimRetain,
	} {
		volume := &corev1.PersistentVolume{}
		require.NoError(t, s.Client.Get(t.Context(), client.ObjectKey{Name: name}, volume))
		assert.Equal(t, want, volume.Spec.PersistentVolumeReclaimPolicy, name)
	}
}
