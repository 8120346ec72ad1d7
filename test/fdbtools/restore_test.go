package fdbtools_test

import (
	"errors"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/test/fdbsim/state"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestRestoreIsStartedOnceAndBringsTheKeysBack(t *testing.T) {
	t.Parallel()
	s := newRestoreScene(t)
	s.taken(map[string]string{"a": "1", "b": "2"})
	seen := s.look(true)
	require.Nil(t, seen.Failure)
	assert.Nil(t, seen.Restore, "nothing is planned")
	assert.True(t, seen.LockKnown)
	assert.Empty(t, seen.LockUID)
	assert.Empty(t, seen.NotEmpty)
	require.NotNil(t, seen.Point, "%+v", seen.Unresolved)
	assert.NotZero(t, seen.Point.Time, "the source cluster knows the time")
	assert.Equal(t, s.url(stamp), seen.URL)

	s.planned(seen.Point.Version)
	for range 3 {
		outcome := s.operate(contract.FDBRestoreStart)
		assert.True(t, outcome.Done, "%+v", outcome.Failure)
	}
	require.Len(t, s.told("start"), 1)
	args := strings.Join(s.told("start")[0].Args, " ")
	assert.Contains(t, args, "-v "+strconv.FormatInt(seen.Point.Version, 10), "the version is always given")
	seen = s.look(false)
	require.NotNil(t, seen.Restore)
	assert.Equal(t, seen.Restore.UID, seen.LockUID)
	_, err := s.check(contract.FDBRestoreTaskUnlocked, time.Now().Add(time.Hour))
	require.ErrorContains(t, err, contract.ErrorNotYet)

	s.restoreAgent()
	seen = s.lookUntil("it is completed", func(seen contract.FDBRestoreInspection) bool {
		return seen.Restore != nil && seen.Restore.State == "completed"
	})
	assert.Equal(t, s.restore.Status.Plan.Version, seen.Restore.Version)
	assert.Empty(t, seen.LockUID)
	same, err := s.sim.SameKeys(s.cluster, s.into)
	require.NoError(t, err)
	assert.True(t, same)
	assert.True(t, s.operate(contract.FDBRestoreStart).Done)
	assert.Len(t, s.told("start"), 1, "a restore that has ended is not started again")
	for _, task := range contract.FDBRestoreTasks() {
		found, err := s.check(task, time.Now().Add(time.Hour))
		require.NoError(t, err)
		assert.Zero(t, found, task)
	}
}

func TestRestoreThatMustNotBeStarted(t *testing.T) {
	for title, tt := range map[string]struct {
		prepare func(*restoreScene, *contract.FDBCommand)
		class   contract.FDBClass // empty: stale, without a word
	}{
		"a locked database": {func(s *restoreScene, _ *contract.FDBCommand) {
			require.NoError(s.t, s.sim.Lock(s.into, "00ff"))
		}, contract.FDBClassLocked},
		"another restore runs there": {func(s *restoreScene, _ *contract.FDBCommand) {
			s.runsInto("other", state.RestoreRunning)
		}, contract.FDBClassLocked},
		"no container": {func(*restoreScene, *contract.FDBCommand) {}, contract.FDBClassMissing},
		"no tools":     {func(s *restoreScene, _ *contract.FDBCommand) { s.target.Status.RunningVersion = "9.9.9" }, contract.FDBClassToolMissing},
		"a database that does not answer": {func(s *restoreScene, _ *contract.FDBCommand) {
			require.NoError(s.t, s.sim.SetFault(s.into, "fdbrestore status", fdbsim.Fault{
				Fail: true, ExitCode: 1, Stderr: "ERROR: Operation timed out",
			}))
		}, contract.FDBClassTimeout},
		"another generation": {func(_ *restoreScene, c *contract.FDBCommand) { c.Generation++ }, ""},
		"another tag":        {func(_ *restoreScene, c *contract.FDBCommand) { c.Tag = "other" }, ""},
		"another place":      {func(s *restoreScene, c *contract.FDBCommand) { c.URL = s.url("-other") }, ""},
		"no plan":            {func(s *restoreScene, _ *contract.FDBCommand) { s.restore.Status.Plan = nil }, ""},
		"a plan with another's tag": {func(s *restoreScene, c *contract.FDBCommand) {
			s.restore.Status.Plan.Tag, c.Tag = "other", "other"
		}, ""},
		"another database": {func(s *restoreScene, _ *contract.FDBCommand) { s.restore.Status.Plan.Destination = "copy:old" }, ""},
		"stopped": {func(s *restoreScene, _ *contract.FDBCommand) {
			s.restore.Spec.RestoreState = fdbv1alpha1.RestoreStateStopped
		}, ""},
		"being deleted": {func(s *restoreScene, _ *contract.FDBCommand) {
			s.restore.DeletionTimestamp, s.restore.Finalizers = new(metav1.Now()), []string{fdbv1alpha1.FinalizerAbort}
		}, ""},
		"an unknown operation": {func(_ *restoreScene, c *contract.FDBCommand) { c.Operation = "more" }, ""},
	} {
		t.Run(title, func(t *testing.T) {
			s := newRestoreScene(t)
			s.planned(7)
			command := contract.FDBCommand{
				Ref: s.restoreRef(), Operation: contract.FDBRestoreStart, Generation: fdbGen, Tag: s.tag(), URL: s.url(stamp),
			}
			tt.prepare(s, &command)
			outcome := s.order(command)
			assert.False(t, outcome.Done)
			assert.Equal(t, tt.class == "", outcome.Stale)
			if tt.class != "" {
				require.NotNil(t, outcome.Failure)
				assert.Equal(t, tt.class, outcome.Failure.Class, outcome.Failure.Message)
			}
			if tt.class != contract.FDBClassMissing {
				assert.Empty(t, s.told("start"))
			}
			c, err := s.sim.State(s.into)
			require.NoError(t, err)
			assert.Nil(t, c.Restore(s.tag()))
		})
	}
}

func TestRestoreIntoADatabaseWithData(t *testing.T) {
	t.Parallel()
	s := newRestoreScene(t)
	version := s.taken(map[string]string{"a": "1", "x": "2"})
	require.NoError(t, s.sim.Set(s.into, map[string]string{"b;": "here"}))
	assert.Equal(t, "its keys", s.look(true).NotEmpty)
	s.planned(version)
	outcome := s.operate(contract.FDBRestoreStart)
	require.NotNil(t, outcome.Failure)
	assert.Equal(t, contract.FDBClassNotEmpty, outcome.Failure.Class)

	s.restore.Spec.KeyRanges = []fdbv1alpha1.KeyRange{{Start: "c", End: "d"}, {Start: `b;`, End: `b<`}}
	assert.Equal(t, "b; b<", s.look(true).NotEmpty)
	s.restore.Spec.KeyRanges = []fdbv1alpha1.KeyRange{{Start: "c", End: "z"}, {Start: `-"`, End: `-;`}}
	seen := s.look(true)
	assert.Empty(t, seen.NotEmpty, "%+v", seen.Unresolved)
	assert.NotNil(t, seen.Point)
	outcome = s.operate(contract.FDBRestoreStart)
	assert.True(t, outcome.Done, "%+v", outcome.Failure)
	assert.True(t, outcome.NoAgents)
	c, err := s.sim.State(s.into)
	require.NoError(t, err)
	assert.Equal(t, []state.Range{
		{Begin: []byte("c"), End: []byte("z")}, {Begin: []byte(`-"`), End: []byte("-;")},
	}, c.Restore(s.tag()).Ranges)
}

func TestRestoreIsAbortedOnce(t *testing.T) {
	t.Parallel()
	s := newRestoreScene(t)
	s.planned(7)
	assert.True(t, s.operate(contract.FDBRestoreAbort).Done)
	assert.Empty(t, s.told("abort"), "it was never started")

	s.runsInto("other", state.RestoreCompleted)
	s.runsInto(s.tag(), state.RestoreRunning)
	s.restore.Spec.RestoreState = fdbv1alpha1.RestoreStateStopped
	s.restore.Generation++
	for range 2 {
		assert.True(t, s.operate(contract.FDBRestoreAbort).Done, "whatever the generation")
	}
	assert.Len(t, s.told("abort"), 1)
	seen := s.look(false)
	assert.Equal(t, "aborted", seen.Restore.State)
	assert.Empty(t, seen.LockUID)
	found, err := s.check(contract.FDBRestoreTaskVersion, time.Now())
	require.NoError(t, err)
	assert.Contains(t, found.Errors.Cluster[0], "is Aborted, not Completed")
}

func TestRestoreCommandThatIsKilledIsDoneOnce(t *testing.T) {
	for _, operation := range []string{"start", "abort"} {
		for title, after := range map[string]bool{"before its effect": false, "after its effect": true} {
			t.Run(operation+" "+title, func(t *testing.T) {
				s := newRestoreScene(t)
				wire := contract.FDBRestoreAbort
				if operation == "start" {
					s.planned(s.taken(map[string]string{"a": "1"}))
					wire = contract.FDBRestoreStart
				} else {
					s.planned(7)
					s.runsInto(s.tag(), state.RestoreRunning)
				}
				require.NoError(t, s.sim.SetFault(s.into, "fdbrestore "+operation, fdbsim.Fault{Hang: true, After: after, Times: 1}))
				killed := make(chan error, 1)
				go func() { killed <- s.killRestore(operation, after) }()
				outcome := s.operate(wire)
				require.NoError(t, <-killed)
				assert.Equal(t, after, outcome.Done, "%+v", outcome.Failure)
				if !after {
					require.NotNil(t, outcome.Failure)
					assert.Equal(t, contract.FDBClassTimeout, outcome.Failure.Class)
				}
				outcome = s.operate(wire)
				assert.True(t, outcome.Done, "%+v", outcome.Failure)
				assert.Len(t, s.told(operation), map[bool]int{true: 1, false: 2}[after])
			})
		}
	}
}

// killRestore kills the first run of a sub-command of fdbrestore, once the fault has met it and it has had its effect, if it is to.
func (s *restoreScene) killRestore(sub string, after bool) error {
	for range int(fdbPatience / pollInterval) {
		calls, err := s.sim.CallsOf(s.into, "fdbrestore", sub)
		if err != nil {
			return err
		}
		c, err := s.sim.State(s.into)
		if err != nil {
			return err
		}
		faults := 1
		if err := s.sim.Control(s.into, func(c *fdbsim.Control) { faults = len(c.Faults) }); err != nil {
			return err
		}
		made := c.Restore(s.tag())
		effect := made != nil && (sub == "start" || made.State == state.RestoreAborted)
		if len(calls) > 0 && faults == 0 && (!after || effect) {
			return syscall.Kill(calls[0].PID, syscall.SIGKILL)
		}
		pause()
	}
	return errors.New("the command was not run")
}

func TestAgentsOfTheDestinationAreSeen(t *testing.T) {
	t.Parallel()
	s := newRestoreScene(t)
	seen := s.look(false)
	assert.Zero(t, seen.Agents)
	assert.False(t, seen.AgentsPaused)
	s.restoreAgent()
	s.lookUntil("one agent", func(seen contract.FDBRestoreInspection) bool { return seen.Agents == 1 })
	require.NoError(t, s.sim.Change(s.into, func(c *state.Cluster) error {
		c.Paused = true
		return nil
	}))
	s.lookUntil("paused", func(seen contract.FDBRestoreInspection) bool { return seen.AgentsPaused })
}

func TestDestinationThatCannotBeAsked(t *testing.T) {
	for title, tt := range map[string]struct {
		prepare func(*restoreScene)
		class   contract.FDBClass
	}{
		"no cluster": {func(s *restoreScene) { s.target = nil }, contract.FDBClassClusterFile},
		"TLS of nobody": {func(s *restoreScene) {
			s.target.Status.ConnectionString = "copy:def456@127.0.0.1:4500:tls"
		}, contract.FDBClassOther},
		"unavailable": {func(s *restoreScene) {
			require.NoError(s.t, s.sim.SetFault(s.into, "fdbcli status json", fdbsim.Fault{
				Fail: true, Stdout: `{"client":{"database_status":{"available":false}},"cluster":{"layers":{"_valid":false}}}`,
			}))
		}, contract.FDBClassTimeout},
	} {
		t.Run(title, func(t *testing.T) {
			s := newRestoreScene(t)
			tt.prepare(s)
			seen := s.look(true)
			require.NotNil(t, seen.Failure)
			assert.Equal(t, tt.class, seen.Failure.Class, seen.Failure.Message)
			seen.Failure = nil
			assert.Zero(t, seen)

			s.planned(7)
			_, err := s.check(contract.FDBRestoreTaskUnlocked, time.Now().Add(time.Hour))
			require.ErrorContains(t, err, contract.ErrorNotYet)
			found, err := s.check(contract.FDBRestoreTaskUnlocked, time.Now().Add(-time.Second))
			require.NoError(t, err)
			assert.NotEmpty(t, found.Errors.Cluster, "it has waited long enough")
		})
	}
}

func TestRestoreIsStartedUnderTheOperatorsLock(t *testing.T) {
	t.Parallel()
	s := newRestoreScene(t)
	s.planned(7)
	s.runsInto(s.tag(), state.RestoreRunning)
	held := &lock{}
	s.locker = held
	assert.True(t, s.operate(contract.FDBRestoreStart).Done)
	assert.Zero(t, held.held, "nothing is locked for what is done already")
	assert.True(t, s.operate(contract.FDBRestoreAbort).Done)
	assert.Equal(t, 1, held.held)
}
