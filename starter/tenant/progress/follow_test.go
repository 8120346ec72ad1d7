package progress_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/starter/tenant/progress"
)

func newBackup(uid types.UID) *oadpv1alpha1.NonAdminBackup {
	return &oadpv1alpha1.NonAdminBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly", UID: uid}}
}

// cluster is a client whose watches do not begin with a list, and client-go is told so.
type cluster struct{ client.WithWatch }

func (cluster) IsWatchListSemanticsUnSupported() bool { return true }

func newCluster(objects ...client.Object) client.WithWatch {
	return cluster{fake.NewClientBuilder().WithScheme(k8s.Scheme()).WithObjects(objects...).
		WithStatusSubresource(&oadpv1alpha1.NonAdminBackup{}).
		WithIndex(&oadpv1alpha1.NonAdminBackup{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
		Build()}
}

// watchedCluster is a cluster, and a channel that is closed when it is watched: the fake has no events from before.
func watchedCluster(objects ...client.Object) (from client.WithWatch, watching <-chan struct{}) {
	begun := make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	return cluster{interceptor.NewClient(newCluster(objects...), interceptor.Funcs{
		Watch: func(
			ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption,
		) (watch.Interface, error) {
			changes, err := c.Watch(ctx, list, options...)
			begin()
			return changes, err
		},
	})}, begun
}

func follow(ctx context.Context, from client.WithWatch, nab *oadpv1alpha1.NonAdminBackup, show func(progress.State)) (progress.State, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return progress.Follow(ctx, from, nab, &oadpv1alpha1.NonAdminBackupList{}, progress.Of, show)
}

func TestAnObjectIsFollowedUntilItIsOver(t *testing.T) {
	t.Parallel()
	nab := newBackup("1")
	from, watching := watchedCluster(nab)
	var shown []string
	state, err := follow(t.Context(), from, nab, func(now progress.State) {
		<-watching
		shown = append(shown, now.String())
		phase := velerov1.BackupPhaseInProgress
		if len(shown) > 1 {
			phase = velerov1.BackupPhaseCompleted
		}
		next := newBackup("1")
		require.NoError(t, from.Get(t.Context(), client.ObjectKeyFromObject(nab), next))
		next.Status = oadpv1alpha1.NonAdminBackupStatus{
			Phase:        oadpv1alpha1.NonAdminPhaseCreated,
			VeleroBackup: &oadpv1alpha1.VeleroBackup{Status: &velerov1.BackupStatus{Phase: phase}},
		}
		require.NoError(t, from.Status().Update(t.Context(), next))
	})
	require.NoError(t, err)
	assert.Equal(t, progress.Good, state.Outcome)
	assert.Equal(t, []string{"Pending: the spec is not validated yet", "InProgress", "Completed"}, shown)
}

func TestFollowingEndsWithTheObject(t *testing.T) {
	t.Parallel()
	nab := newBackup("1")
	from, watching := watchedCluster(nab)
	_, err := follow(t.Context(), from, nab, func(progress.State) {
		<-watching
		require.NoError(t, client.IgnoreNotFound(from.Delete(t.Context(), newBackup("1"))))
	})
	require.ErrorIs(t, err, progress.ErrGone)
	_, err = follow(t.Context(), from, nab, func(progress.State) {})
	require.ErrorIs(t, err, progress.ErrGone, "it is not there")
	_, err = follow(t.Context(), newCluster(newBackup("2")), nab, func(progress.State) {})
	require.ErrorIs(t, err, progress.ErrGone, "another has its name")
}

func TestFollowingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	nab := newBackup("1")
	impatience := errors.New("no more")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := follow(ctx, newCluster(nab), nab, func(progress.State) { cancel(impatience) })
	require.ErrorIs(t, err, impatience)
}

// A tenant whose rights are taken away is not left waiting.
func TestFollowingEndsWithTheRights(t *testing.T) {
	t.Parallel()
	nab := newBackup("1")
	from := interceptor.NewClient(newCluster(nab), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "nonadminbackups"}, "nightly", nil)
		},
	})
	_, err := follow(t.Context(), cluster{from}, nab, func(progress.State) {})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

// Who waits sees that the API server is away, once, and that it is back.
func TestFollowingShowsAnOutage(t *testing.T) {
	t.Parallel()
	nab := newBackup("1")
	failures := 2 // after which the API server refuses a request, which is an answer
	from := interceptor.NewClient(newCluster(nab), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			switch failures--; {
			case failures >= 0:
				return errors.New("connection refused")
			case failures == -1:
				return apierrors.NewInvalid(schema.GroupKind{}, "sendInitialEvents", nil)
			}
			return c.List(ctx, list, options...)
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	var shown []string
	_, err := follow(ctx, cluster{from}, nab, func(now progress.State) {
		if shown = append(shown, now.String()); now.Phase == "Pending" {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, []string{
		"cannot reach the API server, will retry: connection refused", "Pending: the spec is not validated yet",
	}, shown)
}

func TestLinesSayWhatIsNew(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Unix(0, 0)
	lines := progress.NewLines(&out, func() time.Time { return now })
	show := func(at time.Duration, state progress.State) {
		now = time.Unix(0, 0).Add(at)
		lines.Show(state)
	}
	copying := func(items int) progress.State {
		return progress.State{Phase: "InProgress", Items: progress.Count{Done: items, Total: 14}}
	}
	show(time.Second, progress.State{Phase: "New"})
	show(2*time.Second, progress.State{Phase: "New"})
	show(3*time.Second, copying(1))
	show(4*time.Second, copying(2))
	show(13*time.Second, copying(9))
	show(14*time.Second, progress.State{Phase: "Failed", Message: "by \x1b[2J"})
	lines.Close()
	assert.Equal(t, "[1s] New\n[3s] InProgress, 1 of 14 items\n[13s] InProgress, 9 of 14 items\n[14s] Failed: by \\x1b[2J\n", out.String())
}
