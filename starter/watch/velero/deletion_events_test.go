package velero

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/starter/watch/watchtest"
)

type NAB = oadpv1alpha1.NonAdminBackup

func toDelete(nab *NAB) { nab.Spec.DeleteBackup = true }

func toForceDelete(nab *NAB) { nab.Spec.DeleteBackup, nab.Spec.ForceDeleteBackup = true, true }

func isDeleted(nab *NAB) {
	nab.DeletionTimestamp = &metav1.Time{Time: fake.DownloadTime}
	nab.Generation++
}

func isDeleting(nab *NAB) { nab.Status.Phase = oadpv1alpha1.NonAdminPhaseDeleting }

func unchanged(*NAB) {}

// The workflow that the spec has started deletes the object itself: that needs no signal. What the spec does not request does.
func TestADeletionThatTheSpecRequestsIsTheWorkflowsOwn(t *testing.T) {
	for title, test := range map[string]struct {
		before, after func(*NAB)
		want          bool
	}{
		"as requested":               {before: toDelete, after: unchanged},
		"as requested, by force":     {before: toForceDelete, after: unchanged},
		"requested in another way":   {before: toDelete, after: toForceDelete, want: true},
		"requested at the same time": {before: unchanged, after: toDelete, want: true},
		"not requested":              {before: unchanged, after: unchanged, want: true},
		"with a finalizer that went": {before: toDelete, after: func(nab *NAB) { nab.Finalizers = nil }, want: true},
		"with another label":         {before: toDelete, after: func(nab *NAB) { nab.Labels = map[string]string{"a": "b"} }, want: true},
		"of another object":          {before: toDelete, after: func(nab *NAB) { nab.UID = "another" }, want: true},
	} {
		t.Run(title, func(t *testing.T) {
			nab, _ := tracked(name, "Completed")
			before := edited(nab, test.before)
			after := edited(before, func(nab *NAB) {
				isDeleted(nab)
				test.after(nab)
			})
			s := newStation(t)
			assert.Equal(t, test.want, len(watchtest.Happens(t.Context(), s.backups.events(), before, after)) > 0)
		})
	}
}

// An object that its workflow has released is gone, and nothing is left of it: its workflow knows. A finalizer that is removed by
// hand leaves a Velero Backup.
func TestAReleasedBackupNeedsNoSignal(t *testing.T) {
	nab, made := tracked(name, "Completed")
	toDelete(nab)
	released := edited(nab, func(nab *NAB) { nab.Finalizers = []string{oadpv1alpha1.NabFinalizer} }) // as the API server shows it
	foreign := func(made *velerov1.Backup) { made.Annotations = nil }
	for title, test := range map[string]struct {
		gone *NAB
		left []client.Object
		want bool
	}{
		"released":                  {gone: released},
		"by hand":                   {gone: released, left: []client.Object{made}, want: true},
		"beside one of its name":    {gone: released, left: []client.Object{edited(made, foreign)}, want: true},
		"without its finalizer":     {gone: edited(nab, func(nab *NAB) { nab.Finalizers = nil })},
		"not as its spec requested": {gone: edited(released, func(nab *NAB) { nab.Spec.DeleteBackup = false }), want: true},
		"with a forged status, which names another's backup": {
			gone: edited(released, func(nab *NAB) { nab.Status.VeleroBackup.Name = "another" }), left: []client.Object{made}, want: true,
		},
	} {
		t.Run(title, func(t *testing.T) {
			s := newStation(t, test.left...)
			assert.Equal(t, test.want, len(watchtest.Happens(t.Context(), s.backups.events(), test.gone, nil)) > 0)
		})
	}
	nar, _ := restored(name, velerov1.RestorePhaseCompleted)
	assert.NotEmpty(t, watchtest.Happens(t.Context(), newStation(t).restores.events(), nar, nil), "of a restore no spec says anything")
}

// Deletions begin in turns with starts: thousands of them keep nobody's backup from its start. One that has begun goes on.
func TestDeletionsBeginInTurns(t *testing.T) {
	for title, test := range map[string]struct {
		change func(*NAB)
		there  []client.Object
		waits  bool
	}{
		"requested":          {change: toDelete, waits: true},
		"by force":           {change: toForceDelete, waits: true},
		"deleted by kubectl": {change: isDeleted, waits: true},
		"announced":          {change: func(nab *NAB) { toDelete(nab); isDeleting(nab) }},
		"not to be deleted":  {change: unchanged},
		"nothing left to do": {change: func(nab *NAB) { isDeleted(nab); nab.Finalizers = []string{"x"} }},
		"in a terminating namespace": {
			change: func(nab *NAB) { toDelete(nab); isDeleted(nab) },
			there: []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: fake.Namespace, DeletionTimestamp: &metav1.Time{Time: fake.DownloadTime}, Finalizers: []string{"x"},
			}}},
		},
	} {
		t.Run(title, func(t *testing.T) {
			nab, made := tracked(name, velerov1.BackupPhaseCompleted)
			test.change(nab)
			s := newStation(t, append(test.there, nab, made)...)
			view, err := s.backups.judge(t.Context(), s.cache.Client, fake.Ref(name))
			require.NoError(t, err)
			assert.Equal(t, test.waits, view.Unstarted)
		})
	}
}

// fullOf is a station where as many objects start as may, and a backup that is to be deleted.
func fullOf(t *testing.T) (*station, []*NAB, *NAB) {
	t.Helper()
	s, nabs := asMany(t)
	doomed, made := tracked("doomed", velerov1.BackupPhaseCompleted)
	toDelete(doomed)
	for _, object := range []client.Object{doomed, made} {
		require.NoError(t, s.cache.Client.Create(t.Context(), object))
	}
	_, err := s.backups.Reconcile(t.Context(), controllers.RequestFor(doomed))
	require.NoError(t, err)
	require.Empty(t, s.signals.Sent, "it waits for its turn")
	require.True(t, s.backups.Waiting(controllers.RequestFor(doomed)))
	return s, nabs, doomed
}

func TestADeletionThatBeginsMakesRoom(t *testing.T) {
	for title, test := range map[string]struct {
		happens func(s *station, first *NAB)
		room    bool
	}{
		"nothing": {happens: func(*station, *NAB) {}},
		"one starts": {happens: func(s *station, nab *NAB) {
			s.happens(t, nab, edited(nab, func(nab *NAB) { nab.Status.Phase = "Created" }))
		}, room: true},
		"one is gone": {happens: func(s *station, nab *NAB) { s.happens(t, nab, nil) }, room: true},
		"one that is to be deleted starts": {happens: func(s *station, nab *NAB) {
			doomed := edited(nab, toDelete)
			s.happens(t, doomed, edited(doomed, func(nab *NAB) { nab.Status.Phase = "Created" }))
		}},
		"its deletion begins": {happens: func(s *station, nab *NAB) {
			doomed := edited(nab, func(nab *NAB) { toDelete(nab); nab.Status.Phase = "Created" })
			s.happens(t, doomed, edited(doomed, isDeleting))
		}, room: true},
	} {
		t.Run(title, func(t *testing.T) {
			s, nabs := asMany(t)
			test.happens(s, nabs[0])
			_, err := s.backups.Reconcile(t.Context(), controllers.RequestFor(nabs[len(nabs)-1]))
			require.NoError(t, err)
			assert.Equal(t, test.room, len(s.signals.Sent) == 1)
		})
	}
}

func (s *station) happens(t *testing.T, before, after client.Object) {
	t.Helper()
	if nab, is := after.(*NAB); is && nab != nil {
		watchtest.Happens(t.Context(), s.backups.events(), before, nab)
		return
	}
	watchtest.Happens(t.Context(), s.backups.events(), before, nil)
}

// As long as a deletion waits for its turn no workflow has heard of it: that somebody deletes the object, or its whole namespace,
// is judged.
func TestADeletionThatWaitsIsJudgedWhenTheObjectIsDeleted(t *testing.T) {
	s, _, doomed := fullOf(t)
	deleted := edited(doomed, isDeleted)
	assert.NotEmpty(t, watchtest.Happens(t.Context(), s.backups.events(), doomed, deleted))
	s.backups.Gone(controllers.RequestFor(doomed))
	assert.Empty(t, watchtest.Happens(t.Context(), s.backups.events(), doomed, deleted), "its workflow was signalled")
}

// A change of the status of one that waits takes neither its place nor another's.
func TestADeletionThatWaitsKeepsItsPlace(t *testing.T) {
	s, _, doomed := fullOf(t)
	s.happens(t, doomed, edited(doomed, func(nab *NAB) { nab.Status.QueueInfo = &oadpv1alpha1.QueueInfo{} }))
	assert.True(t, s.backups.Waiting(controllers.RequestFor(doomed)))
	s.happens(t, doomed, edited(doomed, isDeleting))
	assert.False(t, s.backups.Waiting(controllers.RequestFor(doomed)), "something else has begun it")
}
