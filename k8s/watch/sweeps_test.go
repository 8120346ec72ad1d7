package watch

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

func forced(names ...string) []Request {
	var requests []Request
	for _, name := range names {
		r := request(name)
		r.Force = true
		requests = append(requests, r)
	}
	return requests
}

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
	require.NoError(t, s.sweep(t.Context()))
	assert.ElementsMatch(t, forced("finished-meanwhile", "lost", "made-meanwhile"), s.asked())
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
			require.ErrorContains(t, s.sweep(t.Context()), test.want)
			assert.Empty(t, s.asked())
		})
	}
}

// One tenant's object that cannot be judged must not hide the others.
func TestASweepGoesOnAfterAnObjectThatCannotBeJudged(t *testing.T) {
	s := newStation(t)
	s.policy.write("", policy.Policy{}, errAway)
	var want []string
	for i := range 10 {
		require.NoError(t, s.live.Client.Create(t.Context(), fake.NAB("new-"+strconv.Itoa(i))))
		require.NoError(t, s.live.Client.Create(t.Context(), keptBack("kept-"+strconv.Itoa(i))))
		want = append(want, "new-"+strconv.Itoa(i))
	}
	require.ErrorIs(t, s.sweep(t.Context()), errAway)
	assert.ElementsMatch(t, forced(want...), s.asked())
}

// failGets has decide asked before every live read of one object.
func failGets(s *station, decide func(name string) error) {
	s.live.Client = interceptor.NewClient(s.live.Client, interceptor.Funcs{
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
	require.NoError(t, s.sweep(t.Context()))
	assert.Equal(t, forced(name), s.asked())
}

// first reports whether a read is the first of a sweep.
func first(list runtime.Object) bool {
	metadata, is := list.(*metav1.PartialObjectMetadataList)
	return is && metadata.GroupVersionKind() == velerov1.SchemeGroupVersion.WithKind("BackupList")
}

// What is the same is not read: metadata come in pages, and only what differs is read whole.
func TestASweepReadsWholeOnlyWhatDiffers(t *testing.T) {
	var there []client.Object
	for i := range 10 {
		nab, velero := tracked("same-"+strconv.Itoa(i), velerov1.BackupPhaseInProgress)
		there = append(there, nab, velero)
	}
	s := newStation(t, there...)
	s.live = s.cache
	require.NoError(t, s.cache.Client.Create(t.Context(), fake.NAB("other")))
	behind := newStation(t).cache // has all but that one
	s.gatherer.Reader = interceptor.NewClient(s.cache.Client, interceptor.Funcs{
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
	s.live = &fake.World{Client: interceptor.NewClient(s.cache.Client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			read = append(read, key.Name)
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			assert.IsType(t, &metav1.PartialObjectMetadataList{}, list)
			given := (&client.ListOptions{}).ApplyOptions(options)
			assert.EqualValues(t, metadataPageSize, given.Limit)
			assert.Len(t, pages, 1, "informers wait")
			return c.List(ctx, list, options...)
		},
	})}
	require.NoError(t, s.sweep(t.Context()))
	assert.Equal(t, []string{"other"}, read)
	assert.Equal(t, forced("other"), s.asked())
}

func TestMetadataAreReadPageByPage(t *testing.T) {
	s := newStation(t)
	var asked []string
	s.live.Client = interceptor.NewClient(s.live.Client, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			given := (&client.ListOptions{}).ApplyOptions(options)
			asked = append(asked, given.Continue)
			page := list.(*metav1.PartialObjectMetadataList)
			page.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "on-page-" + given.Continue}}}
			page.Continue = map[string]string{"": "2", "2": "3", "3": ""}[given.Continue]
			return nil
		},
	})
	var found []string
	err := s.listMetadata(t.Context(), &velerov1.Backup{}, fake.OADPNamespace, func(o *metav1.PartialObjectMetadata) error {
		found = append(found, o.Name)
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"", "2", "3"}, asked)
	assert.Equal(t, []string{"on-page-", "on-page-2", "on-page-3"}, found)
}

// For a minute after the API server's return the informers may be silent: the sweeps stand in for them, failures or not.
func TestAfterTheReturnOfTheAPIServerItIsSweptForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t)
		require.NoError(t, s.live.Client.Create(t.Context(), fake.NAB(name)))
		started := time.Now()
		var sweeps []time.Duration
		s.live.FailReads(func(list runtime.Object) error {
			if first(list) {
				sweeps = append(sweeps, time.Since(started))
				if len(sweeps) == 2 {
					return errAway
				}
			}
			return nil
		})
		s.Recovered(t.Context())
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		assert.Equal(t, []time.Duration{
			0, 10 * time.Second, 20 * time.Second, 30 * time.Second, 40 * time.Second, 50 * time.Second, time.Minute,
		}, sweeps)
		assert.Equal(t, forced(name, name, name, name, name, name), s.asked())
	})
}

// An API server that comes and goes must not have more to do with each return.
func TestAnotherReturnOfTheAPIServerTakesTheSweepsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t)
		started := time.Now()
		var sweeps []time.Duration
		s.live.FailReads(func(list runtime.Object) error {
			if first(list) {
				sweeps = append(sweeps, time.Since(started))
			}
			return nil
		})
		s.Recovered(t.Context())
		time.Sleep(15 * time.Second)
		s.Recovered(t.Context())
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		var want []time.Duration
		for _, second := range []int{0, 10, 15, 25, 35, 45, 55, 65, 75} {
			want = append(want, time.Duration(second)*time.Second)
		}
		assert.Equal(t, want, sweeps)
	})
}

// One that hangs must not be asked by several at a time.
func TestOnlyOneSweepsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t)
		var asking, atMost, asked atomic.Int32
		s.live.Client = interceptor.NewClient(s.live.Client, interceptor.Funcs{
			List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
				atMost.Store(max(atMost.Load(), asking.Add(1)))
				defer asking.Add(-1)
				asked.Add(1)
				<-ctx.Done()
				time.Sleep(time.Millisecond) // what it takes to notice
				return ctx.Err()
			},
		})
		ctx, stop := context.WithCancel(t.Context())
		for range 5 {
			s.Recovered(ctx)
			time.Sleep(time.Second)
		}
		stop()
		time.Sleep(time.Second)
		assert.EqualValues(t, 5, asked.Load())
		assert.EqualValues(t, 1, atMost.Load())
		assert.Zero(t, asking.Load())
	})
}

func TestSweepsEndWithTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t)
		ctx, stop := context.WithCancel(t.Context())
		s.Recovered(ctx)
		synctest.Wait()
		stop()
		synctest.Wait() // the bubble would not end while a sweep waits
	})
}

// Temporal may have lost its database: all that is in the cache is looked at, and only what is not settled signalled.
func TestAfterTheReturnOfTemporalEverythingIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settled, settledBackup := tracked("settled", "Completed")
		s := newStation(t, fake.NAB(name), settled, settledBackup)
		s.TemporalRecovered(t.Context())
		synctest.Wait()
		assert.Empty(t, s.asked(), "before the caches are filled all are looked at anyway")

		s.watching.Store(true)
		s.TemporalRecovered(t.Context())
		synctest.Wait()
		assert.ElementsMatch(t, []Request{request(name), request("settled")}, s.asked())
	})
}

func TestAPolicyThatWasWrittenIsAppliedToWhatIsKeptBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		going, goingBackup := tracked("going", "InProgress")
		s := newStation(t, keptBack("a"), keptBack("b"), going, goingBackup, fake.NAB("new"))
		s.policy.write("1", policy.Policy{}, nil)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { assert.NoError(t, s.watchPolicy(ctx)) }()
		later := func() []Request {
			time.Sleep(3 * time.Second)
			synctest.Wait()
			return s.asked()
		}
		kept := []Request{request("a"), request("b")}
		assert.ElementsMatch(t, kept, later(), "at the start")
		assert.Empty(t, later(), "unchanged")
		s.policy.write("2", policy.Policy{}, nil)
		assert.ElementsMatch(t, kept, later(), "written, if only to say the same: meanwhile it may have said something else")
		s.policy.write("3", policy.Policy{}, errAway)
		assert.Empty(t, later(), "unreadable")
		s.policy.write("3", policy.Policy{EnforceBackupSpec: &velerov1.BackupSpec{SnapshotVolumes: new(false)}}, nil)
		assert.ElementsMatch(t, kept, later(), "readable again")
		current, err := s.Watcher.policy.Get(ctx)
		require.NoError(t, err)
		assert.NotNil(t, current.EnforceBackupSpec, "objects are judged by the new one")
		stop()
		synctest.Wait()
	})
}

// A manager that stops must not hang on requests that nobody takes any more.
func TestAFullQueueDoesNotHoldUpTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t)
		s.requests = nil // nobody takes anything
		ctx, stop := context.WithCancel(t.Context())
		ended := false
		go func() {
			s.enqueue(ctx, request(name))
			ended = true
		}()
		synctest.Wait()
		assert.False(t, ended, "no request is dropped")
		stop()
		synctest.Wait()
		assert.True(t, ended)
	})
}
