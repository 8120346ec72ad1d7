package watch

import (
	"context"
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
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/watch/watched"
)

// first reports whether a read is the first of a sweep.
func first(list runtime.Object) bool {
	metadata, is := list.(*metav1.PartialObjectMetadataList)
	return is && metadata.GroupVersionKind() == velerov1.SchemeGroupVersion.WithKind("BackupList")
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
		s.api = interceptor.NewClient(s.live.Client, interceptor.Funcs{
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
		assert.ElementsMatch(t, []watched.Request{request(name), request("settled")}, s.asked())
	})
}

func TestAPolicyThatWasWrittenIsAppliedToWhatIsKeptBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		going, goingBackup := tracked("going", "InProgress")
		s := newStation(t, keptBack("a"), keptBack("b"), going, goingBackup, fake.NAB("new"))
		s.written.Write("1", policy.Policy{}, nil)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { assert.NoError(t, s.watchPolicy(ctx)) }()
		later := func() []watched.Request {
			time.Sleep(3 * time.Second)
			synctest.Wait()
			return s.asked()
		}
		kept := []watched.Request{request("a"), request("b")}
		assert.ElementsMatch(t, kept, later(), "at the start")
		assert.Empty(t, later(), "unchanged")
		s.written.Write("2", policy.Policy{}, nil)
		assert.ElementsMatch(t, kept, later(), "written, if only to say the same: meanwhile it may have said something else")
		s.written.Write("3", policy.Policy{}, errAway)
		assert.Empty(t, later(), "unreadable")
		s.written.Write("3", policy.Policy{EnforceBackupSpec: &velerov1.BackupSpec{SnapshotVolumes: new(false)}}, nil)
		assert.ElementsMatch(t, kept, later(), "readable again")
		current, err := s.policy.Get(ctx)
		require.NoError(t, err)
		assert.NotNil(t, current.EnforceBackupSpec, "objects are judged by the new one")
		stop()
		synctest.Wait()
	})
}

// Thousands of objects are judged by the policy as read last, not by a request each.
func TestTheWatcherDoesNotAskForThePolicyPerObject(t *testing.T) {
	s := newStation(t)
	for range 4 {
		_, err := s.policy.Get(t.Context())
		require.NoError(t, err)
	}
	assert.Equal(t, 1, s.written.Reads())
}
