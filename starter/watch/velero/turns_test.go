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

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/workflows/contract"
)

// waiting is a NonAdminBackup whose status says that it waits for its turn.
func waiting(name string) *oadpv1alpha1.NonAdminBackup {
	nab := fake.NAB(name)
	lifecycle.ApplyVerdict(nab, check.Verdict{Accepted: true, Reason: oadpv1alpha1.ReasonBackupAccepted},
		fake.VeleroName(name), fake.OADPNamespace)
	lifecycle.ApplyWaiting(nab)
	return nab
}

// Who needs a turn requests one; its workflow is signalled only if it has to write that it waits.
func TestWhoNeedsATurnRequestsOne(t *testing.T) {
	t.Run("who waits does not start", func(t *testing.T) {
		s := newStation(t, waiting(name))
		for _, limited := range []bool{true, false} { // without a limit all that wait start: some at a time
			s.turns.Limits = map[contract.Pool]bool{contract.PoolBackups: limited}
			view, err := s.backups.judge(t.Context(), s.cache.Client, fake.Ref(name))
			require.NoError(t, err)
			assert.Equal(t, !limited, view.Unstarted)
			assert.Equal(t, !limited, view.Due)
		}
	})
	aged := func(nab *oadpv1alpha1.NonAdminBackup, age time.Duration) *oadpv1alpha1.NonAdminBackup {
		nab.CreationTimestamp = metav1.NewTime(time.Now().Add(-age))
		return nab
	}
	young := fake.NAB(name)
	requested := []string{"request backups team/" + name}
	made, _ := tracked(name, velerov1.BackupPhaseInProgress)
	behind, ended := tracked(name, velerov1.BackupPhaseCompleted)
	behind.Status = oadpv1alpha1.NonAdminBackupStatus{}
	going := fake.NAB(name)
	going.Spec.DeleteBackup = true
	for title, test := range map[string]struct {
		nab    *oadpv1alpha1.NonAdminBackup
		ends   int // turns that ended within the last second; many of them leave no room to say who waits
		noted  []string
		starts bool
		again  bool // it is judged again in a moment
	}{
		"new":                    {young, 0, requested, false, true},
		"its turn does not come": {aged(fake.NAB(name), 5*time.Second), 0, requested, true, false},
		"its turn may come soon": {aged(fake.NAB(name), 5*time.Second), 9, requested, false, true},
		"its turn has not come":  {aged(fake.NAB(name), time.Minute), 99, requested, true, false},
		"it has to wait to say":  {aged(fake.NAB(name), time.Minute), 100, requested, false, true},
		"of a clock that is off": {aged(fake.NAB(name), -time.Hour), 0, requested, true, false},
		"waits":                  {waiting(name), 9, requested, false, false},
		"has its Velero Backup":  {made, 0, nil, true, false}, // which is not in the cache
		"the status is behind":   {behind, 9, nil, true, false},
		"is to be deleted":       {going, 0, nil, true, false},
	} {
		t.Run(title, func(t *testing.T) {
			aged(young, -time.Second) // now, and whole seconds are kept
			s := newStation(t, test.nab)
			if test.nab == behind {
				s = newStation(t, test.nab, ended)
			}
			s.turns.Limits, s.turns.EndedLately = map[contract.Pool]bool{contract.PoolBackups: true}, test.ends
			s.turns.Busy = test.ends >= 100
			result, err := s.backups.Reconcile(t.Context(), request(name))
			require.NoError(t, err)
			assert.Equal(t, test.noted, s.turns.Noted)
			assert.Equal(t, test.starts, len(s.signals.Sent) > 0)
			assert.Equal(t, test.again, result.RequeueAfter <= heldBack)
		})
	}
}

// Who waits since now, but was there before, requests a turn: it may have had one when it was refused.
func TestWhoBeginsToWaitRequestsATurn(t *testing.T) {
	refused := fake.NAB(name)
	lifecycle.ApplyVerdict(refused, check.Verdict{Reason: "InvalidBackupSpec"}, "", fake.OADPNamespace)
	for title, test := range map[string]struct {
		before, after *oadpv1alpha1.NonAdminBackup
		want          []string
	}{
		"it was refused": {refused, waiting(name), []string{"waits backups team/" + name}},
		"it is new":      {fake.NAB(name), waiting(name), nil}, // and has requested one
		"it is new, and only workers know a limit": {fake.NAB(name), waiting(name), []string{"waits backups team/" + name}},
		"it waited":     {waiting(name), waiting(name), nil},
		"it is refused": {waiting(name), refused, nil},
	} {
		t.Run(title, func(t *testing.T) {
			s := newStation(t)
			s.turns.Limits = map[contract.Pool]bool{contract.PoolBackups: title != "it is new, and only workers know a limit"}
			s.backups.events().Update(t.Context(), event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}, &recordingQueue{})
			assert.Equal(t, test.want, s.turns.Noted)
		})
	}
}

// Without a limit in the policy who still waits is woken, and requests a turn: workers may keep a limit that was removed.
func TestWithoutALimitNobodyWaits(t *testing.T) {
	s := newStation(t, waiting(name))
	_, err := s.backups.Reconcile(t.Context(), request(name))
	require.NoError(t, err)
	assert.Equal(t, []string{"request backups team/" + name}, s.turns.Noted)
	assert.Len(t, s.signals.Sent, 1)
	s.backups.PolicyWritten(t.Context(), false)
	assert.NotEmpty(t, s.backups.Requested(), "a change of the policy has it judged")
}

// forged is a Velero Backup that says that it is for a tenant's object, by another name: out of a bucket.
func forged(made *velerov1.Backup) *velerov1.Backup {
	made = made.DeepCopy()
	made.Name = "forged"
	return made
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
		"of another's name":  {forged(in("InProgress")), forged(in("Failed")), false},
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
				want = []string{"not needed backups team/" + name}
			}
			assert.Equal(t, want, s.turns.Noted)
		})
	}
	s := newStation(t)
	stalled := nab.DeepCopy()
	stalled.Status.Conditions = append(stalled.Status.Conditions, metav1.Condition{
		Type: string(oadpv1alpha1.NonAdminConditionVeleroStalled), Status: metav1.ConditionTrue,
	})
	s.backups.events().Update(t.Context(), event.UpdateEvent{ObjectOld: nab, ObjectNew: stalled}, &recordingQueue{})
	assert.Equal(t, []string{"not needed backups team/" + name}, s.turns.Noted, "Velero stalls")
	s = newStation(t)
	gone := func(of events, object client.Object) {
		of.Delete(t.Context(), event.DeleteEvent{Object: object}, &recordingQueue{})
	}
	gone(s.backups.events(), waiting(name))
	assert.Equal(t, []string{"gone backups team/" + name}, s.turns.Noted, "Velero may work on what is being made for it")
	deleting := waiting(name)
	deleting.Status.Phase = oadpv1alpha1.NonAdminPhaseDeleting
	gone(s.backups.events(), deleting)
	assert.Len(t, s.turns.Noted, 2, "it waited until it was to be deleted")
	gone(s.backups.events(), nab)
	assert.Len(t, s.turns.Noted, 2, "its Velero Backup will say when it ends")
}
