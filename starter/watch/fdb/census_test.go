package fdb

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
)

// hour is a time of one day.
func hour(n int) metav1.Time { return metav1.Date(2026, 8, 1, n, 0, 0, 0, time.Local) }

// fdbBackup returns a FoundationDBBackup that is as its spec says, with a backup that is restorable until an hour.
func fdbBackup(name string, restorable int, change func(*fdbv1alpha1.FoundationDBBackup)) *fdbv1alpha1.FoundationDBBackup {
	until := hour(restorable)
	object := &fdbv1alpha1.FoundationDBBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 2, CreationTimestamp: hour(0)},
		Status: fdbv1alpha1.FoundationDBBackupStatus{
			ObservedGeneration: 2, Reconciled: true,
			Backups: []fdbv1alpha1.BackupDetails{{LatestRestorable: &fdbv1alpha1.RestorePoint{Version: 7, Timestamp: &until}}},
		},
	}
	if change != nil {
		change(object)
	}
	return object
}

// troubled gives a backup a condition since an hour.
func troubled(kind, reason string, since int) func(*fdbv1alpha1.FoundationDBBackup) {
	return func(object *fdbv1alpha1.FoundationDBBackup) {
		object.Status.Reconciled = false
		object.Status.Conditions = append(object.Status.Conditions, metav1.Condition{
			Type: kind, Reason: reason, LastTransitionTime: hour(since),
		})
	}
}

// census is what is counted.
func (s *station) census(t *testing.T) metrics.FDBCensus {
	t.Helper()
	census := &metrics.Census{}
	require.NoError(t, s.backups.Count(t.Context(), census))
	return census.FoundationDB
}

func TestTheCensusCountsFoundationDBBackups(t *testing.T) {
	stopped := func(object *fdbv1alpha1.FoundationDBBackup) { object.Spec.BackupState = fdbv1alpha1.BackupStateStopped }
	tests := map[string]struct {
		backups []*fdbv1alpha1.FoundationDBBackup
		// wantConditions are those that are not counted as 0.
		wantConditions                   map[metrics.FDBCondition]int
		wantStates                       map[metrics.FDBState]int
		wantRestorable, wantFailureSince time.Time
	}{
		"none": {wantStates: map[metrics.FDBState]int{}, wantConditions: map[metrics.FDBCondition]int{}},
		"the one that is furthest behind counts, unless it shall not run": {
			backups: []*fdbv1alpha1.FoundationDBBackup{
				fdbBackup("a", 9, nil), fdbBackup("b", 8, nil), fdbBackup("stopped", 3, stopped),
				fdbBackup("new", 0, func(object *fdbv1alpha1.FoundationDBBackup) { object.Status.Backups[0].LatestRestorable = nil }),
			},
			wantStates: map[metrics.FDBState]int{metrics.FDBReconciled: 4}, wantConditions: map[metrics.FDBCondition]int{},
			wantRestorable: hour(8).Time,
		},
		"of a backup that is replaced the best container counts": {
			backups: []*fdbv1alpha1.FoundationDBBackup{fdbBackup("a", 9, func(object *fdbv1alpha1.FoundationDBBackup) {
				object.Status.Backups = append(object.Status.Backups, fdbv1alpha1.BackupDetails{State: "Running"})
			})},
			wantStates: map[metrics.FDBState]int{metrics.FDBReconciled: 1}, wantConditions: map[metrics.FDBCondition]int{},
			wantRestorable: hour(9).Time,
		},
		"who waits for a first snapshot is in no trouble": {
			backups: []*fdbv1alpha1.FoundationDBBackup{
				fdbBackup("a", 9, troubled(fdbv1alpha1.ConditionIncorrectBackupState, fdbv1alpha1.ReasonWaitingForSlot, 1)),
				fdbBackup("b", 9, troubled(fdbv1alpha1.ConditionIncorrectBackupState, fdbv1alpha1.ReasonInitialSnapshot, 1)),
			},
			wantStates: map[metrics.FDBState]int{metrics.FDBUnreconciled: 2}, wantRestorable: hour(9).Time,
			wantConditions: map[metrics.FDBCondition]int{
				{Type: "IncorrectBackupState", Reason: "WaitingForInitialSnapshotSlot"}: 1,
				{Type: "IncorrectBackupState", Reason: "InitialSnapshot"}:               1,
			},
		},
		"who has been in trouble for longest counts": {
			backups: []*fdbv1alpha1.FoundationDBBackup{
				fdbBackup("a", 9, troubled(fdbv1alpha1.ConditionIncorrectBackupState, fdbv1alpha1.ReasonToolFailing, 6)),
				fdbBackup("b", 9, func(object *fdbv1alpha1.FoundationDBBackup) {
					troubled(fdbv1alpha1.ConditionIncorrectBackupState, fdbv1alpha1.ReasonToolFailing, 5)(object)
					troubled("IncorrectMood", "Forged", 7)(object)
				}),
			},
			wantStates: map[metrics.FDBState]int{metrics.FDBUnreconciled: 2}, wantRestorable: hour(9).Time, wantFailureSince: hour(5).Time,
			wantConditions: map[metrics.FDBCondition]int{
				{Type: "IncorrectBackupState", Reason: "ToolFailing"}: 2, {Type: "unknown", Reason: "unknown"}: 1,
			},
		},
		"one that is being deleted, and one that nobody has seen": {
			backups: []*fdbv1alpha1.FoundationDBBackup{
				fdbBackup("a", 9, func(object *fdbv1alpha1.FoundationDBBackup) {
					deleted := hour(4)
					object.DeletionTimestamp, object.Finalizers = &deleted, []string{fdbv1alpha1.FinalizerStop}
				}),
				fdbBackup("b", 9, func(object *fdbv1alpha1.FoundationDBBackup) {
					object.CreationTimestamp, object.Status = hour(6), fdbv1alpha1.FoundationDBBackupStatus{}
				}),
			},
			wantStates:       map[metrics.FDBState]int{metrics.FDBDeleting: 1, metrics.FDBUnreconciled: 1},
			wantFailureSince: hour(4).Time, wantConditions: map[metrics.FDBCondition]int{},
		},
		"a spec that was changed since": {
			backups: []*fdbv1alpha1.FoundationDBBackup{
				fdbBackup("a", 9, func(object *fdbv1alpha1.FoundationDBBackup) { object.Generation = 3 }),
			},
			wantStates: map[metrics.FDBState]int{metrics.FDBUnreconciled: 1}, wantConditions: map[metrics.FDBCondition]int{},
			wantRestorable: hour(9).Time,
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			var objects []client.Object
			for _, object := range test.backups {
				objects = append(objects, object)
			}
			s := newStation(t, objects...)
			found := s.census(t)
			assert.Equal(t, test.wantStates, found.Backups)
			assert.Equal(t, test.wantRestorable, found.OldestRestorable)
			assert.Equal(t, test.wantFailureSince, found.OldestFailure)
			maps.DeleteFunc(found.Conditions, func(_ metrics.FDBCondition, number int) bool { return number == 0 })
			assert.Equal(t, test.wantConditions, found.Conditions)
		})
	}
}

// Every reason that the type has is counted by its name.
func TestTheCensusKnowsEveryReason(t *testing.T) {
	known := 0
	for _, reasons := range knownConditions {
		known += len(reasons)
	}
	s := newStation(t)
	assert.Len(t, s.census(t).Conditions, known)
	assert.Equal(t, constantsNamed(t, "Reason"), known)
}

// constantsNamed counts the constants of the FoundationDB API whose names begin so.
func constantsNamed(t *testing.T, prefix string) (found int) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../../k8s/api/fdb/v1alpha1/conditions.go", nil, parser.ParseComments)
	require.NoError(t, err)
	for _, declaration := range file.Decls {
		block, is := declaration.(*ast.GenDecl)
		if !is || strings.Contains(block.Doc.Text(), "Restore") { // those of another kind
			continue
		}
		for _, spec := range block.Specs {
			if value, is := spec.(*ast.ValueSpec); is && strings.HasPrefix(value.Names[0].Name, prefix) {
				found++
			}
		}
	}
	return found
}
