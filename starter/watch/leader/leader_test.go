package leader

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	kubernetestesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const (
	namespace = "openshift-adp"
	// gaveUp is how long, at most, a lease that its holder gave up stays without one.
	gaveUp = 5 * time.Second
)

var errAway = errors.New("connection refused")

// candidate is a watcher that may lead.
type candidate struct {
	Election
	t       *testing.T
	terms   atomic.Int32
	refused atomic.Pointer[error]
	stop    context.CancelFunc
	ended   chan struct{}
}

func newCandidate(t *testing.T) *candidate {
	t.Helper()
	c := &candidate{t: t, ended: make(chan struct{})}
	c.Log, c.Refused = zap.NewNop(), func(err error) { c.refused.Store(&err) }
	c.Led = func(ctx context.Context) {
		assert.False(c.t, c.Follows(), "who leads follows nobody")
		c.terms.Add(1)
		<-ctx.Done()
	}
	return c
}

func leaseOf(api *kubernetesfake.Clientset, name string) *resourcelock.LeaseLock {
	return &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: LeaseName}, Client: api.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: name},
	}
}

func stand(t *testing.T, api *kubernetesfake.Clientset, name string) *candidate {
	t.Helper()
	return standBy(t, leaseOf(api, name))
}

func standBy(t *testing.T, lease resourcelock.Interface) *candidate {
	t.Helper()
	c := newCandidate(t)
	c.Lease = lease
	ctx, stop := context.WithCancel(t.Context())
	c.stop = stop
	go func() {
		defer close(c.ended)
		assert.NoError(t, c.Run(ctx))
	}()
	return c
}

func (c *candidate) running() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

func TestOneWatcherLeadsAndTheOtherFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := kubernetesfake.NewClientset()
		first := stand(t, api, "first")
		time.Sleep(time.Second)
		second := stand(t, api, "second")
		time.Sleep(10 * time.Second)
		assert.EqualValues(t, 1, first.terms.Load())
		assert.Zero(t, second.terms.Load())
		assert.False(t, first.Follows())
		assert.True(t, second.Follows(), "it has seen the lease renewed")

		first.stop()
		<-first.ended
		time.Sleep(gaveUp)
		assert.EqualValues(t, 1, second.terms.Load(), "a leader that ends gives the lease up")
		assert.False(t, second.Follows())
		second.stop()
		synctest.Wait()
	})
}

func TestALeaderThatWasKilledIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := kubernetesfake.NewClientset()
		first := stand(t, api, "first")
		time.Sleep(time.Second)
		lease := leaseOf(api, "first") // not the one that first renews at the same time
		held, _, err := lease.Get(t.Context())
		require.NoError(t, err)
		first.stop()
		<-first.ended
		held.RenewTime = metav1.Now() // as a killed one leaves it
		require.NoError(t, lease.Update(t.Context(), *held))

		second := stand(t, api, "second")
		for range int(leaseDuration / time.Second) {
			assert.False(t, second.Follows(), "nobody renews that lease: no event is left to the dead")
			time.Sleep(time.Second)
		}
		time.Sleep(3 * leaseRetry) // client-go waits for up to 2.2 of these between two attempts
		assert.EqualValues(t, 1, second.terms.Load())
		second.stop()
		synctest.Wait()
	})
}

// An API server that is away ends a term, and no process.
func TestAnOutageOfTheAPIServerEndsNoWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := kubernetesfake.NewClientset()
		var away atomic.Bool
		api.PrependReactor("*", "leases", func(kubernetestesting.Action) (bool, runtime.Object, error) {
			return away.Load(), nil, errAway
		})
		watchers := []*candidate{stand(t, api, "first"), stand(t, api, "second")}
		terms := func() int { return int(watchers[0].terms.Load() + watchers[1].terms.Load()) }
		time.Sleep(20 * time.Second)
		assert.Equal(t, 1, terms())
		away.Store(true)
		time.Sleep(5 * time.Minute)
		assert.Equal(t, 1, terms(), "nothing is kept in the name of a lease that is lost")
		for _, watcher := range watchers {
			assert.False(t, watcher.Follows(), "without an API server nobody is known to lead")
		}
		away.Store(false)
		time.Sleep(time.Minute)
		assert.Equal(t, 2, terms())
		for _, watcher := range watchers {
			assert.True(t, watcher.running())
			watcher.stop()
		}
		synctest.Wait()
	})
}

func TestWhatTheAPIServerAnswersIsKnown(t *testing.T) {
	for _, verb := range []string{"get", "create", "update"} {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := kubernetesfake.NewClientset()
				var refused atomic.Bool
				refused.Store(true)
				api.PrependReactor(verb, "leases", func(kubernetestesting.Action) (bool, runtime.Object, error) {
					return refused.Load(), nil, errAway
				})
				c := stand(t, api, "first")
				time.Sleep(10 * time.Second)
				synctest.Wait() // the lease is renewed at this instant, which takes a read and a write
				require.ErrorIs(t, *c.refused.Load(), errAway)
				refused.Store(false)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				require.NoError(t, *c.refused.Load())
				assert.NotZero(t, c.terms.Load())
				c.stop()
				synctest.Wait()
			})
		})
	}
}

func TestAWatcherWithoutALeaseLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCandidate(t)
		ctx, stop := context.WithCancel(t.Context())
		go func() { assert.NoError(t, c.Run(ctx)) }()
		time.Sleep(5 * time.Second)
		assert.EqualValues(t, 1, c.terms.Load())
		assert.False(t, c.Follows(), "and is never late")
		stop()
		synctest.Wait()
	})
}
