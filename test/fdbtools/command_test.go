package fdbtools_test

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/test/fdbsim/state"
	"holdfast.dev/holdfast/workflows/contract"
)

const stamp = "-2026-11-21T10-00-00Z"

// fdbChange is a command with the state in which it is due, and the one that it brings about.
type fdbChange struct {
	operation contract.FDBOperation
	prepare   func(*scene)
	brought   func(*scene) bool
}

var fdbChanges = []fdbChange{
	{
		contract.FDBStart, func(*scene) {},
		func(s *scene) bool {
			_, b := s.state()
			return b != nil && b.URL == s.url(stamp) && b.State == state.Submitted
		},
	},
	{
		contract.FDBModify, func(s *scene) { s.runs(state.Running, s.url(stamp), 7) },
		func(s *scene) bool { _, b := s.state(); return b.IntervalSeconds == 3600 },
	},
	{
		contract.FDBAbort, func(s *scene) { s.runs(state.Running, s.url(stamp), 3600) },
		func(s *scene) bool { _, b := s.state(); return b.State == state.Aborted },
	},
	{contract.FDBPause, func(*scene) {}, func(s *scene) bool { c, _ := s.state(); return c.Paused }},
	{
		contract.FDBResume, func(s *scene) { s.change(func(c *fdbsimCluster) { c.Paused = true }) },
		func(s *scene) bool { c, _ := s.state(); return !c.Paused },
	},
}

func TestCommandIsRunOnceAndDoneWhenRepeated(t *testing.T) {
	for _, c := range fdbChanges {
		t.Run(string(c.operation), func(t *testing.T) {
			s := newScene(t)
			c.prepare(s)
			require.False(t, c.brought(s))
			for range 3 {
				outcome := s.command(c.operation, s.url(stamp))
				assert.True(t, outcome.Done, "%+v", outcome)
				assert.Nil(t, outcome.Failure)
			}
			assert.True(t, c.brought(s))
			assert.Len(t, s.calls(string(c.operation)), 1)
		})
	}
}

// A command that is killed before its effect is not done and can be repeated; killed after it, it is done.
func TestCommandThatIsKilledIsDoneOnce(t *testing.T) {
	for _, c := range fdbChanges {
		for name, after := range map[string]bool{"before its effect": false, "after its effect": true} {
			t.Run(string(c.operation)+" "+name, func(t *testing.T) {
				s := newScene(t)
				c.prepare(s)
				fault := fdbsim.Fault{Hang: true, After: after, Times: 1}
				require.NoError(t, s.sim.SetFault(s.cluster, "fdbbackup "+string(c.operation), fault))
				killed := make(chan error, 1)
				go func() {
					killed <- s.killOnce(string(c.operation), func() bool { return s.faultTaken() && (!after || c.brought(s)) })
				}()

				outcome := s.command(c.operation, s.url(stamp))
				require.NoError(t, <-killed)
				assert.Equal(t, after, outcome.Done, "%+v", outcome)
				assert.Equal(t, after, c.brought(s))
				if !after {
					require.NotNil(t, outcome.Failure)
					assert.Equal(t, contract.FDBClassTimeout, outcome.Failure.Class)
				}

				outcome = s.command(c.operation, s.url(stamp))
				assert.True(t, outcome.Done, "%+v", outcome)
				assert.True(t, c.brought(s))
				wanted := 2
				if after {
					wanted = 1
				}
				assert.Len(t, s.calls(string(c.operation)), wanted)
			})
		}
	}
}

// faultTaken reports whether the fault has met a command: one that is killed before would leave it to the next.
func (s *scene) faultTaken() bool {
	taken := false
	err := s.sim.Control(s.cluster, func(c *fdbsim.Control) { taken = len(c.Faults) == 0 })
	return err == nil && taken
}

// killOnce kills the first run of a sub-command once ready says so.
func (s *scene) killOnce(sub string, ready func() bool) error {
	for range int(fdbPatience / pollInterval) {
		calls, err := s.sim.CallsOf(s.cluster, "fdbbackup", sub)
		if err != nil {
			return err
		}
		if len(calls) > 0 && ready() {
			return syscall.Kill(calls[0].PID, syscall.SIGKILL)
		}
		pause()
	}
	return errors.New("the command was not run")
}

func TestStartTellsTheToolWhatTheSpecSays(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	outcome := s.command(contract.FDBStart, s.url(stamp))
	assert.Equal(t, contract.FDBOutcome{Done: true, NoAgents: true}, outcome, "no agent runs")
	args := s.calls("start")[0].Args
	assert.Equal(t, []string{"start", "-d", s.url(stamp), "-t", "t1", "-s", "3600", "-z", "-C"}, args[:len(args)-1])
	assert.NotContains(t, args, fdbSecret)
}

func TestStartFindsAnAccountWhoseNameIsOnlyInTheFile(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.secret.Data["credentials"] = []byte(`{"accounts":{"@127.0.0.1":{"api_key":"lab","secret":"` + fdbSecret + `"}}}`)
	url := strings.Replace(s.url(stamp), "//lab@", "//@", 1)
	assert.True(t, s.command(contract.FDBStart, url).Done)
	_, b := s.state()
	assert.Equal(t, url, b.URL)
	assert.Equal(t, url, s.inspect(true).Containers[0].URL)
}

func TestStartInATimeThatIsPastForTheDatabaseSaysWhenThatEnds(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.change(func(c *fdbsimCluster) { c.LastStart = "2101-02-03-04-05-06.789012" })
	outcome := s.command(contract.FDBStart, s.url(stamp))
	require.NotNil(t, outcome.Failure)
	assert.Equal(t, contract.FDBClassFuture, outcome.Failure.Class, outcome.Failure.Message)
	assert.Contains(t, outcome.Failure.Message, "It ends by itself at 2101-02-03T04:05:07Z")
}

func TestStartIsRefusedWhereItCouldNotBeRestored(t *testing.T) {
	cases := map[string]struct {
		keys  []string
		class contract.FDBClass
	}{
		"in a new place":                        {nil, ""},
		"where an earlier start got no further": {[]string{"backups/lab"}, ""},
		"where a backup has written": {
			[]string{
				"backups/lab", "data/lab/logs/0000/0000/log,1,20000001,0123456789abcdef0123456789abcdef,1048576",
			}, contract.FDBClassUsed,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.store.put(c.keys...)
			outcome := s.command(contract.FDBStart, s.url(""))
			if c.class == "" {
				assert.True(t, outcome.Done, "%+v", outcome)
				return
			}
			assert.True(t, outcome.Stale)
			require.NotNil(t, outcome.Failure)
			assert.Equal(t, c.class, outcome.Failure.Class)
			assert.Contains(t, outcome.Failure.Message, s.url(""))
			assert.Empty(t, s.calls("start"))
		})
	}
}

func TestStartIntoAStoreThatRefusesIsNotTried(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.store.deny = true
	outcome := s.command(contract.FDBStart, s.url(stamp))
	assert.False(t, outcome.Done)
	require.NotNil(t, outcome.Failure)
	assert.Equal(t, contract.FDBClassDenied, outcome.Failure.Class, outcome.Failure.Message)
	assert.Empty(t, s.calls("start"))
}

func TestCommandThatHasBecomeStaleIsNotRun(t *testing.T) {
	elsewhere := func(s *scene) { s.runs(state.Running, s.url("-of-somebody-else"), 7) }
	cases := map[string]struct {
		operation contract.FDBOperation
		prepare   func(*scene)
	}{
		"start: the spec has changed":          {contract.FDBStart, func(s *scene) { s.object.Generation++ }},
		"start: another backup is on the tag":  {contract.FDBStart, elsewhere},
		"start: the object is being deleted":   {contract.FDBStart, deleted},
		"start: the object is gone":            {contract.FDBStart, func(s *scene) { s.object.UID = "uid-2" }},
		"start: the Secret is gone":            {contract.FDBStart, func(s *scene) { s.secret = nil }},
		"start: the destination became wrong":  {contract.FDBStart, func(s *scene) { s.object.Spec.Destination.Account = "x" }},
		"start: into a file":                   {contract.FDBStart, func(*scene) {}},
		"modify: the spec has changed":         {contract.FDBModify, func(s *scene) { s.object.Generation++ }},
		"modify: another backup is on the tag": {contract.FDBModify, elsewhere},
		"modify: it is only submitted":         {contract.FDBModify, func(s *scene) { s.runs(state.Submitted, s.url(stamp), 7) }},
		"modify: nothing runs":                 {contract.FDBModify, func(*scene) {}},
		"abort: another backup is on the tag":  {contract.FDBAbort, elsewhere},
		"abort: the object is gone":            {contract.FDBAbort, func(s *scene) { s.object.UID = "uid-2" }},
		"pause: the spec has changed":          {contract.FDBPause, func(s *scene) { s.object.Generation++ }},
		"pause: the object is being deleted":   {contract.FDBPause, deleted},
		"resume: the spec has changed":         {contract.FDBResume, func(s *scene) { s.object.Generation++ }},
		"an operation that nobody knows":       {"expire", func(*scene) {}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			c.prepare(s)
			url := s.url(stamp)
			if name == "start: into a file" {
				url = "file:///etc"
			}
			outcome := s.command(c.operation, url)
			assert.False(t, outcome.Done)
			assert.True(t, outcome.Stale || outcome.Failure != nil, "%+v", outcome)
			calls, err := s.sim.Calls(s.cluster)
			require.NoError(t, err)
			for _, call := range calls {
				assert.Equal(t, "status", call.Args[0], "nothing but looking")
			}
		})
	}
}

func deleted(s *scene) {
	s.object.Finalizers = []string{"fdb.holdfast.dev/stop"}
	now := metav1.Now()
	s.object.DeletionTimestamp = &now
}

func TestBackupIsAbortedWhateverTheSpecSays(t *testing.T) {
	for name, change := range map[string]func(*scene){
		"the spec has changed":      func(s *scene) { s.object.Generation++ },
		"the object is deleted":     deleted,
		"the Secret is gone":        func(s *scene) { s.secret = nil },
		"the destination is wrong":  func(s *scene) { s.object.Spec.Destination.Account = "nobody" },
		"the TLS files are nowhere": func(s *scene) { s.object.Spec.PodTemplateSpec = tlsTemplate("gone") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.runs(state.RunningDifferentially, s.url(stamp), 3600)
			change(s)
			assert.Equal(t, contract.FDBOutcome{Done: true}, s.command(contract.FDBAbort, s.url(stamp)))
			_, b := s.state()
			assert.Equal(t, state.Aborted, b.State)
		})
	}
}

func TestModifyNamesTheURLOnlyWhereItDiffers(t *testing.T) {
	for name, c := range map[string]struct {
		more string
		want []string
	}{
		"only the period":   {"", []string{"modify", "-t", "t1", "-s", "3600", "-C"}},
		"the URL's as well": {"&cto=5", []string{"modify", "-t", "t1", "-s", "3600", "-d", "", "-C"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.store.put("backups/lab" + stamp)
			s.runs(state.RunningDifferentially, s.url(stamp), 7)
			wanted, err := fdb.ParseURL(s.url(stamp) + c.more)
			require.NoError(t, err)
			if at := slices.Index(c.want, ""); at >= 0 {
				c.want[at] = wanted.URL()
			}
			outcome := s.command(contract.FDBModify, wanted.URL())
			assert.True(t, outcome.Done, "%+v", outcome)
			args := s.calls("modify")[0].Args
			assert.Equal(t, c.want, args[:len(args)-1])
			assert.True(t, s.command(contract.FDBModify, wanted.URL()).Done)
			assert.Len(t, s.calls("modify"), 1)
		})
	}
}

func TestClusterThatCannotBeAskedIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*scene)
		class  contract.FDBClass
	}{
		"a cluster that is gone":     {func(s *scene) { s.kind = nil }, contract.FDBClassClusterFile},
		"a version without tools":    {func(s *scene) { s.kind.Status.RunningVersion = "7.1.63" }, contract.FDBClassToolMissing},
		"an answer that is none":     {func(s *scene) { s.fail("fdbbackup status", 0, "garbage "+fdbSecret) }, contract.FDBClassOther},
		"an answer with the secret":  {func(s *scene) { s.fail("fdbbackup status", 1, "ERROR: "+fdbSecret) }, contract.FDBClassOther},
		"a cluster that wants TLS":   {needsTLS, contract.FDBClassOther},
		"a way that nobody knows of": {func(s *scene) { s.object.Spec.BackupType = "disk" }, contract.FDBClassOther},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			c.change(s)
			for _, trouble := range []*contract.FDBFailure{s.inspect(true).Failure, s.command(contract.FDBAbort, s.url(stamp)).Failure} {
				require.NotNil(t, trouble)
				assert.Equal(t, c.class, trouble.Class, trouble.Message)
				assert.NotContains(t, trouble.Message, fdbSecret)
			}
		})
	}
}

func (s *scene) fail(command string, exit int, text string) {
	s.t.Helper()
	fault := fdbsim.Fault{Fail: true, ExitCode: exit, Stdout: text, Stderr: text}
	if exit == 0 {
		fault.Stderr = ""
	}
	require.NoError(s.t, s.sim.SetFault(s.cluster, command, fault))
}
