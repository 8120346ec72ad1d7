package watch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/starter/watch/controllers"
)

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
		assert.ElementsMatch(t, []controllers.Request{request(name), request("settled")}, s.asked())
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
		later := func() []controllers.Request {
			time.Sleep(3 * time.Second)
			synctest.Wait()
			return s.asked()
		}
		kept := []controllers.Request{request("a"), request("b")}
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
