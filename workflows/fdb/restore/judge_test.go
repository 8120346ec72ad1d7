package restore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/fdb/requests"
	fdbrestore "holdfast.dev/holdfast/workflows/fdb/restore"
)

func TestJudge(t *testing.T) {
	const state, spec = "IncorrectRestoreState", "MisconfiguredRestore"
	failing := func(class contract.FDBClass) *fdbrestore.Attempt {
		return &fdbrestore.Attempt{Operation: contract.FDBRestoreStart, Failure: &contract.FDBFailure{Class: class, Message: "the tool's words"}}
	}
	seen := func(change func(*contract.FDBRestoreInspection)) func(*fdbrestore.Situation) {
		return func(s *fdbrestore.Situation) { change(&s.Seen) }
	}
	locked := seen(func(i *contract.FDBRestoreInspection) { i.LockUID = "77" })
	full := seen(func(i *contract.FDBRestoreInspection) { i.NotEmpty = "'a'-'b'" })
	alone := seen(func(i *contract.FDBRestoreInspection) { i.Agents = 0 })
	cannot := func(class contract.FDBClass) func(*fdbrestore.Situation) {
		return seen(func(i *contract.FDBRestoreInspection) {
			i.Point, i.Unresolved = nil, &contract.FDBFailure{Class: class, Message: "the tool's words"}
		})
	}
	trouble := func(class contract.FDBClass) func(*fdbrestore.Situation) {
		return seen(func(i *contract.FDBRestoreInspection) {
			i.Failure = &contract.FDBFailure{Class: class, Message: "words"}
		})
	}
	stuck := func(s *fdbrestore.Situation) { s.Memory.ProgressAt = s.Now.Add(-10 * time.Minute).Unix() }
	erring := seen(func(i *contract.FDBRestoreInspection) { i.Restore.LastError = "disk full" })
	busy := func(s *fdbrestore.Situation) { s.Busy = "west/team/nightly expires" }
	problem := func(s *fdbrestore.Situation) {
		s.View.Problem = &contract.FDBCondition{Type: spec, Reason: "SecretMissing", Message: "no Secret"}
	}
	tests := map[string]struct {
		s            fdbrestore.Situation
		failed       *fdbrestore.Attempt
		kind, reason string
		says         string
	}{
		"about to be started":                {with(planned), nil, state, "NotStarted", "about to be started"},
		"the spec is wrong, whatever else":   {with(problem, locked, paused), nil, spec, "SecretMissing", "no Secret"},
		"another database, whatever else":    {with(planned, elsewhere, locked), nil, state, "DestinationChanged", "lab:2"},
		"it does not answer":                 {with(planned, silent), nil, state, "ClusterUnreachable", "no answer"},
		"no tools":                           {with(trouble(contract.FDBClassToolMissing)), nil, spec, "ToolsMissing", "words"},
		"no worker inspects":                 {with(trouble(contract.FDBClassNoWorker)), nil, state, "NoWorker", "words"},
		"a bad cluster file":                 {with(trouble(contract.FDBClassClusterFile)), nil, spec, "ClusterNotReady", "words"},
		"it cannot be read":                  {with(trouble(contract.FDBClassOther)), nil, state, "StateUnknown", "cannot be read: words"},
		"no cluster":                         {with(gone), nil, spec, "ClusterMissing", "no cluster"},
		"its lock is not known":              {with(seen(func(i *contract.FDBRestoreInspection) { i.LockKnown = false })), nil, state, "StateUnknown", "whether it is locked"},
		"locked, before paused":              {with(planned, locked, paused, full), nil, state, "DatabaseLocked", "another restore runs there, or an operator holds the lock"},
		"paused, before agents and data":     {with(planned, paused, full, alone), nil, state, "AgentsPaused", "all backup agents of the FoundationDB cluster are paused, as these backups request: team/nightly"},
		"no agents, before data":             {with(alone, full), nil, state, "NoAgents", "create a FoundationDBBackup of that cluster"},
		"not empty, before what is resolved": {with(full, cannot(contract.FDBClassNotRestorable)), nil, state, "DestinationNotEmpty", "holds data in 'a'-'b'"},
		"a version that cannot be restored":  {with(cannot(contract.FDBClassNotRestorable), busy), nil, spec, "NotRestorable", "the tool's words"},
		"no data":                            {with(cannot(contract.FDBClassMissing)), nil, state, "DataMissing", "the tool's words"},
		"a bad URL":                          {with(cannot(contract.FDBClassBadURL)), nil, spec, "URLInvalid", "the tool's words"},
		"the store does not answer":          {with(cannot(contract.FDBClassStore)), nil, state, "ToolFailing", "the tool's words"},
		"nothing to restore":                 {with(seen(func(i *contract.FDBRestoreInspection) { i.Point = nil })), nil, spec, "NotRestorable", "nothing of the backup"},
		"a plan needs no other":              {with(planned, cannot(contract.FDBClassNotRestorable)), nil, state, "NotStarted", ""},
		"others have the data":               {with(busy), nil, state, "DataBusy", "west/team/nightly expires"},

		"a start into data":               {with(planned), failing(contract.FDBClassNotEmpty), state, "DestinationNotEmpty", "never writes over data"},
		"a start into a lock":             {with(planned), failing(contract.FDBClassLocked), state, "DatabaseLocked", "the tool's words"},
		"a start that was cut":            {with(planned), failing(contract.FDBClassTimeout), state, "ToolFailing", "fdbrestore start has failed and will be retried"},
		"a version that is refused":       {with(planned), failing(contract.FDBClassNotRestorable), spec, "NotRestorable", "the tool's words"},
		"data that are gone":              {with(planned), failing(contract.FDBClassMissing), state, "DataMissing", "the tool's words"},
		"no tools for a start":            {with(planned), failing(contract.FDBClassToolMissing), spec, "ToolsMissing", "the tool's words"},
		"no worker starts it":             {with(planned), failing(contract.FDBClassNoWorker), state, "NoWorker", "the tool's words"},
		"a cut start that had its effect": {with(in("queued")), failing(contract.FDBClassTimeout), state, "Restoring", "Queued"},

		"it runs":                        {with(in("running")), nil, state, "Restoring", "Running, 25 percent done"},
		"the Secret goes while it runs":  {with(in("running"), problem), nil, state, "Restoring", "Running"},
		"paused while it runs":           {with(in("running"), paused), nil, state, "AgentsPaused", "team/nightly"},
		"an error is not shown at once":  {with(in("running"), erring), nil, state, "Restoring", ""},
		"nor that it stands still":       {with(in("running"), stuck), nil, state, "Restoring", ""},
		"but both":                       {with(in("running"), erring, stuck), nil, state, "NoProgress", "disk full. FoundationDB keeps retrying. restoreState: Stopped aborts it, and leaves partial data"},
		"it stands still without agents": {with(in("running"), stuck, alone), nil, state, "NoAgents", "no backup agents run"},
		"unreachable while it runs":      {with(in("running"), shown("running"), silent), nil, state, "ClusterUnreachable", "no answer"},
		"another database meanwhile":     {with(in("running"), shown("running"), elsewhere), nil, state, "DestinationChanged", "nothing more is done"},
		"it was started, and is unknown": {with(planned, shown("running")), nil, state, "StateUnknown", "not started again"},
		"its end is checked":             {with(in("completed")), nil, state, "Restoring", "its end is being checked"},
		"all is well":                    {with(in("completed"), ended("Completed")), nil, "", "", ""},
		"the check has failed":           {with(in("completed"), ended("Completed", "Failed")), nil, state, "FinalizationFailing", "it is locked"},
		"it had failed":                  {with(planned, shown("failed")), nil, state, "FinalizationFailing", "see status.finalization"},

		"stopped":                      {with(in("aborted"), stopped), nil, state, "Aborted", "as restoreState says: the destination holds partial data"},
		"aborted by somebody":          {with(in("aborted")), nil, state, "Aborted", "by somebody other than Holdfast"},
		"stopped before the start":     {with(planned, stopped), nil, "", "", ""},
		"to be stopped":                {with(in("running"), stopped), nil, state, "NotAborted", "Running and is to be aborted"},
		"an abort that fails":          {with(in("running"), stopped), &fdbrestore.Attempt{Operation: contract.FDBRestoreAbort, Failure: &contract.FDBFailure{Message: "x"}}, state, "ToolFailing", "fdbrestore abort has failed"},
		"no abort in another database": {with(in("running"), shown("running"), stopped, elsewhere), nil, state, "DestinationChanged", "nothing more is done"},
		"the end is not known":         {with(planned, stopped, silent), nil, state, "ClusterUnreachable", "no answer"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			conditions := fdbrestore.Judge(test.s, test.failed)
			if test.reason == "" {
				require.Empty(t, conditions)
				return
			}
			require.Len(t, conditions, 1)
			assert.Equal(t, test.kind, conditions[0].Type)
			assert.Equal(t, test.reason, conditions[0].Reason)
			assert.Contains(t, conditions[0].Message, test.says)
		})
	}
}

func TestNotice(t *testing.T) {
	s := with(in("running"), func(s *fdbrestore.Situation) { s.Memory.DoubtUntil = noon.Unix() + 60 })
	inspected := func(after time.Duration) contract.FDBRestoreMemory {
		s.Now = s.Now.Add(after)
		s.Memory = fdbrestore.Notice(s)
		return s.Memory
	}
	assert.Equal(t, noon.Unix(), inspected(0).ProgressAt)
	assert.Zero(t, s.Memory.DoubtUntil)
	assert.Equal(t, noon.Unix(), inspected(time.Minute).ProgressAt, "it makes no progress")
	s.Seen.Restore.BlocksDone++
	assert.Equal(t, s.Now.Unix()+60, inspected(time.Minute).ProgressAt, "it moves")
	at := s.Memory.ProgressAt
	saved := s.Seen
	silent(&s)
	assert.Equal(t, at, inspected(time.Minute).ProgressAt, "it is not known")
	s.Seen = saved
	paused(&s)
	assert.Zero(t, inspected(time.Minute).ProgressAt, "a pause is no lack of progress")
}

func TestReleaseDue(t *testing.T) {
	const limit = 10 * time.Minute
	since := func(ago time.Duration) func(*fdbrestore.Situation) {
		return func(s *fdbrestore.Situation) { s.Memory.UnreachableSince = s.Now.Add(-ago).Unix() }
	}
	ending := func(s *fdbrestore.Situation) { s.View.NamespaceEnding = true }
	failed := &fdbrestore.Attempt{Operation: contract.FDBRestoreAbort, Failure: &contract.FDBFailure{Message: "refused"}}
	tests := map[string]struct {
		s      fdbrestore.Situation
		failed *fdbrestore.Attempt
		due    bool
		says   string
	}{
		"never planned":                     {s: with(), due: true},
		"never planned, and no cluster":     {s: with(gone), due: true},
		"never started":                     {s: with(planned), due: true},
		"it runs":                           {s: with(in("running"))},
		"aborted":                           {s: with(in("aborted"), shown("running")), due: true, says: "the restore on tag lab-u was aborted: the destination holds partial data"},
		"completed":                         {s: with(in("completed")), due: true},
		"it had ended":                      {s: with(planned, shown("aborted"), gone), due: true},
		"its end was being checked":         {s: with(planned, shown("finalizing"), gone), due: true},
		"the database knows of nothing":     {s: with(planned, shown("running")), due: true, says: "may hold partial data"},
		"no cluster":                        {s: with(in("running"), shown("running"), gone), due: true, says: "its FoundationDBCluster is gone"},
		"another database":                  {s: with(in("running"), shown("running"), elsewhere), due: true, says: "another database"},
		"planned, and it may be started":    {s: with(planned, silent)},
		"it does not answer":                {s: with(in("running"), shown("running"), silent, since(limit-time.Second))},
		"for long":                          {s: with(in("running"), shown("running"), silent, since(limit)), due: true, says: "no answer. If it was started"},
		"an abort fails":                    {s: with(in("running"), since(limit)), failed: failed},
		"an abort fails, and all must go":   {s: with(in("running"), ending), failed: failed, due: true, says: "refused"},
		"an abort is late, and all must go": {s: with(in("running"), ending), due: true, says: "has not ended yet"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s := test.s
			deleted(&s)
			due, note := fdbrestore.ReleaseDue(s, test.failed, limit)
			assert.Equal(t, test.due, due)
			assert.Contains(t, note, test.says)
			if test.says == "" {
				assert.Empty(t, note)
			}
		})
	}
}

func TestHowLongADatabaseHasNotAnsweredIsRemembered(t *testing.T) {
	s := with(in("running"), shown("running"), silent, deleted)
	since := func() int64 {
		return requests.UnreachableSince(s.Memory.UnreachableSince, s.View.Owner, s.Seen.Failure, s.Now)
	}
	s.Memory.UnreachableSince = since()
	assert.Equal(t, noon.Unix(), s.Memory.UnreachableSince)
	s.Now = s.Now.Add(time.Minute)
	assert.Equal(t, noon.Unix(), since())
	s.Seen.Failure.Class = contract.FDBClassToolMissing
	assert.Zero(t, since(), "missing tools are for an operator to mend")
}

func TestDetailsSayWhatIsRestoredAndWhatFor(t *testing.T) {
	s := with(in("running"), func(s *fdbrestore.Situation) { s.Seen.Restore.LastError, s.Seen.Restore.BytesWritten = "a\n`b`", 9 })
	findings := fdbrestore.Find(s, contract.ObjectRef{Name: "r"}, nil)
	assert.Equal(t, int32(25), findings.Percent)
	assert.Equal(t, int64(9), findings.BytesWritten)
	assert.Zero(t, findings.Restored)
	assert.Equal(t, "**Running**, 25 % done\n- **IncorrectRestoreState** (Restoring): the restore is Running, 25 percent done\n"+
		"\nTag `lab-u`, to version 700 (2026-05-28T20:26:40Z) of `"+place+"`\n\nLast error: a 'b'", fdbrestore.Details(s, findings))
	s = with(in("completed"), ended("Completed"))
	findings = fdbrestore.Find(s, contract.ObjectRef{Name: "r"}, nil)
	assert.Equal(t, int64(700), findings.Restored)
	assert.Equal(t, int32(100), findings.Percent)
	assert.True(t, findings.Finalized)
	assert.Equal(t, "completed", fdbrestore.Signature(findings))
	assert.True(t, fdbrestore.Patient([]contract.FDBCondition{{Type: "IncorrectRestoreState", Reason: "DestinationNotEmpty"}}))
	assert.False(t, fdbrestore.Patient([]contract.FDBCondition{{Type: "IncorrectRestoreState", Reason: "DatabaseLocked"}}))
}
