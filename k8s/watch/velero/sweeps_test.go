package velero

import (
	"context"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
)

// After an outage the cache still shows how it was before: what a sweep finds, it finds at the API server.
func TestASweepJudgesByWhatTheAPIServerSays(t *testing.T) {
	stale, staleBackup := tracked("finished-meanwhile", "InProgress")
	finished := edited(staleBackup, func(b *velerov1.Backup) { b.Status.Phase = velerov1.BackupPhaseCompleted })
	settled, settledBackup := tracked("settled", "Completed")
	lost, lostBackup := tracked("lost", "Completed")
	gone, goneBackup := tracked("gone", "InProgress")
	made := fake.NAB("made-meanwhile")

	s := newStation(t, stale, staleBackup, settled, settledBackup, lost, lostBackup, gone, goneBackup)
	for _, o := range []client.Object{stale, finished, settled, settledBackup, lost, made} {
		o = o.DeepCopyObject().(client.Object)
		o.SetResourceVersion("")
		require.NoError(t, s.live.Client.Create(t.Context(), o))
	}
	require.NoError(t, s.backups.Recover(t.Context()))
	assert.ElementsMatch(t, forced("finished-meanwhile", "lost", "made-meanwhile"), s.backups.Requested())
}

func TestASweepThatFailsSaysWhy(t *testing.T) {
	tests := map[string]struct {
		disturb func(s *station)
		want    string
	}{
		"paused":                   {func(s *station) { s.paused = errAway }, "connection refused"},
		"the API server went away": {func(s *station) { s.live.FailReads(func(runtime.Object) error { return errAway }) }, "list live"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s := newStation(t)
			require.NoError(t, s.live.Client.Create(t.Context(), fake.NAB(name)))
			test.disturb(s)
			require.ErrorContains(t, s.backups.Recover(t.Context()), test.want)
			assert.Empty(t, s.backups.Requested())
		})
	}
}

// One tenant's object that cannot be judged must not hide the others.
func TestASweepGoesOnAfterAnObjectThatCannotBeJudged(t *testing.T) {
	s := newStation(t)
	s.policy.Write("", policy.Policy{}, errAway)
	var want []string
	for i := range 10 {
		require.NoError(t, s.live.Client.Create(t.Context(), fake.NAB("new-"+strconv.Itoa(i))))
		require.NoError(t, s.live.Client.Create(t.Context(), keptBack("kept-"+strconv.Itoa(i))))
		want = append(want, "new-"+strconv.Itoa(i))
	}
	require.ErrorIs(t, s.backups.Recover(t.Context()), errAway)
	assert.ElementsMatch(t, forced(want...), s.backups.Requested())
}

// failGets has decide asked before every live read of one object.
func failGets(s *station, decide func(name string) error) {
	s.env.API = interceptor.NewClient(s.live.Client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := decide(key.Name); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
}

// So must one that cannot be read: it counts as the cache has it.
func TestASweepGoesOnAfterAnObjectThatCannotBeRead(t *testing.T) {
	kept, velero := tracked("kept", velerov1.BackupPhaseInProgress)
	s := newStation(t, kept, velero)
	for _, object := range []client.Object{kept, velero, fake.NAB("unread"), fake.NAB(name)} {
		object = object.DeepCopyObject().(client.Object)
		object.SetResourceVersion("")
		object.SetLabels(map[string]string{"changed": "meanwhile"})
		require.NoError(t, s.live.Client.Create(t.Context(), object))
	}
	failGets(s, func(asked string) error {
		if asked == name {
			return nil
		}
		return errAway
	})
	require.NoError(t, s.backups.Recover(t.Context()))
	assert.Equal(t, forced(name), s.backups.Requested())
}

// What is the same is not read: metadata come in pages, and only what differs is read whole.
func TestASweepReadsWholeOnlyWhatDiffers(t *testing.T) {
	var there []client.Object
	for i := range 10 {
		nab, velero := tracked("same-"+strconv.Itoa(i), velerov1.BackupPhaseInProgress)
		there = append(there, nab, velero)
	}
	s := newStation(t, there...)
	require.NoError(t, s.cache.Client.Create(t.Context(), fake.NAB("other")))
	behind := newStation(t).cache // has all but that one
	s.env.Client = interceptor.NewClient(s.cache.Client, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, list, options...)
			if nabs, is := list.(*oadpv1alpha1.NonAdminBackupList); is {
				nabs.Items = slices.DeleteFunc(nabs.Items, func(nab oadpv1alpha1.NonAdminBackup) bool { return nab.Name == "other" })
			}
			return err
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if key.Name == "other" {
				return behind.Client.Get(ctx, key, o, opts...)
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	var read []string
	s.env.API = interceptor.NewClient(s.cache.Client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			read = append(read, key.Name)
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			assert.IsType(t, &metav1.PartialObjectMetadataList{}, list)
			return c.List(ctx, list, options...)
		},
	})
	require.NoError(t, s.backups.Recover(t.Context()))
	assert.Equal(t, []string{"other"}, read)
	assert.Equal(t, forced("other"), s.backups.Requested())
}
