package backup_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/fdb/gather"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
	fdbbackup "holdfast.dev/holdfast/workflows/fdb/backup"
)

const second = time.Second

func hour(n int) time.Time { return time.Date(2026, 8, 1, n, 0, 0, 0, time.UTC) }

func contains(url string, oldest, latest int64) change {
	return func(s *fdbbackup.Situation) {
		s.Seen.Containers = append(s.Seen.Containers, contract.FDBContainer{
			URL: url, Oldest: &contract.FDBPoint{Version: oldest}, Latest: &contract.FDBPoint{Version: latest},
		})
	}
}

func missing(url string) change {
	return func(s *fdbbackup.Situation) {
		s.Seen.Containers = append(s.Seen.Containers, contract.FDBContainer{URL: url, Missing: true})
	}
}

func TestTheListOfBackups(t *testing.T) {
	const first, next = "first", "second"
	names := map[string]string{firstURL: first, secondURL: next, firstURL + "&sc=0": "first modified", theirsURL: "theirs"}
	tests := map[string]struct {
		of   []change
		want []string // "name state oldest-latest"
	}{
		"what runs":                                {want: []string{"first RunningDifferentially -20"}},
		"what was described":                       {of: []change{contains(firstURL, 5, 30)}, want: []string{"first RunningDifferentially 5-30"}},
		"what has ended stays":                     {of: []change{ended}, want: []string{"first Aborted -20"}},
		"what has ended and has no data goes":      {of: []change{ended, missing(firstURL)}},
		"what runs stays though its data are gone": {of: []change{missing(firstURL)}, want: []string{"first RunningDifferentially -"}},
		"what cannot be read stays": {of: []change{ended, func(s *fdbbackup.Situation) {
			s.Seen.Containers = []contract.FDBContainer{{URL: firstURL, Failure: trouble("AccessDenied")}}
		}}, want: []string{"first Aborted -20"}},
		"entries of a silent database stay":            {of: []change{silent(contract.FDBClassTimeout), planned("default", secondURL)}, want: []string{"first RunningDifferentially -20", "second NeverRan -"}},
		"all stays while there is no cluster":          {of: []change{clusterGone, asks("Stopped"), planned("default", secondURL), func(s *fdbbackup.Situation) { s.Seen = contract.FDBInspection{} }}, want: []string{"first RunningDifferentially -20", "second NeverRan -"}},
		"what was modified has its new parameters":     {of: []change{runs(firstURL + "&sc=0")}, want: []string{"first modified RunningDifferentially -20"}},
		"a plan comes last":                            {of: []change{ended, planned("default", secondURL)}, want: []string{"first Aborted -20", "second NeverRan -"}},
		"a plan that another has preceded goes":        {of: []change{planned("default", secondURL)}, want: []string{"first RunningDifferentially -20"}},
		"a plan that was started runs":                 {of: []change{planned("default", secondURL), runs(secondURL)}, want: []string{"first Aborted -20", "second RunningDifferentially -"}},
		"a plan of another spec goes":                  {of: []change{planned("default", secondURL, "a b")}, want: []string{"first RunningDifferentially -20"}},
		"unless it was started":                        {of: []change{planned("default", secondURL, "a b"), runs(secondURL)}, want: []string{"first Aborted -20", "second RunningDifferentially -"}},
		"or has data":                                  {of: []change{planned("default", secondURL, "a b"), contains(secondURL, 7, 8)}, want: []string{"first RunningDifferentially -20", "second NeverRan 7-8"}},
		"a plan of a stopped backup goes":              {of: []change{asks("Stopped"), planned("default", secondURL)}, want: []string{"first RunningDifferentially -20"}},
		"a plan of one that is deleted goes":           {of: []change{deleted, planned("default", secondURL)}, want: []string{"first RunningDifferentially -20"}},
		"what another cluster has started is added":    {of: []change{runs(secondURL)}, want: []string{"first Aborted -20", "second RunningDifferentially -20"}},
		"what others have started is not":              {of: []change{runs(theirsURL)}, want: []string{"first Aborted -20"}},
		"another backup on a tag ends the earlier one": {of: []change{ended, runs(theirsURL)}, want: []string{"first Aborted -20"}},
		"a forged entry brings in nothing":             {of: []change{listed("other", "file:///x", "Running"), also(contract.FDBTag{Tag: "other", Running: true, State: "Running", URL: "file:///x"})}, want: []string{"first RunningDifferentially -20", " Running -"}},
	}
	number := func(point *contract.FDBPoint) string {
		if point == nil {
			return ""
		}
		return strconv.FormatInt(point.Version, 10)
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s := inOrder(test.of...)
			var found []string
			merged := fdbbackup.Merge(s)
			for _, entry := range merged {
				found = append(found, names[entry.URL]+" "+entry.State+" "+number(entry.Oldest)+"-"+number(entry.Latest))
			}
			assert.Equal(t, test.want, found)
			s.View.Backups = merged
			assert.Equal(t, merged, fdbbackup.Merge(s), "a second inspection changes nothing")
		})
	}
}

func TestAPlanIsWrittenDown(t *testing.T) {
	desired := contract.FDBDesired{Tag: "default", URL: baseURL, TimestampFormat: fdb.DefaultTimestampFormat, KeyRanges: []string{"a b"}}
	object := &fdbv1alpha1.FoundationDBBackup{}
	object.Status.Backups = []fdbv1alpha1.BackupDetails{{Tag: "default", URL: firstURL, State: fdb.StateNeverRan}}
	require.NoError(t, gather.ApplyPlan(object, desired, hour(11)))
	require.NoError(t, gather.ApplyPlan(object, desired, hour(11)), "the same place is written down once")
	require.Equal(t, []fdbv1alpha1.BackupDetails{
		{Tag: "default", URL: firstURL, State: fdb.StateNeverRan}, // may have been started: the next inspection shows it
		{Tag: "default", URL: secondURL, State: fdb.StateNeverRan, KeyRanges: []string{"a b"}},
	}, object.Status.Backups)
	desired.TimestampFormat = ":15"
	require.Error(t, gather.ApplyPlan(object, desired, hour(11)))
}

func TestAPlaceThatWasWrittenToIsOccupied(t *testing.T) {
	daily := func(s *fdbbackup.Situation) {
		s.View.Desired.TimestampFormat = "-2006-01-02"
		s.View.Backups[0].URL = "blobstore://lab@s3.local/lab-2026-08-01?bucket=fdb-backups"
		s.Seen.Tags[0].URL = s.View.Backups[0].URL
	}
	trouble := fdbbackup.Occupied(inOrder(daily, ended), hour(13))
	require.NotNil(t, trouble)
	require.Equal(t, contract.FDBClassUsed, trouble.Class)
	require.Contains(t, trouble.Message, "one with seconds")
	require.Nil(t, fdbbackup.Occupied(inOrder(daily, ended), hour(25)), "the next day")
	require.Nil(t, fdbbackup.Occupied(inOrder(ended), hour(13)), "with the seconds in the path")
	require.NotNil(t, fdbbackup.Occupied(inOrder(ended, func(s *fdbbackup.Situation) { s.View.Backups = nil }), hour(10)), "only the database knows")
}

func TestFindingsAreWrittenDown(t *testing.T) {
	object := &fdbv1alpha1.FoundationDBBackup{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	found := func(generation int64, conditions ...contract.FDBCondition) fdbv1alpha1.FoundationDBBackupStatus {
		gather.ApplyFindings(object, contract.FDBFindings{
			Generation: generation, Conditions: conditions,
			Backups: []contract.FDBBackup{{Tag: "default", URL: firstURL, State: "Running", Latest: &contract.FDBPoint{Version: 3, Time: 4}}},
		}, hour(int(generation)+10+len(object.Status.Conditions)))
		return object.Status
	}
	status := found(1)
	require.False(t, status.Reconciled, "of an older spec")
	require.EqualValues(t, 1, status.ObservedGeneration)
	require.EqualValues(t, 4, status.Backups[0].LatestRestorable.Timestamp.Unix())
	require.Nil(t, status.Backups[0].OldestData)
	require.True(t, found(2).Reconciled)

	differs := contract.FDBCondition{Type: fdbv1alpha1.ConditionMisconfiguredBackup, Reason: fdbv1alpha1.ReasonParametersDiffer, Message: "m"}
	status = found(2, differs)
	require.False(t, status.Reconciled)
	began := status.Conditions[0].LastTransitionTime
	differs.Message = "other words"
	status = found(2, differs)
	require.Equal(t, began, status.Conditions[0].LastTransitionTime, "the same reason holds on")
	require.Equal(t, "other words", status.Conditions[0].Message)
	differs.Reason = fdbv1alpha1.ReasonSecretMissing
	require.NotEqual(t, began, found(2, differs).Conditions[0].LastTransitionTime, "another reason")
	status = found(2)
	require.Empty(t, fdbv1alpha1.Unmet(status.Conditions), "a condition is there only while it holds")
	require.True(t, meta.IsStatusConditionTrue(status.Conditions, fdbv1alpha1.ConditionReady))
	object.DeletionTimestamp = new(metav1.Now())
	ready := meta.FindStatusCondition(found(2).Conditions, fdbv1alpha1.ConditionReady)
	require.Equal(t, metav1.ConditionFalse, ready.Status)
	require.Equal(t, fdbv1alpha1.ReasonDeleting, ready.Reason)
}

func TestEvents(t *testing.T) {
	status := func(reconciled, restorable bool, reasons ...string) fdbv1alpha1.FoundationDBBackupStatus {
		made := fdbv1alpha1.FoundationDBBackupStatus{Reconciled: reconciled, Backups: []fdbv1alpha1.BackupDetails{{URL: firstURL}}}
		if restorable {
			made.Backups[0].LatestRestorable = &fdbv1alpha1.RestorePoint{Version: 1}
		}
		for _, reason := range reasons {
			made.Conditions = append(made.Conditions, metav1.Condition{Type: fdbv1alpha1.ConditionIncorrectBackupState, Reason: reason, Message: "m"})
		}
		return made
	}
	tests := map[string]struct {
		before, after fdbv1alpha1.FoundationDBBackupStatus
		want          []string
	}{
		"nothing new":                  {before: status(true, true), after: status(true, true)},
		"a fault":                      {before: status(true, true), after: status(false, true, "ToolFailing"), want: []string{"Warning ToolFailing"}},
		"a fault that goes on":         {before: status(false, true, "ToolFailing"), after: status(false, true, "ToolFailing")},
		"a fault that becomes another": {before: status(false, true, "ToolFailing"), after: status(false, true, "TagTaken"), want: []string{"Warning TagTaken"}},
		"a step on the way":            {before: status(false, false), after: status(false, false, "InitialSnapshot"), want: []string{"InitialSnapshot"}},
		"the end of the way":           {before: status(false, false, "InitialSnapshot"), after: status(true, true), want: []string{"Restorable", "Reconciled"}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			var events []string
			for _, event := range gather.StatusEvents(test.before, test.after) {
				words := event.Reason
				if event.Warning {
					words = "Warning " + words
				}
				events = append(events, words)
			}
			assert.Equal(t, test.want, events)
		})
	}
}
