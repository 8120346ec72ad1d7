package plan

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// Listed is what Temporal's list shows of the Schedule of a plan. There are no events of Schedules.
type Listed struct {
	Workflow string
	Paused   bool
	Note     string
	// Next is when it starts a run next; zero if it starts none.
	Next time.Time
}

// ListSchedules lists the Schedules of all plans of a cluster by ID, as visibility knows them.
func (t *Temporal) ListSchedules(ctx context.Context, cluster string) (map[string]Listed, error) {
	return t.list(ctx, fmt.Sprintf("%s = '%s' AND %s = '%s'", contract.AttributeCluster.GetName(), cluster,
		contract.AttributeKind.GetName(), contract.KindPlan.Kubernetes))
}

// List implements Schedules.
func (t *Temporal) List(ctx context.Context, cluster string, ref contract.ObjectRef) (Listed, bool, error) {
	all, err := t.list(ctx, fmt.Sprintf("%s = '%s' AND %s = '%s' AND %s = '%s' AND %s = '%s'",
		contract.AttributeCluster.GetName(), cluster, contract.AttributeKind.GetName(), contract.KindPlan.Kubernetes,
		contract.AttributeNamespace.GetName(), ref.Namespace, contract.AttributeName.GetName(), ref.Name))
	listed, found := all[contract.WorkflowID(cluster, contract.KindPlan, ref)]
	return listed, found, err
}

func (t *Temporal) list(ctx context.Context, query string) (map[string]Listed, error) {
	listed := map[string]Listed{}
	err := connect.EachSchedule(ctx, t.Client, query, func(entry *client.ScheduleListEntry) {
		one := Listed{Workflow: entry.WorkflowType.Name, Paused: entry.Paused, Note: entry.Note}
		if len(entry.NextActionTimes) > 0 {
			one.Next = entry.NextActionTimes[0]
		}
		listed[entry.ID] = one
	})
	return listed, err
}

// nearly is how close times may be: those of an entry may be older than what has happened since.
const nearly = 15 * time.Second

// Agrees reports whether a Schedule is as the status of its plan says: paused by the same, with the same next run. If not,
// somebody has changed one of them, and the plan's workflow must look.
func (l Listed) Agrees(p *holdfastv1alpha1.BackupPlan, now time.Time) bool {
	operator := pausedByOperator(&client.Schedule{State: &client.ScheduleState{Paused: l.Paused, Note: l.Note}})
	next := p.Status.NextRun
	switch {
	case l.Workflow != contract.KindPlanStart.Workflow, pausedBy(p.Spec.Paused, operator) != p.Status.Paused:
		return false
	case next == nil: // paused, or not ready
		return l.Paused
	case l.Paused:
		return false
	case next.Sub(now) < nearly:
		return true // about to begin: the entry has it, or the one after it
	}
	return l.Next.Before(now.Add(nearly)) || l.Next.Equal(next.Time)
}

// Scheduled reports whether a plan has a Schedule, as far as its status says. One that was never ready has none.
func Scheduled(p *holdfastv1alpha1.BackupPlan) bool {
	ready := meta.FindStatusCondition(p.Status.Conditions, holdfastv1alpha1.ConditionReady)
	return p.DeletionTimestamp.IsZero() && ready != nil && ready.Status == metav1.ConditionTrue
}
