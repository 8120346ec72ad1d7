package heartbeat

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/workflows/contract"
)

// sent notes heartbeats.
type sent struct {
	states []contract.WatcherState
	err    error
}

// Send implements Heartbeats.
func (s *sent) Send(_ context.Context, state contract.WatcherState) error {
	s.states = append(s.states, state)
	return s.err
}

func TestAHeartbeatSaysWhatTheCachesHold(t *testing.T) {
	created := metav1.NewTime(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))
	census := &metrics.Census{Stalled: 1, StalledRestores: 2, PendingApprovals: 3}
	census.Plans.ObjectivesMissed, census.FoundationDB.ObjectivesMissed, census.Plans.VerificationsMissed = 4, 5, 6
	for i, name := range []string{"second", "first", "third"} {
		at := metav1.NewTime(created.Add(time.Duration([]int{1, 0, 2}[i]) * time.Hour))
		census.Unfinished.Add("NonAdminBackup", &metav1.ObjectMeta{Namespace: "team", Name: name, CreationTimestamp: at})
	}
	to := &sent{}
	var counted *metrics.Census
	sender := &Sender{
		Heartbeats: to, Version: "v1", ClusterUID: "u1", Census: func() *metrics.Census { return counted },
		Problem: func() string { return strings.Repeat("x", 500) },
		Now:     func() time.Time { return created.Add(time.Millisecond) }, Log: zap.NewNop(),
	}
	assert.Equal(t, filled, sender.next(t.Context()), "the caches are not filled")
	assert.Empty(t, to.states)
	counted = census
	assert.Equal(t, contract.HeartbeatInterval, sender.next(t.Context()))
	require.Len(t, to.states, 1)
	assert.Len(t, to.states[0].Problem, maxProblem)
	to.states[0].Problem = ""
	assert.Equal(t, []contract.WatcherState{{
		Sent: created.Time, Version: "v1", ClusterUID: "u1", Unfinished: 3,
		Oldest:           &contract.UnfinishedObject{Kind: "NonAdminBackup", Namespace: "team", Name: "first", Created: created.Time},
		ObjectivesMissed: 9, VerificationsMissed: 6, Stalled: 3, PendingApprovals: 3,
	}}, to.states)
	to.err = errors.New("Temporal is away")
	assert.Equal(t, again, sender.next(t.Context()))
}
