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
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	"holdfast.dev/holdfast/starter/watch/controllers"
)

type fdbrObject = fdbv1alpha1.FoundationDBRestore

// fdbRestore returns a FoundationDBRestore of the tenant that runs.
func fdbRestore(name string, changes ...func(*fdbrObject)) *fdbrObject {
	object := &fdbrObject{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fake.Namespace, Name: name, UID: types.UID(request(name).UID), Generation: 2,
			Finalizers: []string{fdbv1alpha1.FinalizerAbort},
		},
		Spec: fdbv1alpha1.FoundationDBRestoreSpec{
			BackupName: "source", DestinationClusterName: "lab", SourceClusterName: "old",
			Credentials: &fdbv1alpha1.CredentialsReference{SecretName: "accounts"},
		},
		Status: fdbv1alpha1.FoundationDBRestoreStatus{ObservedGeneration: 2, State: "Running"},
	}
	for _, change := range changes {
		change(object)
	}
	return object
}

func completedFDBR(o *fdbrObject) { o.Status.State = fdbv1alpha1.RestoreCompleted }

func newerFDBR(o *fdbrObject) { o.Generation++ }

func deletedFDBR(o *fdbrObject) { at := hour(4); o.DeletionTimestamp = &at }

func TestALookAtAFoundationDBRestore(t *testing.T) {
	later := reconcile.Result{RequeueAfter: 5 * time.Minute}
	force := request(name).Forced(true)
	tests := map[string]struct {
		object  *fdbrObject
		request Request
		want    []string
		again   reconcile.Result
	}{
		"one that runs only has its workflow running": {object: fdbRestore(name), request: request(name), want: []string{"ensure fdbr"}, again: later},
		"an event signals it":                         {object: fdbRestore(name), request: force, want: []string{"start fdbr"}},
		"a newer spec is an event":                    {object: fdbRestore(name, newerFDBR), request: request(name), want: []string{"start fdbr"}, again: later},
		"so is a deletion":                            {object: fdbRestore(name, completedFDBR, deletedFDBR), request: request(name), want: []string{"start fdbr"}, again: later},
		"one that has ended needs no workflow":        {object: fdbRestore(name, completedFDBR), request: request(name), again: later},
		"unless it was changed":                       {object: fdbRestore(name, completedFDBR, newerFDBR), request: request(name), want: []string{"start fdbr"}, again: later},
		"one that is gone tells a workflow that runs": {request: request(name), want: []string{"deleted fdbr"}},
		"another of its name is another": {
			object: fdbRestore(name, func(o *fdbrObject) { o.UID = "another" }), request: request(name), want: []string{"deleted fdbr"},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s := newStation(t)
			if test.object != nil {
				s = newStation(t, test.object)
			}
			result, err := s.restores.Reconcile(t.Context(), test.request)
			require.NoError(t, err)
			var want []string
			for _, told := range test.want {
				want = append(want, told+" team/"+name+" "+request(name).UID)
			}
			assert.Equal(t, want, s.signals.Sent)
			assert.Equal(t, test.again, result)
		})
	}
	s := newStation(t, fdbRestore(name))
	s.signals.Err = errAway
	_, err := s.restores.Reconcile(t.Context(), force)
	require.ErrorIs(t, err, errAway, "what could not be told is told again")
}

func TestEventsOfFoundationDBRestores(t *testing.T) {
	force := request(name).Forced(true)
	update := func(before, after client.Object) func(events, queue) {
		return func(e events, q queue) {
			e.Update(context.Background(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
		}
	}
	create := func(object client.Object) func(events, queue) {
		return func(e events, q queue) { e.Create(context.Background(), event.CreateEvent{Object: object}, q) }
	}
	secret := func(name, version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: fake.Namespace, Name: name, ResourceVersion: version}}
	}
	namespace := func(ending bool) *metav1.PartialObjectMetadata {
		object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: fake.Namespace}}
		if at := hour(4); ending {
			object.DeletionTimestamp = &at
		}
		return object
	}
	source := fdbInTeam("source", func(o *fdbObject) {
		o.Status.Backups[0].URL, o.Spec.Credentials.SecretName = "blobstore://a@s3/x?bucket=b", "of-the-backup"
	})
	further := edited(source, func(o *fdbObject) { at := hour(20); o.Status.Backups[0].LatestRestorable.Timestamp = &at })
	more := edited(source, func(o *fdbObject) { o.Status.Backups = append(o.Status.Backups, fdbv1alpha1.BackupDetails{URL: "y"}) })
	inherits := func(o *fdbrObject) { o.Spec.Credentials = nil }
	own := func(f *restores) events { return f.OwnEvents(true, controllers.Never) }
	backups := (*restores).backupEvents
	secrets, namespaces := (*restores).secretEvents, (*restores).namespaceEvents
	tests := map[string]struct {
		of     func(*restores) events
		object *fdbrObject
		do     func(events, queue)
		want   []added
	}{
		"a new one is looked at":    {of: own, do: create(fdbRestore(name)), want: atOnce(request(name))},
		"our own status is no news": {of: own, do: update(fdbRestore(name), fdbRestore(name, completedFDBR))},
		"a spec is":                 {of: own, do: update(fdbRestore(name), fdbRestore(name, newerFDBR)), want: atOnce(force)},
		"a deletion is":             {of: own, do: update(fdbRestore(name), fdbRestore(name, deletedFDBR)), want: atOnce(force)},
		"a finalizer that somebody took is": {
			of: own, do: update(fdbRestore(name), fdbRestore(name, func(o *fdbrObject) { o.Finalizers = nil })), want: atOnce(force),
		},
		"its backup comes":                        {of: backups, do: create(source), want: atOnce(force)},
		"its backup has more in the store":        {of: backups, do: update(source, more), want: atOnce(force)},
		"its backup only goes on":                 {of: backups, do: update(source, further)},
		"another backup":                          {of: backups, do: create(fdbInTeam("other"))},
		"its Secret changes":                      {of: secrets, do: update(secret("accounts", "1"), secret("accounts", "2")), want: atOnce(force)},
		"another Secret changes":                  {of: secrets, do: update(secret("other", "1"), secret("other", "2"))},
		"the Secret of its backup does":           {of: secrets, object: fdbRestore(name, inherits), do: create(secret("of-the-backup", "1")), want: atOnce(force)},
		"the backup's Secret, if it has its own":  {of: secrets, do: create(secret("of-the-backup", "1"))},
		"one that has ended needs no Secret":      {of: secrets, object: fdbRestore(name, completedFDBR), do: create(secret("accounts", "1"))},
		"its namespace goes":                      {of: namespaces, do: update(namespace(false), namespace(true)), want: atOnce(force)},
		"its namespace is going, and still going": {of: namespaces, do: update(namespace(true), namespace(true))},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			object := test.object
			if object == nil {
				object = fdbRestore(name)
			}
			s, q := newStation(t, object, source.DeepCopy()), &recordingQueue{}
			test.do(test.of(s.restores), q)
			assert.Equal(t, test.want, q.Added)
		})
	}
}

func TestBothClustersOfARestoreConcernIt(t *testing.T) {
	called := func(name string) *foundationdbv1beta2.FoundationDBCluster {
		return edited(fdbCluster("7.3.48", "lab:1@10.0.0.1:4500"), func(c *foundationdbv1beta2.FoundationDBCluster) { c.Name = name })
	}
	for cluster, concerns := range map[string]bool{"lab": true, "old": true, "third": false} {
		s := newStation(t, fdbRestore(name), fdbRestore("done", completedFDBR))
		after := edited(called(cluster), func(c *foundationdbv1beta2.FoundationDBCluster) { c.Status.ConnectionString = "lab:1@10.0.0.2:4500" })
		s.restores.clusterEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: called(cluster), ObjectNew: after}, nil)
		assert.Equal(t, concerns, len(s.restores.Requested()) == 1, cluster)
		s.restores.clusterEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: after, ObjectNew: after}, nil)
		assert.Empty(t, s.restores.Requested())
	}
}
