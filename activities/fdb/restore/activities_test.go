package restore_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fdb/restore"
	"holdfast.dev/holdfast/k8s"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	"holdfast.dev/holdfast/workflows/contract"
)

// restoreWorld is a Kubernetes cluster in memory with a FoundationDBRestore.
type restoreWorld struct {
	client.Client
	t      *testing.T
	tools  *restore.Activities
	events chan string
}

const restoreUID = "0a1b2c3d-1111-2222-3333-444444444444"

var fdbRestoreRef = contract.ObjectRef{Namespace: "team", Name: "back", UID: restoreUID}

func newRestoreWorld(t *testing.T, change func(*fdbv1alpha1.FoundationDBRestore)) *restoreWorld {
	t.Helper()
	object := &fdbv1alpha1.FoundationDBRestore{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "back", UID: restoreUID, Generation: 1,
	}}
	object.Spec = fdbv1alpha1.FoundationDBRestoreSpec{
		BackupURL: "blobstore://lab@s3.local/a?bucket=backups", DestinationClusterName: "copy",
		Credentials: &fdbv1alpha1.CredentialsReference{SecretName: "accounts"},
	}
	cluster := &foundationdbv1beta2.FoundationDBCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "copy"}}
	cluster.Spec.Version, cluster.Status.ConnectionString = "7.3.48", "copy:1@10.0.0.1:4500"
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "accounts"},
		Data:       map[string][]byte{"credentials": []byte(`{"accounts":{"lab@s3.local":{"secret":"hush"}}}`)},
	}
	if change != nil {
		change(object)
	}
	recorder := events.NewFakeRecorder(100)
	to := fakeclient.NewClientBuilder().WithScheme(k8s.Scheme()).WithStatusSubresource(&fdbv1alpha1.FoundationDBRestore{}).
		WithObjects(object, cluster, secret, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}).Build()
	return &restoreWorld{
		Client: to, t: t, events: recorder.Events,
		tools: &restore.Activities{
			Cluster:  activities.Cluster{Client: to, Events: recorder, Paused: activities.NeverPaused},
			Gatherer: &restore.Gatherer{Reader: to},
		},
	}
}

func (w *restoreWorld) do(name string, in any) contract.FDBRestoreView {
	w.t.Helper()
	view, err := activitytest.Performed[contract.FDBRestoreView](w.t, w.tools, name, in)
	require.NoError(w.t, err)
	return view
}

func (w *restoreWorld) Object() *fdbv1alpha1.FoundationDBRestore {
	w.t.Helper()
	object := &fdbv1alpha1.FoundationDBRestore{}
	require.NoError(w.t, w.Get(w.t.Context(), client.ObjectKey{Namespace: "team", Name: "back"}, object))
	return object
}

// Events returns the Events since the last call.
func (w *restoreWorld) Events() []string {
	var all []string
	for {
		select {
		case event := <-w.events:
			all = append(all, event)
		default:
			return all
		}
	}
}

func TestRestoreIsHeldWhileItMayRun(t *testing.T) {
	step := contract.ObjectStep{Ref: fdbRestoreRef}
	w := newRestoreWorld(t, nil)
	for range 2 {
		assert.True(t, w.do(contract.ObserveFDBRestore.Name, step).Held)
	}
	assert.Equal(t, []string{fdbv1alpha1.FinalizerAbort}, w.Object().Finalizers)
	for _, state := range []fdbv1alpha1.ObservedRestoreState{
		fdbv1alpha1.RestoreCompleted, fdbv1alpha1.RestoreAborted, fdbv1alpha1.RestoreFailed,
	} {
		w := newRestoreWorld(t, func(r *fdbv1alpha1.FoundationDBRestore) { r.Status.State = state })
		assert.False(t, w.do(contract.ObserveFDBRestore.Name, step).Held, "%s is over", state)
	}
	step.Ref.UID = "another"
	assert.False(t, w.do(contract.ObserveFDBRestore.Name, step).Found)
}

func TestRestorePlanIsWrittenOnce(t *testing.T) {
	w := newRestoreWorld(t, nil)
	planning := contract.FDBRestorePlanning{Ref: fdbRestoreRef, Generation: 1, Plan: contract.FDBRestorePlan{
		Tag: "back-0a1b2c3d", URL: "blobstore://lab@s3.local/a?bucket=backups", Version: 7, Destination: "copy:1",
	}}
	stale := planning
	stale.Generation = 2
	assert.Nil(t, w.do(contract.PlanFDBRestore.Name, stale).Plan)
	assert.EqualValues(t, 7, w.do(contract.PlanFDBRestore.Name, planning).Plan.Version)
	planning.Plan.Version = 8
	assert.EqualValues(t, 7, w.do(contract.PlanFDBRestore.Name, planning).Plan.Version, "it never changes")
	assert.EqualValues(t, 7, w.Object().Status.Plan.Version)
}

func TestRestoreFindingsGetOneEvent(t *testing.T) {
	w := newRestoreWorld(t, nil)
	findings := contract.FDBRestoreFindings{Ref: fdbRestoreRef, Generation: 1, State: "completed", Percent: 100, Restored: 7}
	for range 2 {
		assert.Equal(t, "completed", w.do(contract.PublishFDBRestore.Name, findings).State)
	}
	assert.Len(t, w.Events(), 1)
	findings.State = "running"
	assert.Equal(t, "completed", w.do(contract.PublishFDBRestore.Name, findings).State, "it never goes back")
	assert.EqualValues(t, 7, w.Object().Status.RestoredVersion)
}

func TestRestoreIsReleasedOnlyWhenItIsDeleted(t *testing.T) {
	release := contract.FDBRestoreRelease{Ref: fdbRestoreRef, Note: "partial data"}
	held := func(r *fdbv1alpha1.FoundationDBRestore) { r.Finalizers = []string{fdbv1alpha1.FinalizerAbort} }
	w := newRestoreWorld(t, held)
	assert.True(t, w.do(contract.ReleaseFDBRestore.Name, release).Held)
	assert.Empty(t, w.Events())

	require.NoError(t, w.Delete(t.Context(), w.Object()))
	assert.True(t, w.do(contract.ObserveFDBRestore.Name, contract.ObjectStep{Ref: fdbRestoreRef}).BeingDeleted)
	assert.False(t, w.do(contract.ReleaseFDBRestore.Name, release).Held)
	events := w.Events()
	require.Len(t, events, 1)
	assert.Contains(t, events[0], "Warning")
	assert.Contains(t, events[0], "partial data")
	assert.False(t, w.do(contract.ReleaseFDBRestore.Name, release).Found, "it is gone")
}

func TestTheEndOfAReleasedRestoreGetsAnEvent(t *testing.T) {
	tests := map[string]struct {
		release contract.FDBRestoreRelease
		want    []string
	}{
		"nothing is left": {},
		"it was aborted":  {contract.FDBRestoreRelease{Note: "partial data", Aborted: true}, []string{"Warning RestoreAborted partial data"}},
		"it may go on":    {contract.FDBRestoreRelease{Note: "not aborted"}, []string{"Warning Abandoned not aborted"}},
		"it had ended":    {contract.FDBRestoreRelease{Aborted: true}, nil},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := newRestoreWorld(t, func(r *fdbv1alpha1.FoundationDBRestore) { r.Finalizers = []string{fdbv1alpha1.FinalizerAbort} })
			require.NoError(t, w.Delete(t.Context(), w.Object()))
			test.release.Ref = fdbRestoreRef
			w.do(contract.ReleaseFDBRestore.Name, test.release)
			assert.Equal(t, test.want, w.Events())
		})
	}
}
