package backup_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/activities/fdb/gather"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
	fdbbackup "holdfast.dev/holdfast/workflows/fdb/backup"
)

func policy(s *fdbbackup.Situation) { s.View.Policy = true }

// turned: the status shows how turn 100 ended.
func turned(reason string) change {
	return func(s *fdbbackup.Situation) {
		s.View.Expiry = &contract.FDBExpiryView{Turn: 100, Reason: reason, Message: "what became of it"}
	}
}

// result: turn 200 has ended, and the status does not show it yet.
func result(reason string, deleted ...string) change {
	return func(s *fdbbackup.Situation) {
		s.Memory.Result = &contract.FDBExpiryResult{Turn: 200, Reason: reason, Message: "what the turn says", Deleted: deleted}
	}
}

func toldAgain(s *fdbbackup.Situation) { s.Memory.Result.Turn = 100 }

func withData(s *fdbbackup.Situation) { s.View.Backups[0].Oldest = &contract.FDBPoint{Version: 1} }

func dataHeld(s *fdbbackup.Situation) { s.View.DeleteWanted = true }

func released(s *fdbbackup.Situation) { s.View.Held = false }

func TestWhatTheQueueIsAskedFor(t *testing.T) {
	tests := map[string]struct {
		of   []change
		want contract.FDBJob
	}{
		"nothing without a policy":                 {of: []change{withData}},
		"an expiration with one":                   {of: []change{policy, withData}, want: contract.FDBJobExpire},
		"also of what is stopped":                  {of: []change{policy, withData, asks("Stopped"), ended}, want: contract.FDBJobExpire},
		"not without data":                         {of: []change{policy, isNew}},
		"not while a deletion stops it":            {of: []change{policy, withData, dataHeld, deleted}},
		"the deletion of the data then":            {of: []change{withData, dataHeld, deleted, released}, want: contract.FDBJobDelete},
		"not unless it is wanted":                  {of: []change{withData, deleted, released}},
		"not in a namespace that ends":             {of: []change{withData, dataHeld, deleted, released, ending}},
		"not if nothing was ever started":          {of: []change{isNew, dataHeld, deleted, released}},
		"nothing when there is no object any more": {of: []change{policy, func(s *fdbbackup.Situation) { s.View = contract.FDBBackupView{} }}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) { assert.Equal(t, test.want, fdbbackup.WantedJob(inOrder(test.of...).View)) })
	}
}

func TestWhenTheQueueIsAsked(t *testing.T) {
	reported := func(job contract.FDBJob, ago time.Duration) change {
		return func(s *fdbbackup.Situation) { s.Memory.Reported, s.Memory.ReportedAt = job, hour(12).Add(-ago).Unix() }
	}
	expire := contract.FDBJobExpire
	tests := map[string]struct {
		of     []change
		begins bool
		want   bool
	}{
		"at the start of a run":           {of: []change{policy, withData, reported(expire, 0)}, begins: true, want: true},
		"not twice in an hour":            {of: []change{policy, withData, reported(expire, time.Hour-time.Second)}},
		"after an hour":                   {of: []change{policy, withData, reported(expire, time.Hour)}, want: true},
		"when what is wanted is new":      {of: []change{policy, withData}, want: true},
		"when it is another":              {of: []change{withData, dataHeld, deleted, released, reported(expire, 0)}, want: true},
		"that nothing is wanted any more": {of: []change{withData, reported(expire, 0)}, want: true},
		"not that nothing ever was":       {of: []change{withData}, begins: true},
		"that of one that had turns":      {of: []change{withData, turned("Expired")}, begins: true, want: true},
		"that only at the start":          {of: []change{withData, turned("Expired")}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s := inOrder(test.of...)
			assert.Equal(t, test.want, fdbbackup.QueueDue(s.View, s.Memory, test.begins, hour(12)))
		})
	}
}

func TestWhichContainersAreUsed(t *testing.T) {
	const (
		first = "s3.local:443/fdb-backups/lab-2026-08-01T10-00-00Z"
		next  = "s3.local:443/fdb-backups/lab-2026-08-01T11-00-00Z"
	)
	tests := map[string]struct {
		of         []change
		used, said []string
	}{
		"what runs":           {used: []string{first}, said: []string{first}},
		"not what is planned": {of: []change{planned("default", secondURL)}, used: []string{first}, said: []string{first, next}},
		"nor what others have there": {of: []change{planned("default", secondURL), func(s *fdbbackup.Situation) {
			s.View.Backups[1].Latest = &contract.FDBPoint{Version: 7}
		}}, used: []string{first}, said: []string{first, next}},
		"nor what is no store": {of: []change{func(s *fdbbackup.Situation) { s.View.Backups[0].URL = "file:///tmp" }}},
		"each once":            {of: []change{func(s *fdbbackup.Situation) { s.View.Backups = append(s.View.Backups, s.View.Backups...) }}, used: []string{first}, said: []string{first}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			view := inOrder(test.of...).View
			assert.Equal(t, test.used, fdbbackup.Containers(view))
			assert.Equal(t, test.said, fdbbackup.Mentioned(view))
		})
	}
}

func TestOnlyAPathWithItsSecondIsUnique(t *testing.T) {
	for format, want := range map[string]bool{
		fdb.DefaultTimestampFormat: true, "-2006-01-02": false, "-15-04-05": false, "-now": false,
	} {
		s := inOrder(ended, func(s *fdbbackup.Situation) {
			s.View.Desired.TimestampFormat = format
			stamped := hour(11).Format(format)
			s.View.Backups = append(s.View.Backups, contract.FDBBackup{
				Tag: "default", State: fdb.StateNeverRan, URL: "blobstore://lab@s3.local/lab" + stamped + "?bucket=fdb-backups",
			})
		})
		name, fresh := fdbbackup.NewContainer(s.View)
		assert.Equal(t, "s3.local:443/fdb-backups/lab"+hour(11).Format(format), name)
		assert.Equal(t, want, fresh, format)
	}
	name, _ := fdbbackup.NewContainer(inOrder().View)
	assert.Empty(t, name, "nothing is planned")
}

func TestTheLaterOfTwoResultsIsKept(t *testing.T) {
	early := contract.FDBExpiryResult{Turn: 1, Reason: "a", Deleted: []string{"x", "y"}}
	late := contract.FDBExpiryResult{Turn: 2, Reason: "b", Deleted: []string{"z"}}
	require.Equal(t, &early, fdbbackup.Later(nil, early))
	want := &contract.FDBExpiryResult{Turn: 2, Reason: "b", Deleted: []string{"x", "y", "z"}}
	require.Equal(t, want, fdbbackup.Later(&early, late))
	require.Equal(t, want, fdbbackup.Later(&late, early))
	require.Equal(t, want, fdbbackup.Later(want, late), "repeated")
}

func TestWhatATurnHasDoneIsInTheListOfBackups(t *testing.T) {
	ranged := func(s *fdbbackup.Situation) {
		s.Memory.Result.Container = &contract.FDBContainer{URL: firstURL, Oldest: &contract.FDBPoint{Version: 7}, Latest: &contract.FDBPoint{Version: 8}}
	}
	points := func(s fdbbackup.Situation) []int64 {
		var found []int64
		for _, entry := range fdbbackup.Merge(s) {
			if entry.Oldest != nil {
				found = append(found, entry.Oldest.Version)
			}
		}
		return found
	}
	assert.Equal(t, []int64{7}, points(inOrder(result("Expired"), ranged)))
	assert.Equal(t, []int64{5}, points(inOrder(contains(firstURL, 5, 30), result("Expired"), ranged)), "this inspection has described it")
	assert.Empty(t, points(inOrder(turned("Expired"), result("Expired"), ranged, toldAgain)))
	assert.Empty(t, fdbbackup.Merge(inOrder(ended, result("Expired", firstURL))))
	assert.Len(t, fdbbackup.Merge(inOrder(result("Expired", firstURL))), 1, "what runs stays")
	assert.Len(t, fdbbackup.Merge(inOrder(ended, turned("Expired"), result("Expired", firstURL), toldAgain)), 1)
}

func TestAResultIsWrittenOnceAndNothingElseWithIt(t *testing.T) {
	object := &fdbv1alpha1.FoundationDBBackup{}
	object.Generation = 2
	findings := contract.FDBFindings{Generation: 1, Conditions: []contract.FDBCondition{{Type: "T", Reason: "R"}}}
	gather.ApplyFindings(object, findings, hour(1))
	expired := contract.FDBExpiryResult{Turn: 5, At: hour(2).Unix(), Reason: fdbv1alpha1.ExpiryExpired, Message: "m"}
	alone := contract.FDBFindings{
		Generation: 2, ExpiryAlone: true, Expiry: &expired, Backups: []contract.FDBBackup{{URL: firstURL, Tag: "default"}},
	}
	gather.ApplyFindings(object, alone, hour(3))
	assert.Len(t, fdbv1alpha1.Unmet(object.Status.Conditions), 1)
	assert.Equal(t, int64(1), object.Status.ObservedGeneration)
	assert.Len(t, object.Status.Backups, 1)
	require.NotNil(t, object.Status.Expiry)
	assert.Equal(t, hour(2), object.Status.Expiry.LastExpired.UTC())
	again := expired
	again.Reason = fdbv1alpha1.ExpiryFailed
	alone.Expiry = &again
	before := object.DeepCopy()
	gather.ApplyFindings(object, alone, hour(4))
	assert.Equal(t, before.Status, object.Status, "the same turn")
	again.Turn, again.At = 6, hour(5).Unix()
	gather.ApplyFindings(object, alone, hour(5))
	assert.EqualValues(t, fdbv1alpha1.ExpiryFailed, object.Status.Expiry.Reason)
	assert.Equal(t, hour(2), object.Status.Expiry.LastExpired.UTC(), "that was then")
	gather.ApplyFindings(object, findings, hour(6))
	assert.NotNil(t, object.Status.Expiry, "an ordinary inspection leaves it")
}

func TestTheEventsOfATurn(t *testing.T) {
	status := func(turn int64, reason fdbv1alpha1.ExpiryReason, message string) *fdbv1alpha1.BackupExpiryStatus {
		return &fdbv1alpha1.BackupExpiryStatus{Turn: turn, Reason: reason, Message: message}
	}
	tests := map[string]struct {
		before, after *fdbv1alpha1.BackupExpiryStatus
		deleting      bool
		want          *gather.Event
	}{
		"nothing yet":                          {},
		"data were expired":                    {after: status(1, "Expired", "m"), want: &gather.Event{Reason: "Expired", Note: "m"}},
		"others were expired":                  {before: status(1, "Expired", "m"), after: status(2, "Expired", "n"), want: &gather.Event{Reason: "Expired", Note: "n"}},
		"the same turn":                        {before: status(1, "Expired", "m"), after: status(1, "Expired", "m")},
		"a turn fails":                         {before: status(1, "Expired", "m"), after: status(2, "Failed", "x"), want: &gather.Event{Warning: true, Reason: "ExpiryFailing", Note: "x"}},
		"it fails again":                       {before: status(1, "Failed", "x"), after: status(2, "Failed", "x")},
		"it fails otherwise":                   {before: status(1, "Failed", "x"), after: status(2, "Failed", "y"), want: &gather.Event{Warning: true, Reason: "ExpiryFailing", Note: "y"}},
		"it waits":                             {after: status(1, "Waiting", "x"), want: &gather.Event{Reason: "Waiting", Note: "x"}},
		"a deletion waits":                     {after: status(1, "Waiting", "x"), deleting: true, want: &gather.Event{Warning: true, Reason: "Waiting", Note: "x"}},
		"a deletion waits for the same":        {before: status(1, "Waiting", "x"), after: status(2, "Waiting", "x"), deleting: true},
		"FoundationDB refuses, and goes on to": {before: status(1, "Unsafe", "x"), after: status(2, "Unsafe", "y")},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			assert.Equal(t, test.want, gather.ExpiryEvent(test.before, test.after, test.deleting))
		})
	}
}

func TestHowAnObjectIsReleasedWhoseDataWereToBeDeleted(t *testing.T) {
	done := contract.FDBExpiryResult{Outcome: contract.FDBTurnDone}
	assert.Equal(t, fdbv1alpha1.ExpiryDeleted, fdbbackup.Cleared(done).Reason)
	assert.Contains(t, fdbbackup.Cleared(done).Note, "are deleted")
	done.Kept = []string{firstURL}
	assert.Equal(t, fdbv1alpha1.ExpiryKept, fdbbackup.Cleared(done).Reason)
	assert.Contains(t, fdbbackup.Cleared(done).Note, firstURL)
	assert.Contains(t, fdbbackup.Cleared(contract.FDBExpiryResult{Outcome: contract.FDBTurnNothing}).Note, "no data")
	left := fdbbackup.LeaveData(inOrder(planned("default", secondURL)).View)
	assert.Equal(t, []string{firstURL}, left.DataKept, "a plan has no data")
	assert.True(t, left.Warning && left.Data)
	assert.Contains(t, left.Note, firstURL)
	assert.Empty(t, fdbbackup.LeaveData(inOrder(isNew).View).DataKept)
}

func TestWhenAnObjectIsSettled(t *testing.T) {
	wanted := func(s *fdbbackup.Situation) { s.View.DeletionRequested = true }
	settled := func(s *fdbbackup.Situation) { s.View.Observed, s.View.Reconciled, s.View.Held = true, true, true }
	tests := map[string]struct {
		of   []change
		want bool
	}{
		"one that runs never is":                 {of: []change{settled}},
		"one that is stopped and published":      {of: []change{settled, asks("Stopped")}, want: true},
		"not before it has the finalizer":        {of: []change{settled, asks("Stopped"), wanted}},
		"with it":                                {of: []change{settled, asks("Stopped"), wanted, dataHeld}, want: true},
		"not while it has one it must not have":  {of: []change{settled, asks("Stopped"), dataHeld}},
		"one being deleted not while it is held": {of: []change{settled, deleted}},
		"nor while its data are to go":           {of: []change{settled, deleted, released, dataHeld}},
		"one being deleted that nothing keeps":   {of: []change{settled, deleted, released}, want: true},
		"one that is not there":                  {of: []change{func(s *fdbbackup.Situation) { s.View = contract.FDBBackupView{} }}, want: true},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) { assert.Equal(t, test.want, fdbbackup.Settled(inOrder(test.of...).View)) })
	}
}
