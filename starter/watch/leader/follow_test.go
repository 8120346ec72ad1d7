package leader

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaderElsewhere holds the lease as a watcher on another machine does, whose clock differs from this one's.
type leaderElsewhere struct {
	*testing.T

	lease *resourcelock.LeaseLock
	ahead time.Duration
}

func newLeaderElsewhere(t *testing.T, api *kubernetesfake.Clientset, ahead time.Duration) *leaderElsewhere {
	t.Helper()
	l := &leaderElsewhere{T: t, lease: leaseOf(api, "elsewhere"), ahead: ahead}
	require.NoError(t, l.lease.Create(t.Context(), l.record()))
	return l
}

func (l *leaderElsewhere) record() resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{
		HolderIdentity: "elsewhere", LeaseDurationSeconds: int(leaseDuration / time.Second),
		RenewTime: metav1.NewTime(time.Now().Add(l.ahead)),
	}
}

// renews renews the lease for that long.
func (l *leaderElsewhere) renews(during time.Duration) {
	l.Helper()
	for began := time.Now(); time.Since(began) < during; time.Sleep(leaseRetry) {
		_, _, err := l.lease.Get(l.Context())
		require.NoError(l, err)
		require.NoError(l, l.lease.Update(l.Context(), l.record()))
	}
}

func TestTheClocksOfTwoWatchersAreNotCompared(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := kubernetesfake.NewClientset()
				elsewhere := newLeaderElsewhere(t, api, ahead)
				c := stand(t, api, "here")
				time.Sleep(time.Second)
				assert.False(t, c.Follows(), "a lease that was read once may be a dead watcher's")
				elsewhere.renews(time.Minute)
				assert.True(t, c.Follows())

				// It is killed, or hangs.
				time.Sleep(renewDeadline + 3*leaseRetry)
				assert.False(t, c.Follows(), "before there is a new leader")
				time.Sleep(leaseDuration)
				assert.EqualValues(t, 1, c.terms.Load())
				c.stop()
				synctest.Wait()
			})
		})
	}
}

// Somebody deletes the lease: who leads then follows nobody, although it has just seen another leader. Each candidate checks that.
func TestALeaseThatIsDeletedIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := kubernetesfake.NewClientset()
		elsewhere := newLeaderElsewhere(t, api, 0)
		c := stand(t, api, "here")
		elsewhere.renews(time.Minute)
		require.True(t, c.Follows())
		require.NoError(t, api.CoordinationV1().Leases(namespace).Delete(t.Context(), LeaseName, metav1.DeleteOptions{}))
		time.Sleep(3 * leaseRetry)
		assert.EqualValues(t, 1, c.terms.Load())
		c.stop()
		synctest.Wait()
	})
}

// frozen is the lock of a watcher that does nothing for a while, and writes a lease that has changed since it was read.
type frozen struct {
	resourcelock.Interface
	until time.Time
}

func (l *frozen) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	time.Sleep(time.Until(l.until))
	current, _, err := l.Get(ctx)
	if err == nil && current.HolderIdentity != record.HolderIdentity {
		return errAway
	}
	return l.Interface.Update(ctx, record)
}

// A leader that hung, and goes on when another one leads, follows that one.
func TestALeaderThatHungFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := kubernetesfake.NewClientset()
		lock := &frozen{Interface: leaseOf(api, "here")}
		c := standBy(t, lock)
		time.Sleep(time.Second)
		require.EqualValues(t, 1, c.terms.Load())
		lock.until = time.Now().Add(leaseDuration)
		time.Sleep(leaseDuration - time.Second)
		elsewhere := &leaderElsewhere{T: t, lease: leaseOf(api, "elsewhere")}
		elsewhere.renews(time.Minute)
		assert.True(t, c.Follows())
		assert.EqualValues(t, 1, c.terms.Load())
		c.stop()
		synctest.Wait()
	})
}

// A watcher that is started anew where no other runs finds the lease of its dead predecessor.
func TestOneWatcherAloneIsNeverLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := kubernetesfake.NewClientset()
		newLeaderElsewhere(t, api, 0)
		c := stand(t, api, "here")
		for range 60 {
			time.Sleep(time.Second)
			assert.False(t, c.Follows())
		}
		assert.EqualValues(t, 1, c.terms.Load())
		c.stop()
		synctest.Wait()
	})
}
