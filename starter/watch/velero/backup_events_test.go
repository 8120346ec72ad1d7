package velero

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/controllers"
)

func TestWhichChangesOfABackupConcernItsWorkflow(t *testing.T) {
	type NAB = oadpv1alpha1.NonAdminBackup
	tests := map[string]struct {
		before, after func(*NAB)
		want          bool
	}{
		"nothing":                     {},
		"the spec":                    {after: func(nab *NAB) { nab.Generation++ }, want: true},
		"its deletion":                {after: func(nab *NAB) { nab.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, want: true},
		"a label":                     {after: func(nab *NAB) { nab.Labels = map[string]string{"a": "b"} }, want: true},
		"a label's removal":           {before: func(nab *NAB) { nab.Labels = map[string]string{"a": "b"} }, want: true},
		"our finalizer's removal":     {after: func(nab *NAB) { nab.Finalizers = nil }, want: true},
		"our finalizer":               {before: func(nab *NAB) { nab.Finalizers = nil }},
		"another's finalizer":         {after: func(nab *NAB) { nab.Finalizers = append(nab.Finalizers, "x") }},
		"an annotation":               {after: func(nab *NAB) { nab.Annotations = map[string]string{"a": "b"} }},
		"the phase":                   {after: func(nab *NAB) { nab.Status.Phase = "Deleting" }},
		"the queue position":          {after: func(nab *NAB) { nab.Status.QueueInfo = &oadpv1alpha1.QueueInfo{EstimatedQueuePosition: 3} }},
		"a condition":                 {after: func(nab *NAB) { nab.Status.Conditions = nil }},
		"the whole object, recreated": {after: func(nab *NAB) { nab.UID = "uid-2" }, want: true},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			before, _ := tracked(name, "InProgress")
			if test.before != nil {
				test.before(before)
			}
			after, _ := tracked(name, "InProgress")
			if test.after != nil {
				test.after(after)
			}
			assert.Equal(t, test.want, controllers.Concerns(before, after, oadpv1alpha1.NabFinalizer))
			s, q := newStation(t), &recordingQueue{}
			s.backups.events().Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
			assert.Equal(t, test.want, len(q.Added) > 0)
		})
	}
}

func TestABackupThatComesOrGoesIsLookedAt(t *testing.T) {
	s, q := newStation(t), &recordingQueue{}
	nab := fake.NAB(name)
	s.backups.events().Create(t.Context(), event.CreateEvent{Object: nab}, q)
	s.backups.events().Delete(t.Context(), event.DeleteEvent{Object: nab}, q)
	assert.Equal(t, atOnce(request(name), request(name)), q.Added)
}

// The informer may miss that an object was deleted and recreated: the workflow of the first must hear of its end.
func TestARecreatedBackupIsTwoBackups(t *testing.T) {
	s, q := newStation(t), &recordingQueue{}
	again := fake.NAB(name)
	again.UID = "uid-2"
	s.backups.events().Update(t.Context(), event.UpdateEvent{ObjectOld: fake.NAB(name), ObjectNew: again}, q)
	second := request(name)
	second.UID = "uid-2"
	assert.Equal(t, atOnce(request(name), second), q.Added)
}

// What a rejection depends on may have changed before the cache knew of the rejection: it is looked at once more.
func TestARejectionIsLookedAtOnceMore(t *testing.T) {
	s, q := newStation(t), &recordingQueue{}
	rejected := keptBack(name)
	s.backups.events().Update(t.Context(), event.UpdateEvent{ObjectOld: fake.NAB(name), ObjectNew: rejected}, q)
	assert.Equal(t, atOnce(request(name)), q.Added)
	s.backups.events().Update(t.Context(), event.UpdateEvent{ObjectOld: rejected, ObjectNew: rejected}, q)
	assert.Len(t, q.Added, 1)
}

func TestChangesOfAVeleroBackup(t *testing.T) {
	type Backup = velerov1.Backup
	tests := map[string]struct {
		change        func(*Backup)
		want          []added
		wantPositions bool
	}{
		"a new phase": {
			change: func(b *Backup) { b.Status.Phase = "Completed" }, want: atOnce(request(name)), wantPositions: true,
		},
		"a phase that nobody knows yet": {
			change: func(b *Backup) { b.Status.Phase = "Pondering" }, want: atOnce(request(name)), wantPositions: true,
		},
		"progress alone": {
			change: func(b *Backup) { b.Status.Progress = &velerov1.BackupProgress{ItemsBackedUp: 1} },
			want:   []added{{Request: request(name), After: 15 * time.Second}},
		},
		"its place in Velero's queue": {
			change: func(b *Backup) { b.Status.QueuePosition = 4 },
			want:   []added{{Request: request(name), After: 15 * time.Second}}, wantPositions: true,
		},
		"recreated in the same phase": {change: func(b *Backup) { b.UID = "uid-2" }, want: atOnce(request(name))},
		"the informer's resync":       {change: func(b *Backup) { b.ResourceVersion = "7" }},
		"another tenant's": {
			change: func(b *Backup) {
				b.Status.Phase = "Completed"
				b.Annotations[oadpv1alpha1.NabOriginNamespaceAnnotation] = "crew"
			},
			wantPositions: true,
		},
		"of an object that is gone": {
			change: func(b *Backup) {
				b.Status.Phase = "Completed"
				b.Annotations[oadpv1alpha1.NabOriginNameAnnotation] = "gone"
			},
			wantPositions: true,
		},
		"the admin's own": {
			change:        func(b *Backup) { b.Status.Phase, b.Annotations = "Completed", nil },
			wantPositions: true,
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			nab, velero := tracked(name, "InProgress")
			velero.ResourceVersion = "7"
			s, q := newStation(t, nab), &recordingQueue{}
			e := event.UpdateEvent{ObjectOld: velero, ObjectNew: edited(velero, test.change)}
			s.backups.veleroEvents().Update(t.Context(), e, q)
			assert.Equal(t, test.want, q.Added)
			assert.Equal(t, test.wantPositions, s.positionsDue())
		})
	}
}

func TestAVeleroBackupThatComesOrGoes(t *testing.T) {
	tests := map[string]struct {
		phase       oadpv1alpha1.NonAdminPhase
		veleros     velerov1.BackupPhase
		wantCreated []added
	}{
		"of our own making":               {"New", "", nil},
		"of our own making, in an outage": {"New", "Completed", atOnce(request(name))},
		"of an object kept back":          {"BackingOff", "", atOnce(request(name))},
		"of an object that lost it":       {"Created", "", atOnce(request(name))},
		"of an object never seen":         {"", "", nil}, // its own event comes, or came: a cache behind the other must not wake it twice
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			nab := fake.NAB(name)
			_, velero := tracked(name, test.veleros)
			nab.Status.Phase = test.phase
			s, q := newStation(t, nab), &recordingQueue{}
			s.backups.veleroEvents().Create(t.Context(), event.CreateEvent{Object: velero}, q)
			assert.Equal(t, test.wantCreated, q.Added)
			assert.True(t, s.positionsDue(), "everybody's position may change")

			q.Added = nil
			s.backups.veleroEvents().Delete(t.Context(), event.DeleteEvent{Object: velero}, q)
			assert.Equal(t, atOnce(request(name)), q.Added)
			assert.True(t, s.positionsDue())
		})
	}
}

// A Backup of somebody else's may have stood under the name that an object needs: once it is gone, what is kept back is
// looked at.
func TestTheEndOfSomebodyElsesBackupConcernsWhatIsKeptBack(t *testing.T) {
	going, _ := tracked("going", "InProgress")
	s, q := newStation(t, keptBack("a"), keptBack("b"), going), &recordingQueue{}
	admins := &velerov1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: fake.OADPNamespace, Name: "daily"}}
	s.backups.veleroEvents().Delete(t.Context(), event.DeleteEvent{Object: admins}, q)
	assert.ElementsMatch(t, atOnce(request("a"), request("b")), q.Added)
	assert.True(t, s.positionsDue())
}

// Progress comes many times a minute. In the queue that the controller uses, it makes a signal at most every 15 s, however
// it comes, and holds up no change of phase.
func TestProgressMakesFewSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nab, velero := tracked(name, "InProgress")
		s := newStation(t, nab)
		q := priorityqueue.New[Request]("test")
		started := time.Now()
		var looks []time.Duration
		go func() {
			for {
				got, shutdown := q.Get()
				if shutdown {
					return
				}
				looks = append(looks, time.Since(started))
				q.Done(got)
			}
		}()
		for second := range 40 {
			after := edited(velero, func(b *velerov1.Backup) { b.Status.Progress = &velerov1.BackupProgress{ItemsBackedUp: second} })
			if second == 35 {
				after.Status.Phase = velerov1.BackupPhaseFinalizing
			}
			s.backups.veleroEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: velero, ObjectNew: after}, q)
			velero = after
			time.Sleep(time.Second)
			synctest.Wait()
		}
		q.ShutDown()
		synctest.Wait()
		assert.Equal(t, []time.Duration{15 * time.Second, 30 * time.Second, 35 * time.Second}, looks)
	})
}

func TestChangesOfARequestToDelete(t *testing.T) {
	nab, made := tracked(name, "Completed")
	before := velero.NewDeleteRequest(nab, made, 1)
	tests := map[string]struct {
		change func(*velerov1.DeleteBackupRequest)
		want   []added
	}{
		"Velero begins": {
			change: func(r *velerov1.DeleteBackupRequest) { r.Status.Phase = "InProgress" }, want: atOnce(request(name)),
		},
		"Velero answers": {
			change: func(r *velerov1.DeleteBackupRequest) { r.Status.Phase = "Processed" }, want: atOnce(request(name)),
		},
		"a label": {change: func(r *velerov1.DeleteBackupRequest) { r.Labels["a"] = "b" }},
		"made by hand": {change: func(r *velerov1.DeleteBackupRequest) {
			r.Status.Phase = "Processed"
			r.Annotations = nil
		}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s, q := newStation(t, nab.DeepCopy()), &recordingQueue{}
			s.backups.deleteRequestEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: edited(before, test.change)}, q)
			assert.Equal(t, test.want, q.Added)
		})
	}
	t.Run("it goes, and not the backup", func(t *testing.T) {
		s, q := newStation(t, nab.DeepCopy(), made.DeepCopy()), &recordingQueue{}
		s.backups.deleteRequestEvents().Delete(t.Context(), event.DeleteEvent{Object: before}, q)
		assert.Equal(t, atOnce(request(name)), q.Added)
	})
	t.Run("it goes after the backup, which has its own event", func(t *testing.T) {
		s, q := newStation(t, nab.DeepCopy()), &recordingQueue{}
		s.backups.deleteRequestEvents().Delete(t.Context(), event.DeleteEvent{Object: before}, q)
		assert.Empty(t, q.Added)
	})
	t.Run("it comes: our own doing", func(t *testing.T) {
		s, q := newStation(t, nab.DeepCopy()), &recordingQueue{}
		s.backups.deleteRequestEvents().Create(t.Context(), event.CreateEvent{Object: before}, q)
		assert.Empty(t, q.Added)
	})
}

// A storage location changes the verdict only on what is kept back, and only in its own namespace.
func TestALocationConcernsWhatIsKeptBackInItsNamespace(t *testing.T) {
	crews := keptBack("crews")
	crews.Namespace = "crew"
	going, _ := tracked("going", "InProgress")
	objects := []client.Object{keptBack("a"), keptBack("b"), going, crews}
	kept := []added{{Request: request("a")}, {Request: request("b")}}

	nabsl := &oadpv1alpha1.NonAdminBackupStorageLocation{ObjectMeta: metav1.ObjectMeta{Namespace: fake.Namespace, Name: "store"}}
	bsl := &velerov1.BackupStorageLocation{ObjectMeta: metav1.ObjectMeta{
		Namespace: fake.OADPNamespace, Name: "bsl",
		Annotations: map[string]string{oadpv1alpha1.NabslOriginNamespaceAnnotation: fake.Namespace},
	}}
	admins := &velerov1.BackupStorageLocation{ObjectMeta: metav1.ObjectMeta{Namespace: fake.OADPNamespace, Name: "default"}}
	available := edited(bsl, func(l *velerov1.BackupStorageLocation) { l.Status.Phase = "Available" })
	validated := edited(available, func(l *velerov1.BackupStorageLocation) {
		l.Status.LastValidationTime = &metav1.Time{Time: time.Unix(1, 0)}
	})
	tests := map[string]struct {
		happens func(s *station, q queue)
		want    []added
	}{
		"the tenant's comes": {
			func(s *station, q queue) {
				s.backups.locationEvents().Create(t.Context(), event.CreateEvent{Object: nabsl}, q)
			}, kept,
		},
		"the tenant's changes": {
			func(s *station, q queue) {
				s.backups.locationEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: nabsl, ObjectNew: nabsl}, q)
			}, kept,
		},
		"the tenant's goes": {
			func(s *station, q queue) {
				s.backups.locationEvents().Delete(t.Context(), event.DeleteEvent{Object: nabsl}, q)
			}, kept,
		},
		"Velero's comes": {
			func(s *station, q queue) {
				s.backups.locationEvents().Create(t.Context(), event.CreateEvent{Object: bsl}, q)
			}, kept,
		},
		"Velero's becomes available": {
			func(s *station, q queue) {
				s.backups.locationEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: bsl, ObjectNew: available}, q)
			}, kept,
		},
		"Velero's is found available again": {
			func(s *station, q queue) {
				s.backups.locationEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: available, ObjectNew: validated}, q)
			}, nil,
		},
		"Velero's goes": {
			func(s *station, q queue) {
				s.backups.locationEvents().Delete(t.Context(), event.DeleteEvent{Object: bsl}, q)
			}, kept,
		},
		"the admin's own": {
			func(s *station, q queue) {
				s.backups.locationEvents().Create(t.Context(), event.CreateEvent{Object: admins}, q)
			}, nil,
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			q := &recordingQueue{}
			test.happens(newStation(t, objects...), q)
			assert.ElementsMatch(t, test.want, q.Added)
		})
	}
}

// An object that was being deleted before its namespace was sees no event of its own then.
func TestANamespaceThatGoesConcernsAllInIt(t *testing.T) {
	crews := keptBack("crews")
	crews.Namespace = "crew"
	there := caches.Namespaces.Object.DeepCopyObject().(*metav1.PartialObjectMetadata)
	there.Name = fake.Namespace
	going := there.DeepCopy()
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	s, q := newStation(t, keptBack("a"), fake.NAB("b"), crews), &recordingQueue{}

	s.backups.namespaceEvents().Create(t.Context(), event.CreateEvent{Object: there}, q)
	s.backups.namespaceEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: there, ObjectNew: there}, q)
	assert.Empty(t, q.Added)
	s.backups.namespaceEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: there, ObjectNew: going}, q)
	assert.ElementsMatch(t, atOnce(request("a"), request("b")), q.Added)
	q.Added = nil
	s.backups.namespaceEvents().Create(t.Context(), event.CreateEvent{Object: going}, q)
	assert.ElementsMatch(t, atOnce(request("a"), request("b")), q.Added, "it was going before the watcher started")
}
