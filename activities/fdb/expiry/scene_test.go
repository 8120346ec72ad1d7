package expiry_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/fdb/expiry"
	"holdfast.dev/holdfast/activities/fdb/gather"
	"holdfast.dev/holdfast/activities/fdb/jobs"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

// expiryTurn is when the turns of these tests begin.
const expiryTurn int64 = 1_785_585_600

// expiryWorld is an fake.FDBWorld in which turns make pods.
type expiryWorld struct {
	*fake.FDBWorld
	expiries *expiry.Activities
	// fail returns the API server's error for "create" and "delete"; they are done if it returns nil.
	fail map[string]error
	// deleted are the options of all deletions.
	deleted []*client.DeleteOptions
}

// expiryBackup returns an object with a policy and two backups in its status, of which the newer one runs.
func expiryBackup(o *fdbv1alpha1.FoundationDBBackup) {
	o.Spec.Expiry = fdbv1alpha1.BackupExpiry{MaxRetention: "720h", MinRestorable: "168h"}
	data := &fdbv1alpha1.RestorePoint{Version: 7}
	o.Status.Backups = []fdbv1alpha1.BackupDetails{
		{Tag: "default", URL: storeURL("old"), State: fdb.StateAborted, OldestData: data, LatestRestorable: data},
		{Tag: "default", URL: storeURL("new"), State: fdb.StateRunningDifferentially, OldestData: data, LatestRestorable: data},
	}
}

// expiryNow is a minute after the turns of these tests begin.
func expiryNow() time.Time { return time.Unix(expiryTurn+60, 0) }

func storeURL(path string) string { return "blobstore://lab@s3.local/" + path + "?bucket=fdb" }

func storePlace(path string) contract.FDBPlace {
	return contract.FDBPlace{URL: storeURL(path), Container: "s3.local:443/fdb/" + path}
}

func newExpiryWorld(t *testing.T, changes ...func(*fdbv1alpha1.FoundationDBBackup)) *expiryWorld {
	t.Helper()
	w := &expiryWorld{FDBWorld: fake.NewFDBWorld(), fail: map[string]error{}}
	w.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if err := w.fail["create"]; err != nil {
				return err
			}
			return c.Create(ctx, o, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if _, is := o.(*corev1.Pod); is {
				w.deleted = append(w.deleted, (&client.DeleteOptions{}).ApplyOptions(options))
			}
			if err := w.fail["delete"]; err != nil {
				return err
			}
			return c.Delete(ctx, o, options...)
		},
	})
	w.expiries = &expiry.Activities{Client: w.Client, Gatherer: &gather.Gatherer{Reader: w.Client}, Now: expiryNow}
	w.change(t, expiryBackup)
	w.change(t, changes...)
	return w
}

// change updates the object and its status.
func (w *expiryWorld) change(t *testing.T, changes ...func(*fdbv1alpha1.FoundationDBBackup)) {
	t.Helper()
	object := w.Object(t)
	for _, change := range changes {
		change(object)
	}
	status := object.Status.DeepCopy()
	require.NoError(t, w.Update(t.Context(), object))
	object.Status = *status
	require.NoError(t, w.Status().Update(t.Context(), object))
}

// goes deletes the object, which these finalizers keep.
func (w *expiryWorld) goes(t *testing.T, finalizers ...string) {
	t.Helper()
	w.change(t, func(o *fdbv1alpha1.FoundationDBBackup) { o.Finalizers = finalizers })
	require.NoError(t, w.Delete(t.Context(), w.Object(t)))
}

// try runs an activity as a worker does.
func try[Out any](t *testing.T, w *expiryWorld, name string, in any) (Out, error) {
	t.Helper()
	return activitytest.Performed[Out](t, w.expiries, name, in)
}

func (w *expiryWorld) plan(t *testing.T, ref contract.ObjectRef, job contract.FDBJob) contract.FDBExpiryPlan {
	t.Helper()
	plan, err := try[contract.FDBExpiryPlan](t, w, contract.PlanFDBExpiry.Name,
		contract.FDBExpiryStep{Ref: ref, Job: job, Turn: expiryTurn})
	require.NoError(t, err)
	return plan
}

// pod runs one of the activities that take the step of a pod.
func (w *expiryWorld) pod(t *testing.T, name string, step contract.FDBPodStep) contract.FDBPodView {
	t.Helper()
	view, err := try[contract.FDBPodView](t, w, name, step)
	require.NoError(t, err)
	return view
}

// deletesAt returns the step of a pod that deletes, in the turn of an expiration that began at a time.
func deletesAt(turn int64) contract.FDBPodStep {
	return contract.FDBPodStep{
		Ref: fake.FDBRef, Turn: turn, Number: 1, Job: contract.FDBJobExpire, Delete: []contract.FDBPlace{storePlace("old")},
	}
}

// made returns a pod as the API server has it.
func (w *expiryWorld) made(t *testing.T, step contract.FDBPodStep) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	require.NoError(t, w.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: jobs.NameOf(step)}, pod))
	return pod
}

// stranger creates a pod with a step's name and labels that is not ours.
func (w *expiryWorld) stranger(t *testing.T, step contract.FDBPodStep) {
	t.Helper()
	require.NoError(t, w.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: jobs.NameOf(step),
		Labels: map[string]string{
			fdbv1alpha1.LabelExpiry: "lab", fdbv1alpha1.LabelTurn: strconv.FormatInt(step.Turn, 10), fdbv1alpha1.LabelJob: "delete",
		},
	}}))
}
