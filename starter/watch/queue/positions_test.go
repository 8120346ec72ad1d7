package queue

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.uber.org/zap"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics/metricstest"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/starter/watch/velero"
	"holdfast.dev/holdfast/starter/watch/watchtest"
)

const name = "nightly"

var errAway = watchtest.ErrAway

// station is the positions without a cluster.
type station struct {
	*Positions
	cache  *fake.World
	paused error
}

func newStation(t *testing.T, objects ...client.Object) *station {
	t.Helper()
	s := &station{cache: fake.New(t, objects...)}
	s.Positions = New(Positions{
		Turns:  &recordedTurns{},
		Client: s.cache.Client, OADPNamespace: fake.OADPNamespace, Paused: func() error { return s.paused }, Log: zap.NewNop(),
	})
	return s
}

// positionsDue reports, once, whether the queue positions are to be computed again.
func (s *station) positionsDue() bool {
	select {
	case <-s.dirty:
		return true
	default:
		return false
	}
}

// tracked returns a NonAdminBackup that is created, and the Velero Backup that was made for it.
func tracked(name string, phase velerov1.BackupPhase) (*oadpv1alpha1.NonAdminBackup, *velerov1.Backup) {
	return watchtest.Tracked(fake.NAB(name), fake.VeleroName(name), fake.OADPNamespace, phase)
}

// restored returns a NonAdminRestore that is created, and the Velero Restore that was made for it.
func restored(name string, phase velerov1.RestorePhase) (*oadpv1alpha1.NonAdminRestore, *velerov1.Restore) {
	return watchtest.Restored(fake.NAR(name, "nightly"), fake.VeleroName(name), fake.OADPNamespace, phase)
}

func TestWhichMoveIsWorthShowing(t *testing.T) {
	const none = -1
	tests := map[string]struct {
		shown, position int
		want            bool
	}{
		"nothing shown yet":                  {none, 300, true},
		"at the front, already right":        {1, 1, false},
		"at the front, by one":               {2, 1, true},
		"at the front, backwards":            {1, 2, true},
		"at 20, by one":                      {21, 20, true},
		"at 21, by one":                      {22, 21, false},
		"at 21, by more than a tenth":        {24, 21, true},
		"far back, already right":            {300, 300, false},
		"far back, by less than a tenth":     {300, 271, false},
		"far back, by a tenth":               {300, 270, true},
		"far back, backwards by a tenth":     {300, 330, true},
		"far back, backwards by less":        {300, 329, false},
		"thought done, and far back":         {0, 30, true},
		"thought to be at the front, is not": {1, 21, true},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			var shown *oadpv1alpha1.QueueInfo
			if test.shown != none {
				shown = &oadpv1alpha1.QueueInfo{EstimatedQueuePosition: test.shown}
			}
			assert.Equal(t, test.want, worthShowing(shown, test.position))
		})
	}
}

// waiting returns a NonAdminBackup that shows a position, and its Velero Backup, made at a second.
func waiting(name string, second, shown int) (*oadpv1alpha1.NonAdminBackup, *velerov1.Backup) {
	nab, velero := tracked(name, "New")
	velero.CreationTimestamp = metav1.NewTime(velero.CreationTimestamp.Add(time.Duration(second) * time.Second))
	nab.Status.QueueInfo = &oadpv1alpha1.QueueInfo{EstimatedQueuePosition: shown}
	return nab, velero
}

func shownPositions(t *testing.T, s *station) map[string]int {
	t.Helper()
	var list oadpv1alpha1.NonAdminBackupList
	require.NoError(t, s.cache.Client.List(t.Context(), &list))
	shown := map[string]int{}
	for _, nab := range list.Items {
		if nab.Status.QueueInfo != nil {
			shown[nab.Name] = nab.Status.QueueInfo.EstimatedQueuePosition
		}
	}
	return shown
}

func (s *station) written(t *testing.T) []string {
	t.Helper()
	before := len(s.cache.Writes())
	s.write(t.Context(), rate.NewLimiter(rate.Inf, 1))
	return s.cache.Writes()[before:]
}

func TestPositionsAreWrittenFromTheFront(t *testing.T) {
	var objects []client.Object
	for i := range 4 {
		nab, velero := waiting(string(rune('d'-i)), i, 9)
		objects = append(objects, nab, velero)
	}
	s := newStation(t, objects...)
	var order []string
	s.cache.Fail(func(_ string, object client.Object) error {
		order = append(order, object.GetName())
		return nil
	})
	assert.Len(t, s.written(t), 4)
	assert.Equal(t, []string{"d", "c", "b", "a"}, order)
	assert.Equal(t, map[string]int{"d": 1, "c": 2, "b": 3, "a": 4}, shownPositions(t, s))
	assert.Empty(t, s.written(t), "a value that is right is not written again")
}

func TestAPositionIsWrittenAndNothingElse(t *testing.T) {
	nab, velero := waiting(name, 0, 9)
	s := newStation(t, nab, velero)
	before := s.cache.Read(name)
	assert.Equal(t, []string{"patch status NonAdminBackup"}, s.written(t))
	after := s.cache.Read(name)
	assert.Equal(t, 1, after.Status.QueueInfo.EstimatedQueuePosition)
	after.Status.QueueInfo, after.ResourceVersion = before.Status.QueueInfo, before.ResourceVersion
	assert.Equal(t, before, after)
}

func TestWhosePositionIsNotWritten(t *testing.T) {
	type edit = func(*oadpv1alpha1.NonAdminBackup, *velerov1.Backup)
	phase := func(phase velerov1.BackupPhase) edit {
		return func(_ *oadpv1alpha1.NonAdminBackup, b *velerov1.Backup) { b.Status.Phase = phase }
	}
	tests := map[string]edit{
		"finished":          phase("Completed"),
		"failed validation": phase("FailedValidation"),
		"moved past":        phase("WaitingForPluginOperations"),
		"not created yet":   func(n *oadpv1alpha1.NonAdminBackup, _ *velerov1.Backup) { n.Status.Phase = "New" },
		"without reference": func(n *oadpv1alpha1.NonAdminBackup, _ *velerov1.Backup) { n.Status.VeleroBackup = nil },
		"of another tenant's Velero Backup": func(_ *oadpv1alpha1.NonAdminBackup, b *velerov1.Backup) {
			b.Annotations[oadpv1alpha1.NabOriginNamespaceAnnotation] = "crew"
		},
		"of another object's Velero Backup": func(_ *oadpv1alpha1.NonAdminBackup, b *velerov1.Backup) {
			b.Annotations[oadpv1alpha1.NabOriginNameAnnotation] = "weekly"
		},
		"of a Velero Backup that is gone": func(n *oadpv1alpha1.NonAdminBackup, _ *velerov1.Backup) {
			n.Status.VeleroBackup.Name = "gone"
		},
	}
	for title, change := range tests {
		t.Run(title, func(t *testing.T) {
			nab, velero := waiting(name, 0, 9)
			change(nab, velero)
			s := newStation(t, nab, velero)
			assert.Empty(t, s.written(t))
		})
	}
	t.Run("another controller serves it", func(t *testing.T) {
		nab, velero := waiting(name, 0, 9)
		s := newStation(t, nab, velero)
		s.paused = errAway
		assert.Empty(t, s.written(t))
	})
	t.Run("the cache cannot be read", func(t *testing.T) {
		nab, velero := waiting(name, 0, 9)
		s := newStation(t, nab, velero)
		s.cache.FailReads(func(runtime.Object) error { return errAway })
		assert.Empty(t, s.written(t))
	})
}

// Velero still has to get through a backup whose object waits for its deletion.
func TestAPositionIsKeptDuringDeletion(t *testing.T) {
	nab, velero := waiting(name, 0, 9)
	nab.Status.Phase = oadpv1alpha1.NonAdminPhaseDeleting
	s := newStation(t, nab, velero)
	assert.Len(t, s.written(t), 1)
}

func TestARefusalForWantOfRightsIsCounted(t *testing.T) {
	for title, test := range map[string]struct {
		err  error
		want float64
	}{
		"forbidden":    {apierrors.NewForbidden(oadpv1alpha1.Resource("nonadminbackups"), name, nil), 1},
		"unauthorized": {apierrors.NewUnauthorized("the token has expired"), 1},
		"no answer":    {errAway, 0},
	} {
		t.Run(title, func(t *testing.T) {
			nab, velero := waiting(name, 0, 9)
			s := newStation(t, nab, velero)
			s.cache.Fail(func(string, client.Object) error { return test.err })
			counted := metricstest.Counted(t, `holdfast_access_denied_total{activity_type="write-queue-position"}`, func() { s.written(t) })
			assert.InDelta(t, test.want, counted, 0)
			assert.True(t, s.positionsDue())
		})
	}
}

// A tenant waits behind the admin's backups and other tenants'.
func TestAPositionCountsOtherPeoplesBackups(t *testing.T) {
	nab, velero := waiting(name, 5, 9)
	admins := &velerov1.Backup{ObjectMeta: metav1.ObjectMeta{
		Namespace: fake.OADPNamespace, Name: "daily", CreationTimestamp: metav1.NewTime(velero.CreationTimestamp.Add(-time.Hour)),
	}}
	elsewhere := admins.DeepCopy()
	elsewhere.Namespace = "another-velero"
	s := newStation(t, nab, velero, admins, elsewhere)
	s.written(t)
	assert.Equal(t, map[string]int{name: 2}, shownPositions(t, s))
}

func TestAPositionThatCouldNotBeWrittenIsDueAgain(t *testing.T) {
	tests := map[string]struct {
		disturb func(t *testing.T, s *station) error
		wantDue bool
	}{
		"the cache was behind": {func(t *testing.T, s *station) error {
			nab := s.cache.Read(name)
			nab.Labels = map[string]string{"others": "1"}
			return s.cache.Client.Update(t.Context(), nab)
		}, true},
		"the API server went away": {func(*testing.T, *station) error { return errAway }, true},
		"the object has gone": {func(t *testing.T, s *station) error {
			nab := s.cache.Read(name)
			nab.Finalizers = nil
			require.NoError(t, s.cache.Client.Update(t.Context(), nab))
			s.cache.Fail(nil)
			return s.cache.Client.Delete(t.Context(), nab)
		}, false},
		"nothing": {func(*testing.T, *station) error { return nil }, false},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			nab, velero := waiting(name, 0, 9)
			last, lastBackup := waiting("last", 1, 9)
			s := newStation(t, nab, velero, last, lastBackup)
			s.cache.Fail(func(_ string, object client.Object) error {
				if object.GetName() == name {
					return test.disturb(t, s)
				}
				return nil
			})
			s.written(t)
			assert.Equal(t, test.wantDue, s.positionsDue())
			assert.Equal(t, 2, shownPositions(t, s)["last"], "the others' are written")
			s.cache.Fail(nil)
			s.written(t)
			if there := s.cache.Read(name); there != nil {
				assert.Equal(t, 1, there.Status.QueueInfo.EstimatedQueuePosition, "by the next round at the latest")
			}
		})
	}
}

// However many events come: a round a second after the first, no two rounds within 10 s, no more than 10 patches a second.
func TestPositionsAreWrittenInRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var objects []client.Object
		for i := range 25 {
			nab, velero := waiting(fmt.Sprintf("n%02d", i), i, 99)
			objects = append(objects, nab, velero)
		}
		s := newStation(t, objects...)
		started := time.Now()
		var lock sync.Mutex
		var patches []time.Duration
		s.cache.Fail(func(string, client.Object) error {
			lock.Lock()
			defer lock.Unlock()
			patches = append(patches, time.Since(started))
			return nil
		})
		taken := func() []time.Duration {
			lock.Lock()
			defer lock.Unlock()
			defer func() { patches = nil }()
			return patches
		}
		ctx, stop := context.WithCancel(t.Context())
		go s.Run(ctx)
		for range 100 {
			s.Changed()
		}
		time.Sleep(9 * time.Second)
		synctest.Wait()
		patched := taken()
		require.Len(t, patched, 25)
		assert.Equal(t, time.Second, patched[0])
		assert.GreaterOrEqual(t, patched[24]-patched[0], 2300*time.Millisecond)
		assert.LessOrEqual(t, patched[24]-patched[0], 2500*time.Millisecond)

		// The first ends. All move up by one: those up to 20 are shown it, those behind are not.
		first := s.cache.Velero(fake.VeleroName("n00"))
		first.Status.Phase = velerov1.BackupPhaseCompleted
		require.NoError(t, s.cache.Client.Update(t.Context(), first))
		taken()
		s.Changed()
		time.Sleep(time.Minute)
		synctest.Wait()
		patched = taken()
		require.Len(t, patched, 20)
		assert.GreaterOrEqual(t, patched[0], 11*time.Second)
		assert.Equal(t, 20, shownPositions(t, s)["n20"])
		assert.Equal(t, 22, shownPositions(t, s)["n21"], "moved by less than a tenth")
		stop()
		synctest.Wait()
	})
}

func TestPositionsOfRestoresAreShownToo(t *testing.T) {
	first, firstVelero := restored("first", "InProgress")
	second, secondVelero := restored("second", "New")
	secondVelero.CreationTimestamp = metav1.NewTime(secondVelero.CreationTimestamp.Add(time.Second))
	forged, forgedVelero := restored("forged", "New")
	forgedVelero.Annotations[oadpv1alpha1.NarOriginNamespaceAnnotation] = "crew"
	nab, veleroBackup := waiting("nightly", 0, 9)
	s := newStation(t, first, firstVelero, second, secondVelero, forged, forgedVelero, nab, veleroBackup)
	assert.ElementsMatch(t, []string{"patch status NonAdminRestore", "patch status NonAdminBackup"}, s.written(t))
	assert.Equal(t, 3, s.cache.ReadRestore("second").Status.QueueInfo.EstimatedQueuePosition, "another tenant's is of the same second as the first")
	assert.Nil(t, s.cache.ReadRestore("forged").Status.QueueInfo)
	assert.Empty(t, s.written(t))
}

func inCache[T client.Object](t *testing.T, object T) T {
	t.Helper()
	var kinds []*caches.Kind
	for _, watcher := range velero.Kinds(&velero.Env{Env: &controllers.Env{}}) {
		kinds = append(kinds, watcher.Watched()...)
	}
	kept, err := caches.Transform(kinds)(object)
	require.NoError(t, err)
	return kept.(T)
}

// What is not in the cache must not be deleted by a patch that was computed from it.
func TestAPatchOfATrimmedObjectTouchesNothingElse(t *testing.T) {
	nab, velero := tracked(name, velerov1.BackupPhaseInProgress)
	nab.Spec.BackupSpec.IncludedResources = []string{"pods"}
	nab.Labels, nab.Annotations = map[string]string{"team": strings.Repeat("x", 4<<10)}, map[string]string{"a": "b"}
	nab.Finalizers = append(nab.Finalizers, "theirs/finalizer")
	s := newStation(t, nab, velero)
	key := client.ObjectKeyFromObject(nab)
	stored := &oadpv1alpha1.NonAdminBackup{}
	require.NoError(t, s.cache.Client.Get(t.Context(), key, stored))
	before := inCache(t, stored.DeepCopy())
	require.NotEqual(t, stored.Spec, before.Spec)
	change := change{of: kinds[0], object: before, position: 7}
	require.NoError(t, s.cache.Client.Status().Patch(t.Context(), change.show(), k8s.BoundPatch(before)))
	after := &oadpv1alpha1.NonAdminBackup{}
	require.NoError(t, s.cache.Client.Get(t.Context(), key, after))
	stored.Status.QueueInfo = &oadpv1alpha1.QueueInfo{EstimatedQueuePosition: 7}
	stored.ResourceVersion = after.ResourceVersion
	assert.Equal(t, stored, after)
}
