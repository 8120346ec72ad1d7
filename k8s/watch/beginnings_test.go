package watch

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

func of(namespace string, i int) Request {
	return Request{Namespace: namespace, Name: fmt.Sprint(i), UID: fmt.Sprint(i)}
}

// full are beginnings of which no more may be handed over.
func full(t *testing.T) *beginnings {
	t.Helper()
	b := newBeginnings()
	for i := range beginningsAtATime {
		require.True(t, b.admit(of("first", i)))
	}
	return b
}

func TestBeginningsAreHandedOverAsOthersBegin(t *testing.T) {
	b := full(t)
	assert.True(t, b.admit(of("first", 0)), "it was handed over before")
	assert.False(t, b.admit(of("next", 1)))
	assert.False(t, b.admit(of("next", 1).forced(true)), "it waits already")
	assert.Empty(t, b.due())
	b.begun(of("first", 7))
	assert.Len(t, b.moved, 1)
	assert.False(t, b.admit(of("late", 1)), "no one overtakes what waits")
	assert.Equal(t, []Request{of("next", 1).forced(true)}, b.due())
	assert.True(t, b.admit(of("next", 1)), "its turn has come")
	assert.Empty(t, b.due())
	b.begun(of("next", 1))
	b.begun(of("next", 1))
	assert.Equal(t, []Request{of("late", 1)}, b.due())
}

// A tenant with thousands of new objects must not stand before one with a single one.
func TestTurnsToBeginGoRoundTheNamespaces(t *testing.T) {
	b := full(t)
	for i := range 1000 {
		require.False(t, b.admit(of("many", i)))
	}
	require.False(t, b.admit(of("few", 1)))
	for i := range 3 {
		b.begun(of("first", i))
	}
	assert.Equal(t, []Request{of("many", 0), of("few", 1), of("many", 1)}, b.due())
}

// A worker that is away, or an object whose status cannot be written, keeps nobody from being handed over.
func TestWhatDoesNotBeginIsWaitedForNoLongerThanThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := full(t)
		require.False(t, b.admit(of("next", 1)))
		time.Sleep(beginningPatience - time.Second)
		assert.Empty(t, b.due())
		time.Sleep(time.Second)
		assert.Equal(t, []Request{of("next", 1)}, b.due())
		assert.True(t, b.admit(of("first", 0)), "and it may come again")
	})
}

// takes returns how long it takes until 100 objects of a tenant have begun, each within a second, beside 4,000 of other
// namespaces that never begin.
func takes(attackers int) time.Duration {
	b := newBeginnings()
	begin := func(request Request) {
		if request.Namespace == "victim" {
			time.AfterFunc(time.Second, func() { b.begun(request) })
		}
	}
	ask := func(request Request) {
		if b.admit(request) {
			begin(request)
		}
	}
	for attacker := range attackers {
		for i := range 4000 / attackers {
			ask(of(fmt.Sprint("attacker-", attacker), i))
		}
	}
	for i := range 100 {
		ask(of("victim", i))
	}
	victims := func(request Request) bool { return request.Namespace == "victim" }
	for started := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		for _, request := range b.due() {
			begin(request)
		}
		b.mutex.Lock()
		begun := len(b.waiting["victim"]) == 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(b.handed)), victims)
		b.mutex.Unlock()
		if begun {
			return time.Since(started)
		}
	}
}

func TestWhatNeverBeginsTakesNoTurnFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alone := takes(0)
		for _, attackers := range []int{1, 4, 16} {
			// Each namespace takes a turn once before it is known for what it is.
			bound := 2*alone + beginningPatience
			for met := 0; met < attackers; met += beginningsAtATime {
				bound += beginningPatience
			}
			assert.LessOrEqual(t, takes(attackers), bound, "beside %d namespaces", attackers)
		}
	})
}

func TestANamespaceIsLateAsLongAsItsObjectsAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := func() *beginnings {
			b := full(t)
			time.Sleep(beginningPatience)
			require.Empty(t, b.due())
			require.True(t, b.isLate("first"))
			return b
		}
		b := late()
		for i := range beginningsAtATime {
			require.True(t, b.isLate("first"))
			b.begun(of("first", i))
		}
		assert.Empty(t, b.late, "its worker was away")

		b = late()
		for i := range beginningsAtATime {
			b.left(of("first", i))
		}
		require.Empty(t, b.due())
		assert.True(t, b.isLate("first"), "to delete them must not help")
		assert.Empty(t, b.late["first"].objects, "what is gone is not remembered")
		time.Sleep(suspicion)
		require.Empty(t, b.due())
		assert.Empty(t, b.late)
	})
}

func TestWhatWaitedIsLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t, fake.NAB(name))
		s.beginnings = full(t)
		go func() { assert.NoError(t, s.handOver(t.Context())) }()
		result, err := s.look(t.Context(), request(name))
		require.NoError(t, err)
		assert.Zero(t, result, "it comes again when its turn has come")
		assert.Empty(t, s.signals.told)
		s.beginnings.begun(of("first", 1))
		synctest.Wait()
		require.Equal(t, []Request{request(name)}, s.asked())
		_, err = s.look(t.Context(), request(name))
		require.NoError(t, err)
		assert.Len(t, s.signals.told, 1)
	})
}

// Only what has not begun ever waits.
func TestWhatHasBegunNeverWaits(t *testing.T) {
	going, velero := tracked("going", velerov1.BackupPhaseInProgress)
	deleted := fake.NAB("deleted")
	deleted.Finalizers = []string{oadpv1alpha1.NabFinalizer}
	deleted.DeletionTimestamp = &metav1.Time{Time: fake.DownloadTime}
	told := fake.NAB("told-to-go")
	told.Spec.DeleteBackup = true
	s := newStation(t, going, velero, deleted, told)
	s.beginnings = full(t)
	for _, name := range []string{"going", "deleted", "told-to-go", "gone"} {
		_, err := s.look(t.Context(), request(name))
		require.NoError(t, err)
	}
	assert.Len(t, s.signals.told, 4)

	nar := fake.NAR(name, "source")
	s = newStation(t, nar)
	s.restores.beginnings = full(t)
	_, err := s.restores.look(t.Context(), request(name))
	require.NoError(t, err)
	assert.Empty(t, s.signals.told, "restores begin in turns of their own")
}

func TestAnObjectThatBeginsMakesRoom(t *testing.T) {
	s := newStation(t)
	require.True(t, s.beginnings.admit(request(name)))
	before := fake.NAB(name)
	happens(t, s.backupEvents(), before, edited(before, func(nab *oadpv1alpha1.NonAdminBackup) {
		nab.Status.Phase = oadpv1alpha1.NonAdminPhaseNew
	}))
	assert.Len(t, s.beginnings.handed, 1, "its Velero Backup is not made yet")
	happens(t, s.backupEvents(), before, edited(before, func(nab *oadpv1alpha1.NonAdminBackup) {
		nab.Status.Phase = oadpv1alpha1.NonAdminPhaseCreated
	}))
	assert.Empty(t, s.beginnings.handed)
	require.True(t, s.beginnings.admit(request(name)))
	_, err := s.look(t.Context(), request(name)) // it is gone
	require.NoError(t, err)
	assert.Empty(t, s.beginnings.handed)
}

// Ends come before all else, beginnings after all else.
func TestTheOrderOfTheWorkqueue(t *testing.T) {
	going, velero := tracked("going", velerov1.BackupPhaseInProgress)
	started, itsVelero := tracked("started", velerov1.BackupPhaseNew)
	edit := fake.NAB("edited")
	s := newStation(t, going, velero, started, itsVelero, edit)
	q := priorityqueue.New[Request]("order")
	defer q.ShutDown()
	s.backupEvents().Create(t.Context(), event.CreateEvent{Object: fake.NAB("new")}, q)
	s.backupEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: edit, ObjectNew: edited(edit, func(nab *oadpv1alpha1.NonAdminBackup) {
		nab.Generation++
	})}, q)
	s.veleroBackupEvents().Update(t.Context(), event.UpdateEvent{
		ObjectOld: itsVelero, ObjectNew: edited(itsVelero, func(b *velerov1.Backup) { b.Status.Phase = velerov1.BackupPhaseInProgress }),
	}, q)
	s.veleroBackupEvents().Update(t.Context(), event.UpdateEvent{
		ObjectOld: velero, ObjectNew: edited(velero, func(b *velerov1.Backup) { b.Status.Phase = velerov1.BackupPhaseCompleted }),
	}, q)
	s.backupEvents().Delete(t.Context(), event.DeleteEvent{Object: fake.NAB("gone")}, q)
	var order []string
	for range 5 {
		next, _ := q.Get()
		order = append(order, next.Name)
		q.Done(next)
	}
	assert.Equal(t, []string{"going", "gone", "edited", "started", "new"}, order)
}
