package fake

import (
	"context"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"holdfast.dev/holdfast/activities/defaultplans"
	"holdfast.dev/holdfast/activities/plan"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// PlanTime is when the plans of BackupPlan are created.
var PlanTime = time.Date(2026, 8, 1, 12, 0, 30, 0, time.UTC)

// BackupPlan returns a BackupPlan that is not in the world yet. It runs every minute, without jitter.
func BackupPlan(name string) *holdfastv1alpha1.BackupPlan {
	return &holdfastv1alpha1.BackupPlan{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: name, UID: types.UID("uid-" + name), Generation: 1,
			CreationTimestamp: metav1.NewTime(PlanTime),
		},
		Spec: holdfastv1alpha1.BackupPlanSpec{
			Schedule: "* * * * *", Jitter: "0s", StartingDeadline: "10m",
			Template: holdfastv1alpha1.BackupTemplate{
				Spec: holdfastv1alpha1.BackupTemplateSpec{BackupSpec: &velerov1.BackupSpec{}},
			},
		},
	}
}

// Schedules are Temporal's of plans, in memory.
type Schedules struct {
	// Wanted are those kept, by the plan's name.
	Wanted map[string]plan.Wanted
	// Kept is how often one was read.
	Kept int
	// Operator: an operator has paused them.
	Operator bool
	Signals  []contract.PlanSignal
	Err      error
}

var _ plan.Schedules = (*Schedules)(nil)

// Keep implements plan.Schedules.
func (s *Schedules) Keep(_ context.Context, _ string, ref contract.ObjectRef, wanted plan.Wanted) (plan.Kept, error) {
	if s.Err != nil {
		return plan.Kept{}, s.Err
	}
	if s.Wanted == nil {
		s.Wanted = map[string]plan.Wanted{}
	}
	s.Wanted[ref.Name] = wanted
	s.Kept++
	kept := plan.Kept{PausedByOperator: s.Operator}
	if len(wanted.Next) > 0 {
		kept.Last = wanted.Next[len(wanted.Next)-1]
	}
	return kept, nil
}

// List implements plan.Schedules.
func (s *Schedules) List(_ context.Context, _ string, ref contract.ObjectRef) (plan.Listed, bool, error) {
	_, found := s.Wanted[ref.Name]
	return plan.Listed{Paused: s.Operator, Note: "an operator"}, found, s.Err
}

// Drop implements plan.Schedules.
func (s *Schedules) Drop(_ context.Context, _ string, ref contract.ObjectRef) error {
	delete(s.Wanted, ref.Name)
	return s.Err
}

// Signal implements plan.Schedules.
func (s *Schedules) Signal(_ context.Context, in contract.PlanSignal) error {
	s.Signals = append(s.Signals, in)
	return s.Err
}

// Plans returns the activities of BackupPlans over this world. now is the time.
func (w *World) Plans(schedules *Schedules, now func() time.Time) *plan.Activities {
	return &plan.Activities{
		Cluster: w.cluster,
		Gatherer: &plan.Gatherer{
			Reader: w.Client, Policy: source{w}, ClusterID: Cluster, OADPNamespace: OADPNamespace,
		},
		Schedules: schedules, Now: now,
	}
}

// DefaultPlans returns the activities of default plans over this world.
func (w *World) DefaultPlans() *defaultplans.Activities {
	return &defaultplans.Activities{
		Cluster: w.cluster, Policy: source{w}, OADPNamespace: OADPNamespace,
	}
}

// ReadPlan returns the BackupPlan of that name, nil if there is none.
func (w *World) ReadPlan(name string) *holdfastv1alpha1.BackupPlan {
	return got(w, types.NamespacedName{Namespace: Namespace, Name: name}, &holdfastv1alpha1.BackupPlan{})
}
