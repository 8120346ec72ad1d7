package fake

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/fdb/backup"
	"holdfast.dev/holdfast/activities/fdb/gather"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	"holdfast.dev/holdfast/workflows/contract"
)

// FDBWorld is a Kubernetes cluster in memory with a FoundationDBBackup and everything that it needs.
type FDBWorld struct {
	client.Client
	Backups *backup.Activities
	events  chan string
	// writes are "verb kind". Before is called before each write.
	writes []string
	Before func(write string)
}

// FDBRef is the FoundationDBBackup of an FDBWorld.
var FDBRef = contract.ObjectRef{Namespace: "team", Name: "lab", UID: "u"}

// NewFDBWorld returns an API server with those objects.
func NewFDBWorld(objects ...client.Object) *FDBWorld {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "team", Name: name} }
	object := &fdbv1alpha1.FoundationDBBackup{ObjectMeta: meta("lab")}
	object.UID, object.Generation, object.Spec.Credentials.SecretName = "u", 1, "accounts"
	cluster := &foundationdbv1beta2.FoundationDBCluster{ObjectMeta: meta("lab")}
	cluster.Spec.Version, cluster.Status.ConnectionString = "7.3.48", "lab:1@10.0.0.1:4500"
	secret := &corev1.Secret{
		ObjectMeta: meta("accounts"), Data: map[string][]byte{"credentials": []byte(`{"accounts":{"lab@s3.local":{"secret":"hush"}}}`)},
	}
	w := &FDBWorld{Before: func(string) {}}
	note := func(verb string, o client.Object) {
		write := verb + " " + kindOf(o)
		w.Before(write)
		w.writes = append(w.writes, write)
	}
	recorder := events.NewFakeRecorder(100)
	w.events = recorder.Events
	base := fake.NewClientBuilder().WithScheme(scheme()).WithStatusSubresource(&fdbv1alpha1.FoundationDBBackup{}).
		WithObjects(append(objects, object, cluster, secret, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})...)
	w.Client = base.WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			note("create", o)
			return c.Create(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			note("patch", o)
			return c.Patch(ctx, o, p, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			options ...client.SubResourcePatchOption,
		) error {
			note(sub, o)
			return c.SubResource(sub).Patch(ctx, o, p, options...)
		},
	}).Build()
	w.Backups = &backup.Activities{
		Cluster:  activities.Cluster{Client: w.Client, Events: recorder, Paused: activities.NeverPaused},
		Gatherer: &gather.Gatherer{Reader: w.Client},
	}
	return w
}

func kindOf(o client.Object) string {
	switch o.(type) {
	case *appsv1.Deployment:
		return "deployment"
	case *fdbv1alpha1.FoundationDBBackup:
		return "backup"
	}
	return "other"
}

// SetDeletionFinalizer sets spec.expiry.deletionFinalizer.
func (w *FDBWorld) SetDeletionFinalizer(t *testing.T, requested bool) {
	t.Helper()
	object := w.Object(t)
	object.Spec.Expiry.DeletionFinalizer = new(requested)
	require.NoError(t, w.Update(t.Context(), object))
}

// Gone reports whether the FoundationDBBackup is gone.
func (w *FDBWorld) Gone(t *testing.T) bool {
	t.Helper()
	err := w.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "lab"}, &fdbv1alpha1.FoundationDBBackup{})
	return apierrors.IsNotFound(err)
}

// Object reads the FoundationDBBackup.
func (w *FDBWorld) Object(t *testing.T) *fdbv1alpha1.FoundationDBBackup {
	t.Helper()
	object := &fdbv1alpha1.FoundationDBBackup{}
	require.NoError(t, w.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "lab"}, object))
	return object
}

// Deployment reads the agents' Deployment.
func (w *FDBWorld) Deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	deployment := &appsv1.Deployment{}
	require.NoError(t, client.IgnoreNotFound(w.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "lab"}, deployment)))
	return deployment
}

// Wrote empties the list of writes and returns it.
func (w *FDBWorld) Wrote() []string {
	writes := w.writes
	w.writes = nil
	return writes
}

// Events returns the Events since the last call.
func (w *FDBWorld) Events() []string {
	var events []string
	for len(w.events) > 0 {
		events = append(events, <-w.events)
	}
	return events
}
