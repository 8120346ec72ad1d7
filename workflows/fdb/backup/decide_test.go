package backup_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
	fdbbackup "holdfast.dev/holdfast/workflows/fdb/backup"
)

const (
	baseURL   = "blobstore://lab@s3.local/lab?bucket=fdb-backups"
	firstURL  = "blobstore://lab@s3.local/lab-2026-08-01T10-00-00Z?bucket=fdb-backups"
	secondURL = "blobstore://lab@s3.local/lab-2026-08-01T11-00-00Z?bucket=fdb-backups"
	movedURL  = "blobstore://lab@s3.local/moved?bucket=fdb-backups"
	theirsURL = "blobstore://other@s3.remote/theirs?bucket=theirs"
)

// inOrder is a backup that runs as the spec says, and has for a while.
func inOrder(changes ...func(*fdbbackup.Situation)) fdbbackup.Situation {
	latest := &contract.FDBPoint{Version: 20, Time: 2000}
	s := fdbbackup.Situation{
		View: contract.FDBBackupView{
			Found: true, Held: true, Generation: 3, Observed: true, Owner: "lab:1",
			Desired: contract.FDBDesired{
				State: "Running", Tag: "default", URL: baseURL, TimestampFormat: fdb.DefaultTimestampFormat, SnapshotPeriodSeconds: 100,
			},
			Backups: []contract.FDBBackup{{Tag: "default", URL: firstURL, State: fdb.StateRunningDifferentially, Latest: latest}},
			Agents:  contract.FDBAgentsView{Exists: true, Ours: true, Current: true, RolledOut: true, Wanted: 3, Ready: 3},
		},
		Seen: contract.FDBInspection{Tags: []contract.FDBTag{{
			Tag: "default", UID: "1", State: fdb.StateRunningDifferentially, Running: true, Restorable: true, URL: firstURL,
			SnapshotPeriodSeconds: 100, Latest: latest,
		}}},
		Memory: contract.FDBMemory{Slot: contract.FDBSlotNone},
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

type change = func(*fdbbackup.Situation)

// isNew: no backup was ever started.
func isNew(s *fdbbackup.Situation) {
	s.View.Backups = nil
	s.Seen.Tags = []contract.FDBTag{{Tag: "default", State: fdb.StateNeverRan}}
}

// starting: it is in its first snapshot.
func starting(state string) change {
	return func(s *fdbbackup.Situation) {
		tag := &s.Seen.Tags[0]
		tag.State, tag.Restorable, tag.Latest, tag.RangeBytes = state, false, nil, 7
		if state == fdb.StateSubmitted {
			tag.SnapshotPeriodSeconds = 0
		}
	}
}

func asks(state string) change { return func(s *fdbbackup.Situation) { s.View.Desired.State = state } }

func slot(slot contract.FDBSlot) change { return func(s *fdbbackup.Situation) { s.Memory.Slot = slot } }

func planned(tag, url string, ranges ...string) change {
	return func(s *fdbbackup.Situation) {
		s.View.Backups = append(s.View.Backups, contract.FDBBackup{Tag: tag, URL: url, State: fdb.StateNeverRan, KeyRanges: ranges})
	}
}

func ended(s *fdbbackup.Situation) {
	s.Seen.Tags[0].State, s.Seen.Tags[0].Running = fdb.StateAborted, false
}

func ranges(s *fdbbackup.Situation) { s.View.Desired.KeyRanges = []string{"a b"} }

func moved(s *fdbbackup.Situation) { s.View.Desired.URL = movedURL }

func foreign(s *fdbbackup.Situation) { isNew(s); s.Seen.Tags[0] = theirs("default") }

func theirs(tag string) contract.FDBTag {
	return contract.FDBTag{Tag: tag, UID: "9", State: fdb.StateRunningDifferentially, Running: true, Restorable: true, URL: theirsURL}
}

func listed(tag, url, state string) change {
	return func(s *fdbbackup.Situation) {
		s.View.Backups = append(s.View.Backups, contract.FDBBackup{Tag: tag, URL: url, State: state})
	}
}

func also(tag contract.FDBTag) change {
	return func(s *fdbbackup.Situation) { s.Seen.Tags = append(s.Seen.Tags, tag) }
}

func stampless(s *fdbbackup.Situation) {
	s.View.Desired.TimestampFormat = ""
	s.View.Backups[0].URL, s.Seen.Tags[0].URL = baseURL, baseURL
}

// stepOf describes the decision.
func stepOf(s fdbbackup.Situation) string {
	decision := fdbbackup.Decide(s)
	words := string(decision.Step)
	if decision.Step == fdbbackup.StepCommand {
		words = strings.TrimSpace(strings.Join([]string{string(decision.Command.Operation), decision.Command.Tag, decision.Command.URL}, " "))
	}
	if action := fdbbackup.SlotAction(s); action != "" {
		words += ", request " + string(action)
	}
	return strings.TrimPrefix(words, ", ")
}

func TestTheNextStep(t *testing.T) {
	tests := map[string]struct {
		of   []change
		want string
	}{
		"nothing is due in good order":                       {want: ""},
		"a new backup asks for a slot":                       {of: []change{isNew}, want: "slot, request acquire"},
		"one that has asked for a slot waits":                {of: []change{isNew, slot(contract.FDBSlotRequested)}, want: "slot"},
		"with a slot it is written down where it goes":       {of: []change{isNew, slot(contract.FDBSlotGranted)}, want: "plan"},
		"what is written down is started there":              {of: []change{isNew, slot(contract.FDBSlotGranted), planned("default", firstURL)}, want: "start default " + firstURL},
		"a plan is not started without a slot":               {of: []change{isNew, planned("default", firstURL)}, want: "slot, request acquire"},
		"a plan of another destination is none":              {of: []change{isNew, slot(contract.FDBSlotGranted), planned("default", firstURL), moved}, want: "plan"},
		"a plan of other key ranges is none":                 {of: []change{isNew, slot(contract.FDBSlotGranted), planned("default", firstURL), ranges}, want: "plan"},
		"a plan of another tag is none":                      {of: []change{isNew, slot(contract.FDBSlotGranted), planned("nightly", firstURL)}, want: "plan"},
		"a plan of other parameters is none":                 {of: []change{isNew, slot(contract.FDBSlotGranted), planned("default", firstURL+"&sc=0")}, want: "plan"},
		"a plan at a place that was written to is none":      {of: []change{ended, slot(contract.FDBSlotGranted), planned("default", firstURL)}, want: "plan"},
		"a backup that was aborted by hand is started again": {of: []change{ended}, want: "slot, request acquire"},
		"a first snapshot counts, no matter who started it":  {of: []change{starting(fdb.StateRunning)}, want: "request count"},
		"one that counts sends no second request":            {of: []change{starting(fdb.StateRunning), slot(contract.FDBSlotGranted)}, want: ""},
		"one that is restorable gives its slot back":         {of: []change{slot(contract.FDBSlotGranted)}, want: "request release"},
		"one that does not know releases what it may have":   {of: []change{slot(contract.FDBSlotUnknown)}, want: "request release"},
		"one that stands still gives its slot back": {
			of: []change{starting(fdb.StateRunning), slot(contract.FDBSlotGranted), func(s *fdbbackup.Situation) { s.Memory.Stalled = true }}, want: "request release",
		},
		"one that is paused gives its slot back": {
			of:   []change{asks("Paused"), starting(fdb.StateRunning), slot(contract.FDBSlotGranted), func(s *fdbbackup.Situation) { s.Seen.AgentsPaused = true }},
			want: "request release",
		},
		"while nothing is known the slot is kept": {
			of: []change{slot(contract.FDBSlotGranted), func(s *fdbbackup.Situation) { s.Seen = contract.FDBInspection{Failure: trouble("Timeout")} }}, want: "",
		},

		"a restart waits for its slot, and the old one runs on": {of: []change{moved}, want: "slot, request acquire"},
		"a restart is planned before the old one ends":          {of: []change{moved, slot(contract.FDBSlotGranted)}, want: "plan"},
		"then the old one ends": {
			of:   []change{moved, slot(contract.FDBSlotGranted), planned("default", "blobstore://lab@s3.local/moved-2026-08-01T11-00-00Z?bucket=fdb-backups")},
			want: "abort default " + firstURL,
		},
		"other key ranges are a restart": {of: []change{ranges, slot(contract.FDBSlotGranted), planned("default", secondURL, "a b")}, want: "abort default " + firstURL},
		"another tag is a restart":       {of: []change{func(s *fdbbackup.Situation) { s.View.Desired.Tag = "nightly" }}, want: "slot, request acquire"},
		"of two that run the old one ends": {
			of: []change{
				func(s *fdbbackup.Situation) { s.View.Desired.Tag = "nightly" }, listed("nightly", secondURL, fdb.StateRunning),
				also(contract.FDBTag{Tag: "nightly", State: fdb.StateRunningDifferentially, Running: true, Restorable: true, URL: secondURL, SnapshotPeriodSeconds: 100}),
			},
			want: "abort default " + firstURL,
		},
		"without a time in the path nothing is started twice":           {of: []change{stampless, ended}, want: ""},
		"without a time in the path a restart leaves the old one alone": {of: []change{stampless, ranges}, want: ""},
		"a format without a time is no time, and what is there stays": {
			of: []change{stampless, ranges, func(s *fdbbackup.Situation) {
				s.View.Desired.TimestampFormat = "-nightly"
				s.View.Backups[0].URL = "blobstore://lab@s3.local/lab-nightly?bucket=fdb-backups"
				s.Seen.Tags[0].URL = s.View.Backups[0].URL
			}}, want: "",
		},

		"another period is a modification":                  {of: []change{period}, want: "modify default " + firstURL},
		"other parameters are a modification":               {of: []change{parameters}, want: "modify default " + firstURL + "&sc=0"},
		"nothing is modified that only submitted":           {of: []change{period, parameters, starting(fdb.StateSubmitted)}, want: "request count"},
		"what runs first is modified":                       {of: []change{period, starting(fdb.StateRunning), slot(contract.FDBSlotGranted)}, want: "modify default " + firstURL},
		"a period that is not reported counts as unchanged": {of: []change{period, func(s *fdbbackup.Situation) { s.Seen.Tags[0].SnapshotPeriodSeconds = 0 }}, want: ""},

		"a pause pauses":                   {of: []change{asks("Paused")}, want: "pause"},
		"a pause comes before all changes": {of: []change{asks("Paused"), period}, want: "pause"},
		"nothing is paused against others": {of: []change{asks("Paused"), opposed}, want: ""},
		"what is paused stays so":          {of: []change{asks("Paused"), agentsPaused}, want: ""},
		"a pause by others ends":           {of: []change{agentsPaused}, want: "resume"},
		"it ends against others too":       {of: []change{agentsPaused, opposed}, want: "resume"},
		"a new one is started, then paused": {
			of: []change{isNew, asks("Paused"), slot(contract.FDBSlotGranted), planned("default", firstURL)}, want: "start default " + firstURL,
		},

		"a stop aborts":                            {of: []change{asks("Stopped")}, want: "abort default " + firstURL},
		"a stop waits for no slot":                 {of: []change{asks("Stopped"), starting(fdb.StateSubmitted), slot(contract.FDBSlotRequested)}, want: "abort default " + firstURL + ", request release"},
		"a deletion aborts":                        {of: []change{deleted}, want: "abort default " + firstURL},
		"a deletion aborts though the spec is bad": {of: []change{deleted, problem, func(s *fdbbackup.Situation) { s.View.Desired.URL = "" }}, want: "abort default " + firstURL},
		"a stop ends the pause that was its own":   {of: []change{asks("Stopped"), ended, agentsPaused, func(s *fdbbackup.Situation) { s.Memory.Paused = true }}, want: "resume"},
		"a stop leaves the pause of others":        {of: []change{asks("Stopped"), ended, agentsPaused}, want: ""},
		"a stopped one is not started":             {of: []change{asks("Stopped"), ended}, want: ""},
		"a stop leaves the backups of others":      {of: []change{asks("Stopped"), foreign}, want: ""},
		"a deletion leaves the backups of others":  {of: []change{deleted, foreign}, want: ""},

		"on a tag in use nothing is done":                 {of: []change{foreign}, want: ""},
		"a tag in use needs no slot":                      {of: []change{foreign, slot(contract.FDBSlotRequested)}, want: "request release"},
		"one at our destination is ours with any stamp":   {of: []change{isNew, runs(secondURL), period}, want: "modify default " + secondURL},
		"one beside our destination is not":               {of: []change{isNew, runs("blobstore://lab@s3.local/labs-2026-08-01T11-00-00Z?bucket=fdb-backups"), period}, want: ""},
		"one of another account at our place is not ours": {of: []change{isNew, runs(strings.Replace(secondURL, "lab@", "eve@", 1)), asks("Stopped")}, want: ""},
		"while the spec is bad nothing is done":           {of: []change{isNew, problem}, want: ""},
		"while the database is silent nothing is done":    {of: []change{func(s *fdbbackup.Situation) { s.Seen = contract.FDBInspection{Failure: trouble("Timeout")} }, deleted}, want: "request release"},
		"without a cluster nothing is done":               {of: []change{isNew, func(s *fdbbackup.Situation) { s.View.Owner = "" }}, want: ""},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			if strings.HasPrefix(title, "while the database is silent") {
				test.of = append(test.of, slot(contract.FDBSlotGranted))
			}
			assert.Equal(t, test.want, stepOf(inOrder(test.of...)))
		})
	}
}

func period(s *fdbbackup.Situation)       { s.View.Desired.SnapshotPeriodSeconds = 200 }
func parameters(s *fdbbackup.Situation)   { s.View.Desired.URL += "&sc=0" }
func opposed(s *fdbbackup.Situation)      { s.Memory.Opposed = []string{"team/other"} }
func agentsPaused(s *fdbbackup.Situation) { s.Seen.AgentsPaused = true }
func deleted(s *fdbbackup.Situation)      { s.View.BeingDeleted = true }
func problem(s *fdbbackup.Situation) {
	s.View.Problem = &contract.FDBCondition{Type: "MisconfiguredBackup", Reason: "SecretMissing", Message: "there is no Secret"}
}

func runs(url string) change {
	return func(s *fdbbackup.Situation) {
		s.Seen.Tags[0] = inOrder().Seen.Tags[0]
		s.Seen.Tags[0].URL = url
	}
}

func trouble(class contract.FDBClass) *contract.FDBFailure {
	return &contract.FDBFailure{Class: class, Message: "it does not work"}
}

// The effect of a forged status. Only a URL that a backup of ours can have makes a backup ours.
func TestAForgedStatusAbortsNothing(t *testing.T) {
	tests := map[string]contract.FDBTag{
		"a file of the agents' host":      {Tag: "other", State: fdb.StateRunning, Running: true, URL: "file:///backups/theirs"},
		"something that is no URL":        {Tag: "other", State: fdb.StateRunning, Running: true, URL: "theirs"},
		"a URL with a secret in it":       {Tag: "other", State: fdb.StateRunning, Running: true, URL: "blobstore://a:s@s3.remote/theirs?bucket=theirs"},
		"a URL with another key's access": {Tag: "other", State: fdb.StateRunning, Running: true, URL: theirsURL + "&sdk_auth=1"},
	}
	for title, tag := range tests {
		t.Run(title, func(t *testing.T) {
			for _, state := range []string{"Running", "Stopped"} {
				s := inOrder(ended, asks(state), listed(tag.Tag, tag.URL, tag.State), also(tag))
				assert.NotEqual(t, contract.FDBAbort, fdbbackup.Decide(s).Command.Operation, "%s", state)
			}
		})
	}
}

func TestASlotIsNotHeldForNothing(t *testing.T) {
	start := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	type inspection struct {
		after   time.Duration
		of      []change
		stalled bool
		action  contract.FDBSlotAction
	}
	failing := []change{isNew, planned("default", firstURL), slot(contract.FDBSlotGranted)}
	silent := func(s *fdbbackup.Situation) { s.Seen = contract.FDBInspection{Failure: trouble("Timeout")} }
	tests := map[string][]inspection{
		"by a first snapshot that stands still, until it moves": {
			{of: []change{starting(fdb.StateRunning), slot(contract.FDBSlotGranted)}},
			{after: 29 * time.Minute, of: []change{starting(fdb.StateRunning), slot(contract.FDBSlotGranted)}},
			{after: 30 * time.Minute, of: []change{starting(fdb.StateRunning), slot(contract.FDBSlotGranted)}, stalled: true, action: contract.FDBSlotRelease},
			{after: 31 * time.Minute, of: []change{starting(fdb.StateRunning)}, stalled: true},
			{after: 32 * time.Minute, of: []change{starting(fdb.StateRunning), func(s *fdbbackup.Situation) { s.Seen.Tags[0].RangeBytes++ }}, action: contract.FDBSlotCount},
		},
		"a state that advances is progress": {
			{of: []change{starting(fdb.StateSubmitted), slot(contract.FDBSlotGranted)}},
			{after: 29 * time.Minute, of: []change{starting(fdb.StateRunning), slot(contract.FDBSlotGranted)}},
			{after: 58 * time.Minute, of: []change{starting(fdb.StateRunning), slot(contract.FDBSlotGranted)}},
		},
		"by a start that does not come about, which then asks again": {
			{of: failing},
			{after: 29 * time.Minute, of: failing},
			{after: 30 * time.Minute, of: failing, stalled: true, action: contract.FDBSlotRelease},
			{after: 31 * time.Minute, of: []change{isNew, planned("default", firstURL)}, action: contract.FDBSlotAcquire},
			{after: 90 * time.Minute, of: []change{isNew, planned("default", firstURL), slot(contract.FDBSlotRequested)}},
			{after: 91 * time.Minute, of: failing},
		},
		"no backup loses its place in the queue by waiting": {
			{of: []change{isNew, slot(contract.FDBSlotRequested)}},
			{after: 31 * time.Minute, of: []change{isNew, slot(contract.FDBSlotUnknown)}, action: contract.FDBSlotAcquire},
			{after: 62 * time.Minute, of: []change{isNew, slot(contract.FDBSlotRequested)}},
			{after: 93 * time.Minute, of: failing},
		},
		"by a database that is silent since before a start": {
			{of: []change{silent, slot(contract.FDBSlotGranted)}, action: contract.FDBSlotRelease},
			{after: 1 * time.Minute, of: []change{silent, slot(contract.FDBSlotRequested)}, action: contract.FDBSlotRelease},
		},
		"by a database that is silent after a start": {
			{of: []change{starting(fdb.StateRunning), slot(contract.FDBSlotGranted)}},
			{after: 29 * time.Minute, of: []change{silent, slot(contract.FDBSlotGranted)}},
			{after: 30 * time.Minute, of: []change{silent, slot(contract.FDBSlotUnknown)}, stalled: true, action: contract.FDBSlotRelease},
			{after: 40 * time.Minute, of: []change{starting(fdb.StateRunning), func(s *fdbbackup.Situation) { s.Seen.Tags[0].RangeBytes++ }}, action: contract.FDBSlotCount},
		},
	}
	for title, inspections := range tests {
		t.Run(title, func(t *testing.T) {
			memory := contract.FDBMemory{}
			for _, each := range inspections {
				s := inOrder(each.of...)
				memory.Slot = s.Memory.Slot
				s.Memory = memory
				memory = fdbbackup.Notice(s, start.Add(each.after), 30*time.Minute)
				s.Memory = memory
				assert.Equal(t, each.stalled, memory.Stalled, "after %s", each.after)
				assert.Equal(t, each.action, fdbbackup.SlotAction(s), "after %s", each.after)
			}
		})
	}
}
