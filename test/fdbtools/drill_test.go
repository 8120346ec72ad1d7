package fdbtools_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"holdfast.dev/holdfast/activities/fdb/drill"
	"holdfast.dev/holdfast/activities/fdb/tools"
	"holdfast.dev/holdfast/k8s"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/test/fdbsim/state"
	"holdfast.dev/holdfast/workflows/contract"
)

// drillScene is a scene with a second FoundationDB cluster, which is labelled, and an admitted drill of the first one's backup.
type drillScene struct {
	*restoreScene
	drill *fdbv1alpha1.FoundationDBDrill
}

func newDrillScene(t *testing.T) *drillScene {
	t.Helper()
	s := &drillScene{restoreScene: newRestoreScene(t)}
	s.target.Labels = map[string]string{fdbv1alpha1.LabelDrillTarget: fdbv1alpha1.LabelDrillTargetValue}
	s.object.Status.Backups = []fdbv1alpha1.BackupDetails{{
		Tag: "t1", URL: s.url(stamp), State: fdb.StateRunningDifferentially, LatestRestorable: &fdbv1alpha1.RestorePoint{Version: 5},
	}}
	now := metav1.Now()
	s.drill = &fdbv1alpha1.FoundationDBDrill{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "weekly", UID: "0a1b2c3d-9999", Generation: 1},
		Spec: fdbv1alpha1.FoundationDBDrillSpec{
			BackupName: "lab", TargetClusterName: "copy",
			Ranges: []fdbv1alpha1.DrillKeyRange{{Name: "a", Start: "a/", End: "a0"}, {Name: "b", Start: "b/", End: "b0"}},
		},
		Status: fdbv1alpha1.FoundationDBDrillStatus{Started: &now, Target: s.into, URL: s.url(stamp)},
	}
	return s
}

func (s *drillScene) drillRef() contract.ObjectRef {
	return contract.ObjectRef{Namespace: "team", Name: "weekly", UID: string(s.drill.UID)}
}

func performDrill[Out any](s *drillScene, name string, in any) (Out, error) {
	s.t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	reader := fake.NewClientBuilder().WithScheme(k8s.Scheme()).
		WithObjects(s.object, s.secret, s.kind, s.target, s.drill).Build()
	drills := &drill.Tools{Reader: reader, Runner: s.tools, Locker: s.locker}
	drills.Register(env)
	(&tools.Tools{Reader: reader, Runner: s.tools, Others: tools.Commands{contract.FDBDrillClear: drills.Clear}}).Register(env)
	var out Out
	answer, err := env.ExecuteActivity(name, in)
	if err == nil {
		require.NoError(s.t, answer.Get(&out))
	}
	return out, err
}

func (s *drillScene) survey() contract.FDBDrillSurvey {
	s.t.Helper()
	survey, err := performDrill[contract.FDBDrillSurvey](s, contract.SurveyFDBDrill.Name, contract.FDBDrillStep{Ref: s.drillRef()})
	require.NoError(s.t, err)
	return survey
}

func (s *drillScene) checked() contract.FDBDrillCheck {
	s.t.Helper()
	check, err := performDrill[contract.FDBDrillCheck](s, contract.CheckFDBDrill.Name, contract.FDBDrillStep{Ref: s.drillRef()})
	require.NoError(s.t, err)
	return check
}

func (s *drillScene) clear(tag string) contract.FDBOutcome {
	s.t.Helper()
	outcome, err := performDrill[contract.FDBOutcome](s, contract.RunFDBCommand.Name, contract.FDBCommand{
		Ref: s.drillRef(), Operation: contract.FDBDrillClear, Generation: 1, Tag: tag,
	})
	require.NoError(s.t, err)
	return outcome
}

func (s *drillScene) keys() int {
	s.t.Helper()
	keys, err := s.sim.Keys(s.into)
	require.NoError(s.t, err)
	return len(keys)
}

// concluded is a drill with a verdict, whose restore has come to that state and is gone.
func (s *drillScene) concluded(restore string) {
	s.t.Helper()
	now := metav1.Now()
	status := &s.drill.Status
	status.Begun, status.Concluded, status.Version, status.Tag = &now, &now, 7, "weekly-drill-0a1b2c3d-1"
	if restore != "" {
		s.runsInto(status.Tag, restore)
	}
	require.NoError(s.t, s.sim.Set(s.into, map[string]string{"a/1": "x", "z": "y"}))
}

func TestASurveyRecordsTheSourceAtOneVersion(t *testing.T) {
	s := newDrillScene(t)
	require.NoError(t, s.sim.Set(s.cluster, map[string]string{"a/1": "one", "a/2": "two", "c": "not named"}))
	survey := s.survey()
	assert.Empty(t, survey.Refused)
	assert.Empty(t, survey.Unread)
	assert.Positive(t, survey.Version)
	require.Len(t, survey.Records, 2)
	assert.EqualValues(t, 2, survey.Records[0].Keys)
	assert.EqualValues(t, len("a/1onea/2two"), survey.Records[0].Bytes)
	assert.Len(t, survey.Records[0].Digest, 64)
	assert.EqualValues(t, 0, survey.Records[1].Keys)

	// What came back gives the same digests, and is counted as a whole.
	require.NoError(t, s.sim.Set(s.into, map[string]string{"a/1": "one", "a/2": "two", "c": "not named"}))
	for _, record := range survey.Records {
		s.drill.Status.Records = append(s.drill.Status.Records, fdbv1alpha1.DrillRangeRecord{
			Name: record.Name, Start: record.Start, End: record.End, Digest: record.Digest,
		})
	}
	check := s.checked()
	assert.Equal(t, survey.Records, check.Records)
	assert.EqualValues(t, 3, check.Keys)
	assert.EqualValues(t, len("a/1onea/2twocnot named"), check.Bytes)
	require.NoError(t, s.sim.Set(s.into, map[string]string{"a/2": "tww"}))
	assert.NotEqual(t, survey.Records[0].Digest, s.checked().Records[0].Digest)
}

func TestASurveyChangesNothing(t *testing.T) {
	s := newDrillScene(t)
	require.NoError(t, s.sim.Set(s.into, map[string]string{"mine": "1"}))
	assert.Contains(t, s.survey().Refused, "holds data")
	require.NoError(t, s.sim.Change(s.into, func(c *state.Cluster) error { c.LockUID = "abc"; return nil }))
	assert.Contains(t, s.survey().Refused, "locked")
	require.NoError(t, s.sim.Change(s.into, func(c *state.Cluster) error { c.LockUID = ""; return nil }))
	assert.Equal(t, 1, s.keys())
}

func TestWhatIsNotRecordedIsSaid(t *testing.T) {
	s := newDrillScene(t)
	s.drill.Spec.Version = 5
	survey := s.survey()
	assert.Contains(t, survey.Unread, "only while the backup runs, and for its present version")
	assert.Empty(t, survey.Records)
	s.drill.Spec.Version = 0
	require.NoError(t, s.sim.Unreachable(s.cluster, true))
	survey = s.survey()
	assert.Contains(t, survey.Unread, "the source could not be read")
	assert.Empty(t, survey.Refused, "a lost source is what backups are for")
}

func TestATargetThatDoesNotAnswerIsRetried(t *testing.T) {
	s := newDrillScene(t)
	require.NoError(t, s.sim.Unreachable(s.into, true))
	_, err := performDrill[contract.FDBDrillSurvey](s, contract.SurveyFDBDrill.Name, contract.FDBDrillStep{Ref: s.drillRef()})
	require.Error(t, err)
}

func TestOnlyWhatTheDrillRestoredIsCleared(t *testing.T) {
	t.Run("restored", func(t *testing.T) {
		s := newDrillScene(t)
		s.concluded(state.RestoreCompleted)
		assert.True(t, s.clear(s.drill.Status.Tag).Done)
		assert.Zero(t, s.keys())
		assert.True(t, s.clear(s.drill.Status.Tag).Done, "again")
	})
	t.Run("a restore that still runs is aborted", func(t *testing.T) {
		s := newDrillScene(t)
		s.concluded("")
		s.runsInto(s.drill.Status.Tag, state.RestoreRunning)
		assert.True(t, s.clear(s.drill.Status.Tag).Done)
		assert.Zero(t, s.keys())
	})
	t.Run("never started", func(t *testing.T) {
		s := newDrillScene(t)
		s.concluded("")
		assert.True(t, s.clear(s.drill.Status.Tag).Done)
		assert.Equal(t, 2, s.keys(), "somebody else's")
	})
	for name, change := range map[string]func(*drillScene){
		"without its label":    func(s *drillScene) { s.target.Labels = nil },
		"another database":     func(s *drillScene) { s.drill.Status.Target = "copy:other" },
		"the source":           func(s *drillScene) { s.kind.Status.ConnectionString = s.target.Status.ConnectionString },
		"without a verdict":    func(s *drillScene) { s.drill.Status.Concluded = nil },
		"a drill that is over": func(s *drillScene) { s.drill.Status.Ended = s.drill.Status.Concluded },
		"nothing was begun":    func(s *drillScene) { s.drill.Status.Begun = nil },
		"another restore's":    func(s *drillScene) { s.drill.Status.Tag = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			s := newDrillScene(t)
			s.concluded(state.RestoreCompleted)
			tag := s.drill.Status.Tag
			change(s)
			outcome := s.clear(tag)
			assert.True(t, outcome.Stale)
			assert.False(t, outcome.Done)
			assert.Equal(t, 2, s.keys())
		})
	}
}
