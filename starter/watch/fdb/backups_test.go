package fdb

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"holdfast.dev/holdfast/activities/fake"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
)

type fdbObject = fdbv1alpha1.FoundationDBBackup

// fdbInTeam returns a FoundationDBBackup of the tenant that is served and as its spec says.
func fdbInTeam(name string, changes ...func(*fdbObject)) *fdbObject {
	object := fdbBackup(name, 9, nil)
	object.Namespace, object.UID = fake.Namespace, types.UID(request(name).UID)
	object.Finalizers = []string{fdbv1alpha1.FinalizerStop, fdbv1alpha1.FinalizerDelete}
	object.Spec.ClusterName, object.Spec.Credentials.SecretName = "lab", "accounts"
	for _, change := range changes {
		change(object)
	}
	return object
}

func stoppedFDB(o *fdbObject) { o.Spec.BackupState = fdbv1alpha1.BackupStateStopped }

func newerFDB(o *fdbObject) { o.Generation++ }

func deletedFDB(o *fdbObject) { at := hour(4); o.DeletionTimestamp = &at }

func TestALookAtAFoundationDBBackup(t *testing.T) {
	later := reconcile.Result{RequeueAfter: 5 * time.Minute}
	force := request(name)
	force.Force = true
	tests := map[string]struct {
		object  *fdbObject
		request Request
		want    []string
		again   reconcile.Result
	}{
		"one that runs only has its workflow running": {object: fdbInTeam(name), request: request(name), want: []string{"ensure fdbb"}, again: later},
		"an event signals it":                         {object: fdbInTeam(name), request: force, want: []string{"start fdbb"}},
		"a newer spec is an event":                    {object: fdbInTeam(name, newerFDB), request: request(name), want: []string{"start fdbb"}, again: later},
		"so is a deletion":                            {object: fdbInTeam(name, deletedFDB), request: request(name), want: []string{"start fdbb"}, again: later},
		"one that is stopped needs no workflow":       {object: fdbInTeam(name, stoppedFDB), request: request(name), again: later},
		"unless it was changed":                       {object: fdbInTeam(name, stoppedFDB, newerFDB), request: request(name), want: []string{"start fdbb"}, again: later},
		"or has not got the finalizer for its data yet": {
			object: fdbInTeam(name, stoppedFDB, func(o *fdbObject) { o.Finalizers = o.Finalizers[:1] }), request: request(name),
			want: []string{"ensure fdbb"}, again: later,
		},
		"or somebody did something to it":             {object: fdbInTeam(name, stoppedFDB), request: force, want: []string{"start fdbb"}},
		"one that is gone tells a workflow that runs": {request: request(name), want: []string{"deleted fdbb"}},
		"another of its name is another": {
			object: fdbInTeam(name, func(o *fdbObject) { o.UID = "another" }), request: request(name), want: []string{"deleted fdbb"},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s := newStation(t)
			if test.object != nil {
				s = newStation(t, test.object)
			}
			result, err := s.backups.Reconcile(t.Context(), test.request)
			require.NoError(t, err)
			var want []string
			for _, told := range test.want {
				want = append(want, told+" team/"+name+" "+request(name).UID)
			}
			assert.Equal(t, want, s.signals.Sent)
			assert.Equal(t, test.again, result)
		})
	}
}

func TestWhatASignalCannotTellIsToldAgain(t *testing.T) {
	s := newStation(t, fdbInTeam(name))
	s.signals.Err = errAway
	force := request(name)
	force.Force = true
	for _, request := range []Request{request(name), force} {
		_, err := s.backups.Reconcile(t.Context(), request)
		require.ErrorIs(t, err, errAway)
	}
}

func TestEventsOfFoundationDBBackups(t *testing.T) {
	force := request(name)
	force.Force = true
	agents := func(changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: fake.Namespace, Name: name}}
		deployment.OwnerReferences = []metav1.OwnerReference{
			*metav1.NewControllerRef(fdbInTeam(name), fdbv1alpha1.GroupVersion.WithKind(fdbv1alpha1.KindFoundationDBBackup)),
		}
		for _, change := range changes {
			change(deployment)
		}
		return deployment
	}
	secret := func(name, version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: fake.Namespace, Name: name, ResourceVersion: version}}
	}
	update := func(before, after client.Object) func(events, queue) {
		return func(e events, q queue) {
			e.Update(context.Background(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
		}
	}
	create := func(object client.Object, initial bool) func(events, queue) {
		return func(e events, q queue) {
			e.Create(context.Background(), event.CreateEvent{Object: object, IsInInitialList: initial}, q)
		}
	}
	remove := func(object client.Object) func(events, queue) {
		return func(e events, q queue) { e.Delete(context.Background(), event.DeleteEvent{Object: object}, q) }
	}
	versioned := func(o *fdbObject) { o.Annotations = map[string]string{fdbv1alpha1.AnnotationClusterVersion: "7.3.48"} }
	ofBackups, deployments, secrets := (*backups).backupEvents, (*backups).agentsEvents, (*backups).secretEvents
	tests := map[string]struct {
		of   func(*backups) events
		do   func(events, queue)
		want []added
	}{
		"a new backup is looked at":                     {of: ofBackups, do: create(fdbInTeam(name), false), want: atOnce(request(name))},
		"one that runs when we start is only looked at": {of: ofBackups, do: create(fdbInTeam(name), true), want: atOnce(request(name))},
		"one that is stopped with data when we start is told": {
			of: ofBackups, do: create(fdbInTeam(name, stoppedFDB), true), want: atOnce(request(name), force),
		},
		"but not one without data": {
			of: ofBackups, do: create(fdbInTeam(name, stoppedFDB, func(o *fdbObject) { o.Status.Backups = nil }), true), want: atOnce(request(name)),
		},
		"nor one that is about to change": {
			of: ofBackups, do: create(fdbInTeam(name, stoppedFDB, newerFDB), true), want: atOnce(request(name)),
		},
		"nor one that comes later":  {of: ofBackups, do: create(fdbInTeam(name, stoppedFDB), false), want: atOnce(request(name))},
		"our own status is no news": {of: ofBackups, do: update(fdbInTeam(name), fdbInTeam(name, func(o *fdbObject) { o.Status.Reconciled = false }))},
		"our own finalizer is no news": {
			of: ofBackups, do: update(fdbInTeam(name, func(o *fdbObject) { o.Finalizers = nil }), fdbInTeam(name)),
		},
		"a spec is":              {of: ofBackups, do: update(fdbInTeam(name), fdbInTeam(name, newerFDB)), want: atOnce(force)},
		"a deletion is":          {of: ofBackups, do: update(fdbInTeam(name), fdbInTeam(name, deletedFDB)), want: atOnce(force)},
		"a cluster's upgrade is": {of: ofBackups, do: update(fdbInTeam(name), fdbInTeam(name, versioned)), want: atOnce(force)},
		"a finalizer that somebody took is": {
			of: ofBackups, do: update(fdbInTeam(name), fdbInTeam(name, func(o *fdbObject) { o.Finalizers = nil })), want: atOnce(force),
		},
		"the finalizer for the data is, too": {
			of: ofBackups, do: update(fdbInTeam(name), fdbInTeam(name, func(o *fdbObject) { o.Finalizers = o.Finalizers[:1] })), want: atOnce(force),
		},
		"the end of one is": {of: ofBackups, do: remove(fdbInTeam(name)), want: atOnce(request(name))},

		"agents that are changed":      {of: deployments, do: update(agents(), agents(func(d *appsv1.Deployment) { d.Generation++ })), want: atOnce(force)},
		"agents that become ready":     {of: deployments, do: update(agents(), agents(func(d *appsv1.Deployment) { d.Status.ReadyReplicas++ })), want: atOnce(force)},
		"agents that are removed":      {of: deployments, do: remove(agents()), want: atOnce(force)},
		"agents of which nothing new":  {of: deployments, do: update(agents(), agents(func(d *appsv1.Deployment) { d.Status.Conditions = []appsv1.DeploymentCondition{{}} }))},
		"somebody else's Deployment":   {of: deployments, do: remove(agents(func(d *appsv1.Deployment) { d.OwnerReferences = nil }))},
		"a Deployment of another kind": {of: deployments, do: remove(agents(func(d *appsv1.Deployment) { d.OwnerReferences[0].Kind = "Other" }))},

		"a Secret that is named and changed":  {of: secrets, do: update(secret("accounts", "1"), secret("accounts", "2")), want: atOnce(force)},
		"a Secret that is named and comes":    {of: secrets, do: create(secret("accounts", "1"), false), want: atOnce(force)},
		"a Secret that was there":             {of: secrets, do: create(secret("accounts", "1"), true)},
		"a Secret that is named and goes":     {of: secrets, do: remove(secret("accounts", "1")), want: atOnce(force)},
		"a Secret that is only listed again":  {of: secrets, do: update(secret("accounts", "1"), secret("accounts", "1"))},
		"a Secret that nobody names":          {of: secrets, do: update(secret("other", "1"), secret("other", "2"))},
		"a Secret of the name somewhere else": {of: secrets, do: remove(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "accounts"}})},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s, q := newStation(t, fdbInTeam(name)), &recordingQueue{}
			test.do(test.of(s.backups), q)
			assert.Equal(t, test.want, q.Added)
		})
	}
}

func fdbCluster(version, connection string) *foundationdbv1beta2.FoundationDBCluster {
	cluster := &foundationdbv1beta2.FoundationDBCluster{ObjectMeta: metav1.ObjectMeta{Namespace: fake.Namespace, Name: "lab"}}
	cluster.Spec.Version, cluster.Status.ConnectionString = version, connection
	return cluster
}

func TestEventsOfAFoundationDBCluster(t *testing.T) {
	force := request(name)
	force.Force = true
	other := fdbInTeam("other", func(o *fdbObject) { o.Spec.ClusterName = "another" })
	ofCluster := atOnce(Request{Namespace: fake.Namespace, Name: "lab"})
	before := fdbCluster("7.3.48", "lab:1@10.0.0.1:4500")
	tests := map[string]struct {
		after   *foundationdbv1beta2.FoundationDBCluster
		version []added
		backups []Request
	}{
		"nothing of importance":   {after: before},
		"another version":         {after: fdbCluster("7.4.1", "lab:1@10.0.0.1:4500"), version: ofCluster},
		"other coordinators":      {after: fdbCluster("7.3.48", "lab:1@10.0.0.2:4500"), backups: []Request{force}},
		"another one of its name": {after: edited(before, func(c *foundationdbv1beta2.FoundationDBCluster) { c.UID = "x" }), backups: []Request{force}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s, q := newStation(t, fdbInTeam(name), other), &recordingQueue{}
			s.backups.clusterEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: test.after}, q)
			assert.Equal(t, test.version, q.Added)
			assert.Equal(t, test.backups, s.backups.Requested())
		})
	}
}

func TestTheVersionOfAClusterIsWrittenOnItsBackups(t *testing.T) {
	other := fdbInTeam("other", func(o *fdbObject) { o.Spec.ClusterName = "another" })
	going := fdbInTeam("going", deletedFDB)
	s := newStation(t, fdbInTeam(name), other, going, fdbCluster("7.3.48", "lab:1@10.0.0.1:4500"))
	conflicts := 0
	s.cache.Fail(func(_ string, object client.Object) error {
		if conflicts++; conflicts == 1 {
			return apierrors.NewConflict(schema.GroupResource{}, object.GetName(), errAway)
		}
		return nil
	})
	ask := Request{Namespace: fake.Namespace, Name: "lab"}
	_, err := s.backups.spreadVersion(t.Context(), ask)
	require.Error(t, err, "a conflict is tried again")
	_, err = s.backups.spreadVersion(t.Context(), ask)
	require.NoError(t, err)
	read := func(name string) string {
		object := &fdbObject{}
		require.NoError(t, s.cache.Client.Get(t.Context(), client.ObjectKey{Namespace: fake.Namespace, Name: name}, object))
		return object.Annotations[fdbv1alpha1.AnnotationClusterVersion]
	}
	require.Equal(t, "7.3.48", read(name))
	require.Empty(t, read("other"))
	require.Empty(t, read("going"))
	writes := len(s.cache.Writes())
	_, err = s.backups.spreadVersion(t.Context(), ask)
	require.NoError(t, err)
	require.Len(t, s.cache.Writes(), writes, "it is there already")
	_, err = s.backups.spreadVersion(t.Context(), Request{Namespace: fake.Namespace, Name: "nowhere"})
	require.NoError(t, err)
}

// A Temporal that has lost its database has lost who uses which container: backups that have ended with data are served again.
func TestAfterTheReturnOfTemporalStoppedBackupsWithDataAreSignalled(t *testing.T) {
	empty := func(o *fdbObject) { o.Status.Backups = nil }
	s := newStation(t, fdbInTeam(name), fdbInTeam("stopped", stoppedFDB), fdbInTeam("unsettled", stoppedFDB, newerFDB),
		fdbInTeam("empty", stoppedFDB, empty), fdbInTeam("new", empty))
	s.backups.RequeueAll(t.Context())
	asked := s.backups.Requested()
	assert.ElementsMatch(t, []Request{
		request(name), request("stopped").Forced(true), request("unsettled"), request("empty"), request("new"),
	}, asked)
	for _, request := range asked {
		_, err := s.backups.Reconcile(t.Context(), request)
		require.NoError(t, err)
	}
	assert.ElementsMatch(t, []string{
		"ensure fdbb team/nightly uid-nightly", "start fdbb team/stopped uid-stopped",
		"start fdbb team/unsettled uid-unsettled", "ensure fdbb team/new uid-new",
	}, s.signals.Sent)
}
