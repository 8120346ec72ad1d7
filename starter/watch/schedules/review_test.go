package schedules

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"holdfast.dev/holdfast/activities/plan"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// signalled notes the plans that were signalled.
type signalled struct {
	connect.Workflows
	names []string
}

// SignalWithStart implements connect.Workflows.
func (s *signalled) SignalWithStart(_ context.Context, _ contract.Kind, ref contract.ObjectRef, _ contract.Hint) error {
	s.names = append(s.names, ref.Name)
	return nil
}

// listed are Schedules by ID.
type listed map[string]plan.Listed

// ListSchedules implements PlanSchedules.
func (l listed) ListSchedules(context.Context, string) (map[string]plan.Listed, error) { return l, nil }

func TestAPlanWhoseScheduleDiffersIsSignalled(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	next := metav1.NewTime(now.Add(time.Hour))
	ready := []metav1.Condition{{Type: holdfastv1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	at := func(name string, status holdfastv1alpha1.BackupPlanStatus) *holdfastv1alpha1.BackupPlan {
		return &holdfastv1alpha1.BackupPlan{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("u-" + name)}, Status: status,
		}
	}
	plans := []*holdfastv1alpha1.BackupPlan{
		at("same", holdfastv1alpha1.BackupPlanStatus{Conditions: ready, NextRun: &next}),
		at("missing", holdfastv1alpha1.BackupPlanStatus{Conditions: ready, NextRun: &next}),
		at("edited", holdfastv1alpha1.BackupPlanStatus{Conditions: ready, NextRun: &next}),
		at("new", holdfastv1alpha1.BackupPlanStatus{}),
	}
	same := plan.Listed{Workflow: contract.KindPlanStart.Workflow, Next: next.Time}
	edited := same
	edited.Next = now.Add(time.Minute)
	signals := &signalled{}
	review := &Review{
		ClusterID: "west", Schedules: listed{"west/plan/shop/same/u-same": same, "west/plan/shop/edited/u-edited": edited},
		Plans: func(_ context.Context, do func(*holdfastv1alpha1.BackupPlan)) {
			for _, p := range plans {
				do(p)
			}
		},
		Workflows: signals, Log: zap.NewNop(),
	}
	require.NoError(t, review.pass(t.Context(), now))
	assert.Equal(t, []string{"edited"}, signals.names, "a new Schedule is listed late")
	signals.names = nil
	require.NoError(t, review.pass(t.Context(), now))
	assert.ElementsMatch(t, []string{"edited", "missing"}, signals.names)
}

// slow lists Schedules as slowly as Temporal may, and counts that.
type slow struct {
	takes time.Duration
	begun *int
}

// ListSchedules implements PlanSchedules.
func (s slow) ListSchedules(context.Context, string) (map[string]plan.Listed, error) {
	*s.begun++
	time.Sleep(s.takes)
	return nil, nil
}

func TestReviewsTakeATenthOfTheTime(t *testing.T) {
	for takes, want := range map[time.Duration]int{time.Second: 59, 6 * time.Second: 59, time.Minute: 6} {
		synctest.Test(t, func(t *testing.T) {
			begun := 0
			review := &Review{
				ClusterID: "west", Schedules: slow{takes, &begun}, Workflows: &signalled{}, Log: zap.NewNop(),
				Paused: func() error { return nil },
				Plans:  func(_ context.Context, do func(*holdfastv1alpha1.BackupPlan)) { do(&holdfastv1alpha1.BackupPlan{}) },
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Hour-time.Second)
			defer stop()
			review.Run(ctx)
			assert.Equal(t, want, begun, "in an hour, where one takes %s", takes)
		})
	}
}
