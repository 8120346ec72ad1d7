package fdbtools_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/fdbsim/state"
	"holdfast.dev/holdfast/workflows/contract"
)

const nextStamp = "-2026-11-22T10-00-00Z"

// restart aborts what runs on tag t1, because the spec asks for another backup, on this tag.
func (s *scene) restart(tag string) contract.FDBOutcome {
	s.t.Helper()
	s.runs(state.RunningDifferentially, s.url(stamp), 3600)
	s.store.put()
	s.object.Spec.Tag = tag
	return s.run(contract.FDBCommand{
		Ref: s.ref(), Operation: contract.FDBAbort, Generation: fdbGen, Tag: "t1", URL: s.url(stamp), Next: s.url(nextStamp),
	})
}

func TestBackupIsAbortedForOneThatTheToolAccepts(t *testing.T) {
	for name, tag := range map[string]string{"on its tag": "t1", "on another tag": "t2"} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.change(func(c *fdbsimCluster) { c.LastStart = "2001-02-03-04-05-06.789012" })
			outcome := s.restart(tag)
			assert.Equal(t, contract.FDBOutcome{Done: true}, outcome)
			assert.Len(t, s.calls("modify"), 1)
			c, b := s.state()
			assert.Equal(t, state.Aborted, b.State)
			assert.Equal(t, s.url(stamp), b.URL, "nothing else was changed")
			assert.Len(t, c.Backups, 1, "nothing was started")
			args := s.calls("start")[0].Args
			assert.Equal(t, []string{"start", "-d", s.url(nextStamp), "-t", tag, "-s", "3600", "-z", "-n", "-C"}, args[:len(args)-1])
		})
	}
}

func TestBackupIsNotAbortedForOneThatWouldNotStart(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*scene)
		class   contract.FDBClass
		says    string
	}{
		"an argument that the tool does not know": {
			func(s *scene) { s.fail("fdbbackup dry start", 1, "ERROR: unknown option `--new' "+fdbSecret) }, contract.FDBClassOther,
			"unknown option `--new' ***",
		},
		"a place that can only be read": {
			func(s *scene) { s.store.closed = true }, contract.FDBClassDenied, "the object store refuses the request",
		},
		"a store that denies everything": {func(s *scene) { s.store.deny = true }, contract.FDBClassDenied, "refuses the request"},
		"a last start in the future": {
			func(s *scene) { s.change(func(c *fdbsimCluster) { c.LastStart = "2101-02-03-04-05-06.789012" }) },
			contract.FDBClassFuture, "It ends by itself at 2101-02-03T04:05:07Z",
		},
		"a place with data": {
			func(s *scene) {
				s.store.put("backups/lab"+nextStamp,
					"data/lab"+nextStamp+"/logs/0000/0000/log,1,20000001,0123456789abcdef0123456789abcdef,1048576")
			}, contract.FDBClassUsed, "already",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			c.prepare(s)
			outcome := s.restart("t1")
			assert.False(t, outcome.Done)
			require.NotNil(t, outcome.Failure)
			assert.Equal(t, c.class, outcome.Failure.Class, outcome.Failure.Message)
			assert.Contains(t, outcome.Failure.Message, c.says)
			assert.NotContains(t, outcome.Failure.Message, fdbSecret)
			_, b := s.state()
			assert.Equal(t, state.RunningDifferentially, b.State)
			assert.Empty(t, s.calls("abort"))
			if name != "a store that denies everything" && name != "a place with data" { // these are found before
				assert.Contains(t, outcome.Failure.Message, "the running backup is not aborted, because ")
			}
		})
	}
}
