package fdb

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"holdfast.dev/holdfast/activities/fake"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/starter/watch/controllers"
)

type fdbDrillObject = fdbv1alpha1.FoundationDBDrill

// fdbDrill returns a FoundationDBDrill of the tenant that waits for version 700.
func fdbDrill(changes ...func(*fdbDrillObject)) *fdbDrillObject {
	started := hour(3)
	object := &fdbDrillObject{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fake.Namespace, Name: name, UID: types.UID(request(name).UID), Generation: 1,
			Finalizers: []string{fdbv1alpha1.FinalizerDrillTarget},
		},
		Spec:   fdbv1alpha1.FoundationDBDrillSpec{BackupName: "source", TargetClusterName: "spare"},
		Status: fdbv1alpha1.FoundationDBDrillStatus{ObservedGeneration: 1, Phase: fdbv1alpha1.FDBDrillWaiting, Started: &started, Version: 700},
	}
	for _, change := range changes {
		change(object)
	}
	return object
}

func endedDrill(d *fdbDrillObject) {
	at := hour(4)
	d.Status.Phase, d.Status.Ended, d.Finalizers = fdbv1alpha1.FDBDrillEnded, &at, nil
}

func TestALookAtAFoundationDBDrill(t *testing.T) {
	later := reconcile.Result{RequeueAfter: 5 * time.Minute}
	deleted := func(d *fdbDrillObject) { at := hour(4); d.DeletionTimestamp = &at }
	for title, test := range map[string]struct {
		object *fdbDrillObject
		want   string
		again  reconcile.Result
	}{
		"a new one":          {fdbDrill(func(d *fdbDrillObject) { d.Status, d.Finalizers = fdbv1alpha1.FoundationDBDrillStatus{}, nil }), "start", later},
		"one that runs":      {fdbDrill(), "ensure", later},
		"one that is over":   {fdbDrill(endedDrill), "", later},
		"one that is held":   {fdbDrill(endedDrill, func(d *fdbDrillObject) { d.Finalizers = []string{fdbv1alpha1.FinalizerDrillTarget} }), "ensure", later},
		"one that goes":      {fdbDrill(deleted), "start", later},
		"one that is gone":   {nil, "deleted", reconcile.Result{}},
		"another of its UID": {fdbDrill(func(d *fdbDrillObject) { d.UID = "another" }), "deleted", reconcile.Result{}},
	} {
		t.Run(title, func(t *testing.T) {
			var objects []client.Object
			if test.object != nil {
				objects = append(objects, test.object)
			}
			s := newStation(t, objects...)
			result, err := s.drills.Reconcile(t.Context(), request(name))
			require.NoError(t, err)
			var want []string
			if test.want != "" {
				want = []string{test.want + " fdbdrill team/" + name + " " + request(name).UID}
			}
			assert.Equal(t, want, s.signals.Sent)
			assert.Equal(t, test.again, result)
		})
	}
}

func ownEvents(d *drills) events { return d.OwnEvents(true, controllers.Never) }

func TestEventsOfFoundationDBDrills(t *testing.T) {
	update := func(before, after client.Object) func(events, queue) {
		return func(e events, q queue) {
			e.Update(context.Background(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
		}
	}
	restore := func(state fdbv1alpha1.ObservedRestoreState, kind string) *fdbrObject {
		yes := true
		return fdbRestore("made", func(o *fdbrObject) {
			o.Status.State = state
			o.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: "fdb.holdfast.dev/v1alpha1", Kind: kind, Name: name, UID: types.UID(request(name).UID), Controller: &yes,
			}}
		})
	}
	backup := func(version int64) *fdbv1alpha1.FoundationDBBackup {
		return &fdbv1alpha1.FoundationDBBackup{
			ObjectMeta: metav1.ObjectMeta{Namespace: fake.Namespace, Name: "source"},
			Status: fdbv1alpha1.FoundationDBBackupStatus{Backups: []fdbv1alpha1.BackupDetails{
				{LatestRestorable: &fdbv1alpha1.RestorePoint{Version: version}}, {},
			}},
		}
	}
	forced := []Request{request(name).Forced(true)}
	for title, test := range map[string]struct {
		of   func(*drills) events
		do   func(events, queue)
		want []Request
	}{
		"its own status": {ownEvents, update(fdbDrill(), fdbDrill(func(d *fdbDrillObject) { d.Status.Phase = "Checking" })), nil},
		"its finalizer was removed": {
			ownEvents, update(fdbDrill(), fdbDrill(func(d *fdbDrillObject) { d.Finalizers = nil })), forced,
		},
		"its deletion": {
			ownEvents, update(fdbDrill(), fdbDrill(func(d *fdbDrillObject) { at := hour(4); d.DeletionTimestamp = &at })), forced,
		},
		"its restore completes":    {(*drills).restoreEvents, update(restore("Running", "FoundationDBDrill"), restore("Completed", "FoundationDBDrill")), forced},
		"its restore goes on":      {(*drills).restoreEvents, update(restore("Running", "FoundationDBDrill"), restore("Running", "FoundationDBDrill")), nil},
		"a tenant's restore":       {(*drills).restoreEvents, update(fdbRestore("own"), fdbRestore("own", completedFDBR)), nil},
		"another kind's":           {(*drills).restoreEvents, update(restore("Running", "Other"), restore("Completed", "Other")), nil},
		"the backup holds it":      {(*drills).backupEvents, update(backup(600), backup(700)), forced},
		"the backup does not yet":  {(*drills).backupEvents, update(backup(600), backup(699)), nil},
		"the backup says the same": {(*drills).backupEvents, update(backup(700), backup(700)), nil},
		"its restore is gone": {(*drills).restoreEvents, func(e events, q queue) {
			e.Delete(context.Background(), event.DeleteEvent{Object: restore("Aborted", "FoundationDBDrill")}, q)
		}, forced},
	} {
		t.Run(title, func(t *testing.T) {
			s := newStation(t, fdbDrill())
			q := &recordingQueue{}
			test.do(test.of(s.drills), q)
			var got []Request
			for _, one := range q.Added {
				got = append(got, one.Request)
			}
			assert.Equal(t, test.want, got)
		})
	}
}
