package velero

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/starter/watch/watchtest"
)

// following is a station of a watcher that follows.
func following(t *testing.T, objects ...client.Object) *station {
	t.Helper()
	s := newStation(t, objects...)
	s.env.Follows = func() bool { return true }
	return s
}

// afterHeadStart has an event of a backup judged when its head start is over.
func (s *station) afterHeadStart(t *testing.T) {
	t.Helper()
	s.backups.Add(&recordingQueue{}, request(name))
	result, err := s.backups.Reconcile(t.Context(), request(name))
	require.NoError(t, err)
	require.NotZero(t, result.RequeueAfter)
	require.Empty(t, s.signals.Sent)
	time.Sleep(result.RequeueAfter)
	_, err = s.backups.Reconcile(t.Context(), request(name))
	require.NoError(t, err)
}

// What a watcher that follows signals after the leader's head start: everything but what only waits for Velero.
func TestAWatcherThatFollowsLeavesWhatWaitsForVelero(t *testing.T) {
	running, made := tracked(name, velerov1.BackupPhaseInProgress)
	ended := edited(made, func(o *velerov1.Backup) { o.Status.Phase = velerov1.BackupPhaseCompleted })
	settled, settledMade := tracked(name, velerov1.BackupPhaseCompleted)
	for title, test := range map[string]struct {
		there        []client.Object
		signal, left bool
	}{
		"new":                  {there: []client.Object{fake.NAB(name)}, signal: true},
		"waits for Velero":     {there: []client.Object{running, made}, left: true},
		"Velero has ended":     {there: []client.Object{running, ended}, signal: true},
		"Velero's is not here": {there: []client.Object{running}, signal: true},
		"settled":              {there: []client.Object{settled, settledMade}},
		"gone":                 {signal: true},
		"edited": {
			there:  []client.Object{edited(running, func(o *oadpv1alpha1.NonAdminBackup) { o.Generation++ }), made},
			signal: true,
		},
		"to be deleted": {there: []client.Object{edited(running, func(o *oadpv1alpha1.NonAdminBackup) {
			o.Spec.DeleteBackup = true
		}), made}, signal: true},
	} {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := following(t, test.there...)
				s.afterHeadStart(t)
				assert.Equal(t, test.signal, len(s.signals.Sent) == 1, s.signals.Sent)
				s.backups.Lead(t.Context())
				assert.Equal(t, test.left, len(s.backups.Requested()) == 1, "who leads judges what it has left")
			})
		})
	}
}

func TestAWatcherThatFollowsLeavesARestoreThatWaitsForVelero(t *testing.T) {
	running, made := restored(name, velerov1.RestorePhaseInProgress)
	for phase, waits := range map[velerov1.RestorePhase]bool{
		velerov1.RestorePhaseInProgress: true, velerov1.RestorePhaseCompleted: false, velerov1.RestorePhaseFailed: false,
	} {
		s := newStation(t, running, edited(made, func(o *velerov1.Restore) { o.Status.Phase = phase }))
		view, err := s.restores.judge(t.Context(), s.cache.Client, fake.Ref(name))
		require.NoError(t, err)
		assert.True(t, view.Due)
		assert.Equal(t, waits, view.Waits, phase)
	}
}

// Volumes that a watcher that follows has seen are in its first signal when it leads.
func TestVolumesAreRememberedWhileFollowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, made := tracked(name, velerov1.BackupPhaseInProgress)
		s := following(t, running, made)
		q := &recordingQueue{}
		s.backups.volumeEvents().Create(t.Context(), event.CreateEvent{Object: volumeOf(made.Name, "1")}, q)
		require.Equal(t, []added{{Request: request(name), After: s.env.ProgressInterval}}, q.Added)
		time.Sleep(s.env.ProgressInterval)
		s.afterHeadStart(t)
		require.Empty(t, s.signals.Sent)

		s.env.Follows = func() bool { return false }
		s.backups.Lead(t.Context())
		for _, left := range s.backups.Requested() {
			_, err := s.backups.Reconcile(t.Context(), left)
			require.NoError(t, err)
		}
		assert.Len(t, s.signals.Sent, 1)
		assert.True(t, s.signals.Volumes)
	})
}

// New objects are left to a leader that starts others. A status that changes later, of an object that this watcher has had served,
// does not show that the leader works.
func TestWhatShowsThatTheLeaderStartsObjects(t *testing.T) {
	type NAB = oadpv1alpha1.NonAdminBackup
	another := fake.NAB("another")
	created := edited(another, func(nab *NAB) { nab.Status.Phase = oadpv1alpha1.NonAdminPhaseCreated })
	for title, test := range map[string]struct {
		before, after *NAB
		left          bool
	}{
		"it starts one":           {before: another, after: created, left: true},
		"one says that it waits":  {before: another, after: waiting("another"), left: true},
		"one is judged":           {before: another, after: edited(another, func(nab *NAB) { nab.Status.Phase = oadpv1alpha1.NonAdminPhaseNew })},
		"a status changes":        {before: created, after: edited(created, func(nab *NAB) { nab.Status.QueueInfo = nil })},
		"one has waited, and has": {before: waiting("another"), after: created},
	} {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := following(t, fake.NAB(name))
				s.backups.Add(&recordingQueue{}, request(name))
				result, err := s.backups.Reconcile(t.Context(), request(name))
				require.NoError(t, err)
				time.Sleep(result.RequeueAfter)
				watchtest.Happens(t.Context(), s.backups.events(), test.before, test.after)
				_, err = s.backups.Reconcile(t.Context(), request(name))
				require.NoError(t, err)
				assert.Equal(t, test.left, len(s.signals.Sent) == 0)
			})
		})
	}
}
