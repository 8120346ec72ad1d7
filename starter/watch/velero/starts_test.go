package velero

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/starter/watch/watchtest"
)

// asMany are as many new backups as begin at a time, and one more, which is the last; all but that were looked at.
func asMany(t *testing.T) (*station, []*oadpv1alpha1.NonAdminBackup) {
	t.Helper()
	var objects []client.Object
	var nabs []*oadpv1alpha1.NonAdminBackup
	const atATime = 12
	for i := range atATime + 1 {
		nabs = append(nabs, fake.NAB(fmt.Sprint(i)))
		objects = append(objects, nabs[i])
	}
	s := newStation(t, objects...)
	for _, nab := range nabs[:atATime] {
		_, err := s.backups.Reconcile(t.Context(), controllers.RequestFor(nab))
		require.NoError(t, err)
	}
	require.Len(t, s.signals.Sent, atATime)
	s.signals.Sent = nil
	return s, nabs
}

func TestAnObjectThatBeginsMakesRoom(t *testing.T) {
	phase := func(phase oadpv1alpha1.NonAdminPhase) func(*station, *oadpv1alpha1.NonAdminBackup) {
		return func(s *station, nab *oadpv1alpha1.NonAdminBackup) {
			after := edited(nab, func(nab *oadpv1alpha1.NonAdminBackup) { nab.Status.Phase = phase })
			watchtest.Happens(t.Context(), s.backups.events(), nab, after)
		}
	}
	for title, test := range map[string]struct {
		happens func(*station, *oadpv1alpha1.NonAdminBackup)
		room    bool
	}{
		"nothing":                        {happens: func(*station, *oadpv1alpha1.NonAdminBackup) {}},
		"its Velero Backup not made yet": {happens: phase(oadpv1alpha1.NonAdminPhaseNew)},
		"created":                        {happens: phase(oadpv1alpha1.NonAdminPhaseCreated), room: true},
		"waits for its turn, as it says": {happens: func(s *station, nab *oadpv1alpha1.NonAdminBackup) {
			watchtest.Happens(t.Context(), s.backups.events(), nab, waiting(nab.Name))
		}, room: true},
		"gone": {happens: func(s *station, nab *oadpv1alpha1.NonAdminBackup) {
			s.cache.Remove(nab.DeepCopy())
			_, err := s.backups.Reconcile(t.Context(), controllers.RequestFor(nab))
			require.NoError(t, err)
			s.signals.Sent = nil
		}, room: true},
	} {
		t.Run(title, func(t *testing.T) {
			s, nabs := asMany(t)
			test.happens(s, nabs[0])
			result, err := s.backups.Reconcile(t.Context(), controllers.RequestFor(nabs[len(nabs)-1]))
			require.NoError(t, err)
			assert.Equal(t, test.room, len(s.signals.Sent) == 1)
			assert.Equal(t, test.room, result.RequeueAfter > 0, "it comes again when its turn has come")
		})
	}
}

// Only an object that has not started ever waits.
func TestWhatHasStartedNeverWaits(t *testing.T) {
	going, velero := tracked("going", velerov1.BackupPhaseInProgress)
	deleted := fake.NAB("deleted")
	deleted.Finalizers = []string{oadpv1alpha1.NabFinalizer}
	deleted.DeletionTimestamp = &metav1.Time{Time: fake.DownloadTime}
	told := fake.NAB("told-to-go")
	told.Spec.DeleteBackup = true
	behind, ended := tracked("ended", velerov1.BackupPhaseCompleted) // and the cache does not show yet that it was made
	behind.Status = oadpv1alpha1.NonAdminBackupStatus{}
	s := newStation(t, going, velero, deleted, told, behind, ended, fake.NAB("new"), fake.NAR("new", "source"))
	for name, waits := range map[string]bool{
		"going": false, "deleted": false, "told-to-go": false, "ended": false, "gone": false, "new": true,
	} {
		view, err := s.backups.judge(t.Context(), s.cache.Client, fake.Ref(name))
		require.NoError(t, err)
		assert.Equal(t, waits, view.Unstarted, name)
	}
	view, err := s.restores.judge(t.Context(), s.cache.Client, fake.Ref("new"))
	require.NoError(t, err)
	assert.True(t, view.Unstarted)
}

// Ends come before all else, starts after all else.
func TestTheOrderOfTheWorkqueue(t *testing.T) {
	going, velero := tracked("going", velerov1.BackupPhaseInProgress)
	started, itsVelero := tracked("started", velerov1.BackupPhaseNew)
	edit := fake.NAB("edited")
	s := newStation(t, going, velero, started, itsVelero, edit)
	q := priorityqueue.New[Request]("order")
	defer q.ShutDown()
	s.backups.events().Create(t.Context(), event.CreateEvent{Object: fake.NAB("new")}, q)
	s.backups.events().Update(t.Context(), event.UpdateEvent{ObjectOld: edit, ObjectNew: edited(edit, func(nab *oadpv1alpha1.NonAdminBackup) {
		nab.Generation++
	})}, q)
	s.backups.veleroEvents().Update(t.Context(), event.UpdateEvent{
		ObjectOld: itsVelero, ObjectNew: edited(itsVelero, func(b *velerov1.Backup) { b.Status.Phase = velerov1.BackupPhaseInProgress }),
	}, q)
	s.backups.veleroEvents().Update(t.Context(), event.UpdateEvent{
		ObjectOld: velero, ObjectNew: edited(velero, func(b *velerov1.Backup) { b.Status.Phase = velerov1.BackupPhaseCompleted }),
	}, q)
	s.backups.events().Delete(t.Context(), event.DeleteEvent{Object: fake.NAB("gone")}, q)
	var order []string
	for range 5 {
		next, _ := q.Get()
		order = append(order, next.Name)
		q.Done(next)
	}
	assert.Equal(t, []string{"going", "gone", "edited", "started", "new"}, order)
}
