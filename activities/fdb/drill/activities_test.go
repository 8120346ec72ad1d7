package drill_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/fdb/drill"
	"holdfast.dev/holdfast/k8s"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

const uid = "0a1b2c3d-1111-2222-3333-444444444444"

var ref = contract.ObjectRef{Namespace: "team", Name: "weekly", UID: uid}

// scene are the objects of one drill; world has them in a cluster in memory.
type scene struct {
	drill          *fdbv1alpha1.FoundationDBDrill
	backup         *fdbv1alpha1.FoundationDBBackup
	source, target *foundationdbv1beta2.FoundationDBCluster
	more           []client.Object
}

func newScene() *scene {
	cluster := func(name, connection string) *foundationdbv1beta2.FoundationDBCluster {
		made := &foundationdbv1beta2.FoundationDBCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		made.Spec.Version, made.Status.ConnectionString = "7.3.48", connection
		return made
	}
	s := &scene{
		drill: &fdbv1alpha1.FoundationDBDrill{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "team", Name: "weekly", UID: uid, Generation: 1, CreationTimestamp: metav1.NewTime(time.Now()),
			},
			Spec: fdbv1alpha1.FoundationDBDrillSpec{BackupName: "ledger", TargetClusterName: "spare", Timeout: "30m"},
		},
		backup: &fdbv1alpha1.FoundationDBBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "ledger"}},
		source: cluster("ledger", "ledger:1@10.0.0.1:4500"), target: cluster("spare", "spare:2@10.0.0.2:4500"),
	}
	s.backup.Spec.Credentials.SecretName = "store"
	s.backup.Status.Backups = []fdbv1alpha1.BackupDetails{{
		Tag: "default", URL: "blobstore://lab@s3.local/ledger?bucket=b", State: "RunningDifferentially",
		LatestRestorable: &fdbv1alpha1.RestorePoint{Version: 900},
	}}
	s.target.Labels = map[string]string{fdbv1alpha1.LabelDrillTarget: "true"}
	return s
}

// admitted is a drill that has been admitted and planned.
func admitted() *scene {
	s := newScene()
	now := metav1.Now()
	s.drill.Finalizers = []string{fdbv1alpha1.FinalizerDrillTarget}
	s.drill.Status = fdbv1alpha1.FoundationDBDrillStatus{
		Phase: fdbv1alpha1.FDBDrillWaiting, Started: &now, Target: "spare:2", Version: 700, URL: s.backup.Status.Backups[0].URL,
	}
	return s
}

type world struct {
	client.Client
	t          *testing.T
	activities *drill.Activities
	events     chan string
}

func (s *scene) world(t *testing.T) *world {
	t.Helper()
	objects := append([]client.Object{s.drill, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}}, s.more...)
	if s.backup != nil {
		objects = append(objects, s.backup)
	}
	for _, cluster := range []*foundationdbv1beta2.FoundationDBCluster{s.source, s.target} {
		if cluster != nil {
			objects = append(objects, cluster)
		}
	}
	recorder := events.NewFakeRecorder(100)
	w := &world{t: t, events: recorder.Events}
	w.Client = fakeclient.NewClientBuilder().WithScheme(k8s.Scheme()).
		WithStatusSubresource(&fdbv1alpha1.FoundationDBDrill{}, &fdbv1alpha1.FoundationDBRestore{}).WithObjects(objects...).Build()
	w.activities = &drill.Activities{Cluster: activities.Cluster{
		Client: w.Client, Events: recorder, Paused: activities.NeverPaused,
	}}
	return w
}

// do performs a step twice, as after a lost answer, and returns the view.
func (w *world) do(activity contract.Activity[contract.FDBDrillStep, contract.FDBDrillView], step contract.FDBDrillStep) contract.FDBDrillView {
	w.t.Helper()
	step.Ref = ref
	var view contract.FDBDrillView
	for range 2 {
		suite := &testsuite.WorkflowTestSuite{}
		suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
		env := suite.NewTestActivityEnvironment()
		w.activities.Register(env)
		answer, err := env.ExecuteActivity(activity.Name, step)
		require.NoError(w.t, err)
		require.NoError(w.t, answer.Get(&view))
	}
	return view
}

func (w *world) drill() *fdbv1alpha1.FoundationDBDrill {
	w.t.Helper()
	found := &fdbv1alpha1.FoundationDBDrill{}
	require.NoError(w.t, w.Get(w.t.Context(), client.ObjectKey{Namespace: "team", Name: "weekly"}, found))
	return found
}

func (w *world) verdict() *metav1.Condition {
	w.t.Helper()
	found := meta.FindStatusCondition(w.drill().Status.Conditions, holdfastv1alpha1.ConditionVerified)
	require.NotNil(w.t, found)
	return found
}

func (w *world) restores() []fdbv1alpha1.FoundationDBRestore {
	w.t.Helper()
	list := &fdbv1alpha1.FoundationDBRestoreList{}
	require.NoError(w.t, w.List(w.t.Context(), list))
	return list.Items
}

// recorded are the reasons of the Events.
func (w *world) recorded() []string {
	var found []string
	for {
		select {
		case event := <-w.events:
			found = append(found, event)
		default:
			return found
		}
	}
}

func TestAFitDrillBegins(t *testing.T) {
	w := newScene().world(t)
	view := w.do(contract.AdmitFDBDrill, contract.FDBDrillStep{})
	assert.True(t, view.Admitted)
	assert.True(t, view.Held)
	assert.Equal(t, "spare:2", view.Target)
	assert.False(t, view.Concluded)
	assert.Equal(t, holdfastv1alpha1.ReasonDrillRunning, w.verdict().Reason)
	assert.Equal(t, "blobstore://lab@s3.local/ledger?bucket=b", w.drill().Status.URL)
}

func TestWhatIsNotFitIsRefusedAndUnchanged(t *testing.T) {
	other := func(change func(*fdbv1alpha1.FoundationDBDrill)) []client.Object {
		made := newScene().drill
		made.Name, made.UID = "other", "9"
		made.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Hour))
		change(made)
		return []client.Object{made}
	}
	now := metav1.Now()
	for why, change := range map[string]func(*scene){
		`there is no FoundationDBBackup "ledger"`: func(s *scene) { s.backup = nil },
		"range orders is not within what the backup holds: users/ users0": func(s *scene) {
			s.backup.Status.Backups[0].KeyRanges = []string{"users/ users0"}
			s.drill.Spec.Ranges = []fdbv1alpha1.DrillKeyRange{{Name: "orders", Start: "orders/", End: "orders0"}}
		},
		"has no backup yet that can be restored":        func(s *scene) { s.backup.Status.Backups[0].LatestRestorable = nil },
		`FoundationDBCluster "ledger" is the one that`:  func(s *scene) { s.drill.Spec.TargetClusterName = "ledger" },
		`has no label holdfast.dev/drill-target: "true`: func(s *scene) { s.target.Labels[fdbv1alpha1.LabelDrillTarget] = "yes" },
		`there is no FoundationDBCluster "spare"`:       func(s *scene) { s.target = nil },
		"no valid status.connectionString yet":          func(s *scene) { s.target.Status.ConnectionString = "" },
		"is the database that was backed up, ledger:1":  func(s *scene) { s.target.Status.ConnectionString = "ledger:1@10.0.0.9:4500" },
		`FoundationDBDrill "other" uses`: func(s *scene) {
			s.more = other(func(d *fdbv1alpha1.FoundationDBDrill) { d.Status.Started = &now })
		},
		`"other" uses FoundationDBCluster "spare"`: func(s *scene) {
			s.more = other(func(d *fdbv1alpha1.FoundationDBDrill) {
				d.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
			})
		},
	} {
		t.Run(why, func(t *testing.T) {
			s := newScene()
			change(s)
			w := s.world(t)
			view := w.do(contract.AdmitFDBDrill, contract.FDBDrillStep{})
			assert.True(t, view.Concluded)
			assert.False(t, view.Admitted)
			assert.Equal(t, holdfastv1alpha1.ReasonNotVerified, w.verdict().Reason)
			assert.Contains(t, w.verdict().Message, why)
			assert.True(t, w.do(contract.EndFDBDrill, contract.FDBDrillStep{}).Ended)
			assert.Empty(t, w.drill().Finalizers)
			assert.Empty(t, w.restores())
			assert.Len(t, w.recorded(), 1, "the verdict, once")
		})
	}
}

func TestDrillsThatDoNotMeetBothBegin(t *testing.T) {
	for name, change := range map[string]func(*fdbv1alpha1.FoundationDBDrill){
		"it has ended": func(d *fdbv1alpha1.FoundationDBDrill) {
			d.Status.Started, d.Status.Ended = &d.CreationTimestamp, &d.CreationTimestamp
		},
		"another target": func(d *fdbv1alpha1.FoundationDBDrill) { d.Spec.TargetClusterName = "third" },
		"a younger one": func(d *fdbv1alpha1.FoundationDBDrill) {
			d.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Hour))
		},
	} {
		s := newScene()
		other := newScene().drill
		other.Name, other.UID = "other", "9"
		other.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
		change(other)
		s.more = []client.Object{other}
		assert.True(t, s.world(t).do(contract.AdmitFDBDrill, contract.FDBDrillStep{}).Admitted, name)
	}
}

func TestThePlanIsOfTheRecordedVersion(t *testing.T) {
	for name, test := range map[string]struct {
		wanted int64
		survey contract.FDBDrillSurvey
		want   int64
	}{
		"the source was read": {survey: contract.FDBDrillSurvey{Version: 950}, want: 950},
		"it was not":          {survey: contract.FDBDrillSurvey{Unread: "away"}, want: 900},
		"an earlier version":  {wanted: 500, survey: contract.FDBDrillSurvey{Unread: "earlier"}, want: 500},
	} {
		t.Run(name, func(t *testing.T) {
			s := admitted()
			s.drill.Status.Version, s.drill.Spec.Version = 0, test.wanted
			w := s.world(t)
			view := w.do(contract.PlanFDBDrill, contract.FDBDrillStep{Survey: &test.survey})
			assert.Equal(t, test.want, view.Version)
			assert.Equal(t, test.want <= 900, view.Reached, "the backup holds 900")
			assert.Equal(t, test.survey.Unread != "", len(w.drill().Status.Findings) == 1)
		})
	}
}

// A version that was the present one for an earlier drill has that drill's records.
func TestAnEarlierVersionIsComparedWithTheRecordOfItsTime(t *testing.T) {
	record := fdbv1alpha1.DrillRangeRecord{Name: "orders", Start: "a", End: "b", Keys: 3, Digest: "111"}
	for name, test := range map[string]struct {
		change   func(drill, earlier *fdbv1alpha1.FoundationDBDrill)
		want     []fdbv1alpha1.DrillRangeRecord
		findings string
	}{
		"all of it": {func(_, _ *fdbv1alpha1.FoundationDBDrill) {}, []fdbv1alpha1.DrillRangeRecord{record}, "range all: no drill has recorded it"},
		"the same range": {func(d, _ *fdbv1alpha1.FoundationDBDrill) {
			d.Spec.Ranges = []fdbv1alpha1.DrillKeyRange{{Name: "orders", Start: "a", End: "b"}}
		}, []fdbv1alpha1.DrillRangeRecord{record}, ""},
		"one of two": {func(d, _ *fdbv1alpha1.FoundationDBDrill) {
			d.Spec.Ranges = []fdbv1alpha1.DrillKeyRange{{Name: "orders", Start: "a", End: "b"}, {Name: "huge", Start: "c", End: "d"}}
		}, []fdbv1alpha1.DrillRangeRecord{record}, "range huge: no drill has recorded it at version 500"},
		"another range": {func(d, _ *fdbv1alpha1.FoundationDBDrill) {
			d.Spec.Ranges = []fdbv1alpha1.DrillKeyRange{{Name: "orders", Start: "a", End: "c"}}
		}, nil, "nothing is compared"},
		"another version": {func(_, e *fdbv1alpha1.FoundationDBDrill) { e.Status.Version = 501 }, nil, "nothing is compared"},
		"another backup":  {func(_, e *fdbv1alpha1.FoundationDBDrill) { e.Spec.BackupName = "other" }, nil, "nothing is compared"},
		"another URL":     {func(_, e *fdbv1alpha1.FoundationDBDrill) { e.Status.URL = "blobstore://elsewhere" }, nil, "nothing is compared"},
	} {
		t.Run(name, func(t *testing.T) {
			s, earlier := admitted(), admitted().drill
			s.drill.Status.Version, s.drill.Spec.Version = 0, 500
			earlier.Name, earlier.UID, earlier.Status.Version = "earlier", "8", 500
			earlier.Status.Records = []fdbv1alpha1.DrillRangeRecord{{Name: "huge", Start: "c", End: "d"}, record}
			test.change(s.drill, earlier)
			s.more = []client.Object{earlier}
			w := s.world(t)
			w.do(contract.PlanFDBDrill, contract.FDBDrillStep{Survey: &contract.FDBDrillSurvey{Unread: "earlier"}})
			assert.Equal(t, test.want, w.drill().Status.Records)
			said := ""
			for _, found := range w.drill().Status.Findings {
				said += found.Message
			}
			assert.Contains(t, said, test.findings)
			assert.Equal(t, test.findings == "", said == "")
		})
	}
}

func TestTheRestoreIsMadeOnce(t *testing.T) {
	w := admitted().world(t)
	view := w.do(contract.StartFDBDrillRestore, contract.FDBDrillStep{})
	assert.True(t, view.Restore.Begun)
	assert.True(t, view.Restore.Exists)
	require.Len(t, w.restores(), 1)
	made := w.restores()[0]
	assert.Equal(t, "weekly-drill-0a1b2c3d", made.Name)
	assert.Equal(t, fdbv1alpha1.FoundationDBRestoreSpec{
		BackupURL: "blobstore://lab@s3.local/ledger?bucket=b", Version: 700, DestinationClusterName: "spare", SourceClusterName: "ledger",
		Credentials: &fdbv1alpha1.CredentialsReference{SecretName: "store"}, RestoreState: fdbv1alpha1.RestoreStateRunning,
	}, made.Spec)
	assert.NotEmpty(t, w.drill().Status.Tag)
	assert.Len(t, w.recorded(), 1)
}

func TestNothingIsRestoredIntoATargetThatHasChanged(t *testing.T) {
	for why, change := range map[string]func(*scene){
		"the label of FoundationDBCluster":           func(s *scene) { s.target.Labels = nil },
		`FoundationDBCluster "spare" was changed`:    func(s *scene) { s.target.Status.ConnectionString = "spare:3@10.0.0.2:4500" },
		`FoundationDBBackup "ledger" was deleted`:    func(s *scene) { s.backup = nil },
		"was not made for this drill: delete it":     func(s *scene) { s.more = []client.Object{foreign()} },
		`"weekly-drill-0a1b2c3d" exists and was not`: func(s *scene) { s.more = []client.Object{foreign()} },
	} {
		s := admitted()
		change(s)
		w := s.world(t)
		before := len(w.restores())
		assert.True(t, w.do(contract.StartFDBDrillRestore, contract.FDBDrillStep{}).Concluded, why)
		assert.Contains(t, w.verdict().Message, why)
		assert.Len(t, w.restores(), before)
		assert.Nil(t, w.drill().Status.Begun)
		assert.False(t, w.do(contract.RemoveFDBDrillRestore, contract.FDBDrillStep{}).Restore.Exists)
		assert.Len(t, w.restores(), before, "somebody else's stays")
	}
}

// foreign is a FoundationDBRestore with the name of the drill's, made by somebody else.
func foreign() *fdbv1alpha1.FoundationDBRestore {
	return &fdbv1alpha1.FoundationDBRestore{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "weekly-drill-0a1b2c3d"}}
}

// A worker was killed between the making of the restore and the note of it: the target is to be cleared all the same.
func TestARestoreThatIsNotKnownOfIsNotedBeforeItGoes(t *testing.T) {
	s := admitted()
	w := s.world(t)
	w.do(contract.StartFDBDrillRestore, contract.FDBDrillStep{})
	forgotten := w.drill()
	forgotten.Status.Begun, forgotten.Status.Tag, forgotten.Status.Restore = nil, "", ""
	require.NoError(t, w.Status().Update(t.Context(), forgotten))
	require.NoError(t, w.Delete(t.Context(), w.drill()))
	view := w.do(contract.RemoveFDBDrillRestore, contract.FDBDrillStep{})
	assert.True(t, view.Restore.Begun)
	assert.False(t, view.Restore.Exists)
	assert.NotEmpty(t, view.Tag)
	assert.False(t, w.do(contract.EndFDBDrill, contract.FDBDrillStep{}).Ended, "the target is not cleared yet")
	assert.False(t, w.do(contract.EndFDBDrill, contract.FDBDrillStep{Cleared: true}).Found, "it is gone")
}

// Who may create restores may say that one is the drill's. It is not, unless it is the same: FoundationDB would begin one of some
// ranges in a target that somebody uses.
func TestAForgedRestoreIsNotTheDrills(t *testing.T) {
	for name, forge := range map[string]func(*fdbv1alpha1.FoundationDBRestoreSpec){
		"of some keys": func(s *fdbv1alpha1.FoundationDBRestoreSpec) {
			s.KeyRanges = []fdbv1alpha1.KeyRange{{Start: "a", End: "b"}}
		},
		"another version": func(s *fdbv1alpha1.FoundationDBRestoreSpec) { s.Version++ },
		"another backup":  func(s *fdbv1alpha1.FoundationDBRestoreSpec) { s.BackupURL += "-other" },
		"another tag":     func(s *fdbv1alpha1.FoundationDBRestoreSpec) { s.Tag = "mine" },
	} {
		t.Run(name, func(t *testing.T) {
			s := admitted()
			made := (&drill.Objects{Drill: s.drill, Backup: s.backup}).NewRestore()
			forge(&made.Spec)
			s.more = []client.Object{made}
			w := s.world(t)
			assert.True(t, w.do(contract.StartFDBDrillRestore, contract.FDBDrillStep{}).Concluded)
			assert.Contains(t, w.verdict().Message, "was not made for this drill")
			assert.Nil(t, w.drill().Status.Begun)
			assert.True(t, w.do(contract.EndFDBDrill, contract.FDBDrillStep{}).Ended)
			assert.Len(t, w.restores(), 1)
		})
	}
}
