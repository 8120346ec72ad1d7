package velero

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"holdfast.dev/holdfast/activities/backup"
	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// waiting is a NonAdminBackup whose status says that it waits for its turn.
func waiting(name string) *oadpv1alpha1.NonAdminBackup {
	nab := fake.NAB(name)
	backup.ApplyVerdict(nab, backup.Verdict{Accepted: true, Reason: oadpv1alpha1.ReasonBackupAccepted},
		fake.VeleroName(name), fake.OADPNamespace)
	backup.ApplyWaiting(nab)
	return nab
}

// Who needs a turn requests one; its workflow is signalled only if it has to write that it waits.
func TestWhoNeedsATurnRequestsOne(t *testing.T) {
	aged := func(nab *oadpv1alpha1.NonAdminBackup, age time.Duration) *oadpv1alpha1.NonAdminBackup {
		nab.CreationTimestamp = metav1.NewTime(time.Now().Add(-age))
		return nab
	}
	requested := []string{"request backups team/" + name}
	made, _ := tracked(name, velerov1.BackupPhaseInProgress)
	going := fake.NAB(name)
	going.Spec.DeleteBackup = true
	for title, test := range map[string]struct {
		nab    *oadpv1alpha1.NonAdminBackup
		noted  []string
		starts bool
		again  bool // it is judged again in a moment
	}{
		"new":                    {aged(fake.NAB(name), 0), requested, false, true},
		"its turn did not come":  {aged(fake.NAB(name), time.Minute), requested, true, false},
		"of a clock that is off": {aged(fake.NAB(name), -time.Hour), requested, true, false},
		"waits":                  {waiting(name), requested, false, false},
		"created":                {made, nil, true, false}, // its Velero Backup is not in the cache
		"is to be deleted":       {going, nil, true, false},
	} {
		t.Run(title, func(t *testing.T) {
			s := newStation(t, test.nab)
			s.turns.Limits = map[contract.Pool]bool{contract.PoolBackups: true}
			result, err := s.backups.Reconcile(t.Context(), request(name))
			require.NoError(t, err)
			assert.Equal(t, test.noted, s.turns.Noted)
			assert.Equal(t, test.starts, len(s.signals.Sent) > 0)
			assert.Equal(t, test.again, result.RequeueAfter <= turnPatience)
		})
	}
}

// Without a limit in the policy nothing is requested, and who still waits is woken.
func TestWithoutALimitNobodyWaits(t *testing.T) {
	s := newStation(t, waiting(name))
	_, err := s.backups.Reconcile(t.Context(), request(name))
	require.NoError(t, err)
	assert.Empty(t, s.turns.Noted)
	assert.Len(t, s.signals.Sent, 1)
	s.backups.PolicyWritten(t.Context(), false)
	assert.NotEmpty(t, s.backups.Requested(), "a change of the policy has it judged")
}

// A turn ends when Velero has finished, or when what was to be made is not needed any more.
func TestWhatEndsATurn(t *testing.T) {
	nab, made := tracked(name, velerov1.BackupPhaseInProgress)
	in := func(phase velerov1.BackupPhase) *velerov1.Backup {
		return edited(made, func(b *velerov1.Backup) { b.Status.Phase = phase })
	}
	for title, test := range map[string]struct {
		before, after *velerov1.Backup
		ends          bool
	}{
		"Velero begins":      {in("New"), in("InProgress"), false},
		"Velero has written": {in("InProgress"), in("Finalizing"), false},
		"Velero has ended":   {in("Finalizing"), in("Completed"), true},
		"it failed":          {in("InProgress"), in("Failed"), true},
		"seen again":         {in("Completed"), in("Completed"), false},
		"deleted in between": {in("InProgress"), nil, true},
		"deleted later":      {in("Completed"), nil, false},
	} {
		t.Run(title, func(t *testing.T) {
			s := newStation(t, nab)
			if test.after != nil {
				s.backups.veleroEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}, &recordingQueue{})
			} else {
				s.backups.veleroEvents().Delete(t.Context(), event.DeleteEvent{Object: test.before}, &recordingQueue{})
			}
			var want []string
			if test.ends {
				want = []string{"ended backups team/" + name}
			}
			assert.Equal(t, want, s.turns.Noted)
		})
	}
	s := newStation(t)
	gone := func(of events, object client.Object) {
		of.Delete(t.Context(), event.DeleteEvent{Object: object}, &recordingQueue{})
	}
	gone(s.backups.events(), waiting(name))
	assert.Equal(t, []string{"not needed backups team/" + name}, s.turns.Noted)
	gone(s.backups.events(), nab)
	assert.Len(t, s.turns.Noted, 1, "its Velero Backup will say when it ends")
}
