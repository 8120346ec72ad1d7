package velero_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/k8s/velero"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// queued returns a Velero Backup that was created at a second, with no owner that Holdfast knows.
func queued(name string, second int, phase velerov1.BackupPhase) velerov1.Backup {
	return velerov1.Backup{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, CreationTimestamp: metav1.NewTime(now.Add(time.Duration(second) * time.Second)),
		},
		Status: velerov1.BackupStatus{Phase: phase},
	}
}

func numbered(b velerov1.Backup, position int) velerov1.Backup {
	b.Status.QueuePosition = position
	return b
}

func TestQueuePositions(t *testing.T) {
	tests := map[string]struct {
		backups []velerov1.Backup
		want    map[string]int
	}{
		"none": {want: map[string]int{}},
		"the oldest first, in whatever order they are listed": {
			backups: []velerov1.Backup{queued("c", 3, "New"), queued("a", 1, "New"), queued("b", 2, "")},
			want:    map[string]int{"a": 1, "b": 2, "c": 3},
		},
		"those created in the same second share a position": {
			backups: []velerov1.Backup{queued("a", 1, ""), queued("b", 2, ""), queued("c", 2, ""), queued("d", 3, "")},
			want:    map[string]int{"a": 1, "b": 2, "c": 2, "d": 4},
		},
		"the first ones may share theirs too": {
			backups: []velerov1.Backup{queued("a", 1, ""), queued("b", 1, ""), queued("c", 1, ""), queued("d", 2, "")},
			want:    map[string]int{"a": 1, "b": 1, "c": 1, "d": 4},
		},
		"what is in progress is at 1, the next behind it": {
			backups: []velerov1.Backup{queued("a", 1, "InProgress"), queued("b", 2, "New")},
			want:    map[string]int{"a": 1, "b": 2},
		},
		"what is in progress is at 1, even if an older one waits": {
			backups: []velerov1.Backup{queued("a", 1, "New"), queued("b", 2, "InProgress")},
			want:    map[string]int{"a": 1, "b": 1},
		},
		"what is finished is at 0 and holds up nobody": {
			backups: []velerov1.Backup{
				queued("a", 1, "Completed"), queued("b", 2, "PartiallyFailed"), queued("c", 3, "Failed"), queued("d", 4, "New"),
			},
			want: map[string]int{"a": 0, "b": 0, "c": 0, "d": 1},
		},
		"a failed validation has no completion time, and holds up nobody all the same": {
			backups: []velerov1.Backup{queued("a", 1, "FailedValidation"), queued("b", 2, "New")},
			want:    map[string]int{"a": 0, "b": 1},
		},
		"what Velero has moved past is at 0 and holds up nobody": {
			backups: []velerov1.Backup{
				queued("a", 1, "WaitingForPluginOperations"), queued("b", 2, "WaitingForPluginOperationsPartiallyFailed"),
				queued("c", 3, "Finalizing"), queued("d", 4, "FinalizingPartiallyFailed"), queued("e", 5, "Deleting"),
				queued("f", 6, "New"),
			},
			want: map[string]int{"a": 0, "b": 0, "c": 0, "d": 0, "e": 0, "f": 1},
		},
		"Velero numbers those that wait; those that run or are about to come before them": {
			backups: []velerov1.Backup{
				queued("running", 1, "InProgress"), queued("next", 2, "ReadyToStart"),
				numbered(queued("first", 3, "Queued"), 1), numbered(queued("second", 4, "Queued"), 2),
			},
			want: map[string]int{"running": 1, "next": 2, "first": 3, "second": 4},
		},
		"Velero's own order counts, not the age": {
			backups: []velerov1.Backup{numbered(queued("young", 9, "Queued"), 1), numbered(queued("old", 1, "Queued"), 2)},
			want:    map[string]int{"young": 1, "old": 2},
		},
		"Velero has not numbered it yet": {
			backups: []velerov1.Backup{queued("a", 1, "InProgress"), queued("b", 2, "Queued")},
			want:    map[string]int{"a": 1, "b": 2},
		},
		"a phase of a newer Velero counts as unfinished": {
			backups: []velerov1.Backup{queued("a", 1, "Pondering"), queued("b", 2, "New")},
			want:    map[string]int{"a": 1, "b": 2},
		},
		"a number left over from the queue means nothing once it runs or is done": {
			backups: []velerov1.Backup{numbered(queued("a", 1, "InProgress"), 7), numbered(queued("b", 2, "Completed"), 3)},
			want:    map[string]int{"a": 1, "b": 0},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) { assert.Equal(t, test.want, velero.QueuePositions(test.backups)) })
	}
}

func TestQueuePositionsDoNotDependOnTheOrderListed(t *testing.T) {
	phases := []velerov1.BackupPhase{
		"", "New", "Queued", "ReadyToStart", "InProgress", "Finalizing", "Completed", "Failed", "FailedValidation", "Deleting",
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		backups := make([]velerov1.Backup, random.IntN(12))
		for i := range backups {
			backups[i] = queued(string(rune('a'+i)), random.IntN(5), phases[random.IntN(len(phases))])
			backups[i].Status.QueuePosition = random.IntN(3)
		}
		want := velero.QueuePositions(backups)
		for _, b := range backups {
			if position := want[b.Name]; velero.Finished(b.Status.Phase) {
				require.Zero(t, position, "%s", b.Status.Phase)
			} else if b.Status.Phase == velerov1.BackupPhaseInProgress {
				require.Equal(t, 1, position)
			}
		}
		random.Shuffle(len(backups), func(i, j int) { backups[i], backups[j] = backups[j], backups[i] })
		require.Equal(t, want, velero.QueuePositions(backups))
	}
}

func TestARestoreWaitsForThoseBeforeIt(t *testing.T) {
	var all []velerov1.Restore
	for i, phase := range []velerov1.RestorePhase{"FailedValidation", "Finalizing", "InProgress", "New", "New"} {
		made := velerov1.Restore{ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + i))}}
		made.CreationTimestamp = metav1.NewTime(now.Add(time.Duration(i/4) * time.Second)) // a to d in one second
		made.Status.Phase = phase
		all = append(all, made)
	}
	assert.Equal(t, map[string]int{"a": 0, "b": 0, "c": 1, "d": 1, "e": 3}, velero.QueuePositions(all))
}
