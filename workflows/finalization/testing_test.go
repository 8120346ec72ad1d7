package finalization_test

import (
	"context"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/activity"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

// awayLocation is an object store that does not answer.
func awayLocation(context.Context, *velerov1.BackupStorageLocation) (*objectstore.Store, error) {
	return nil, &objectstore.Error{Action: "open", Reason: "the object store did not answer in time"}
}

func conditionOf(nar *oadpv1alpha1.NonAdminRestore, kind string) metav1.Condition {
	if found := meta.FindStatusCondition(nar.Status.Conditions, kind); found != nil {
		return *found
	}
	return metav1.Condition{}
}

// lossy registers activities whose first answer, of the task called lost, never arrives.
type lossy struct {
	workflowtest.Reregistration
	lost   string
	losses *int
}

// RegisterActivityWithOptions implements worker.ActivityRegistry.
func (l lossy) RegisterActivityWithOptions(function any, options activity.RegisterOptions) {
	switch options.Name {
	case contract.RunFinalizationTask.Name:
		whole := function.(func(context.Context, contract.FinalizationTaskStep) (contract.FinalizationOutcome, error))
		function = func(ctx context.Context, step contract.FinalizationTaskStep) (contract.FinalizationOutcome, error) {
			outcome, err := whole(ctx, step)
			return outcome, l.lose(step.Task, err)
		}
	case contract.PublishFinalization.Name:
		whole := function.(func(context.Context, contract.FinalizationPublication) (contract.FinalizationPublished, error))
		function = func(ctx context.Context, in contract.FinalizationPublication) (contract.FinalizationPublished, error) {
			published, err := whole(ctx, in)
			return published, l.lose("publish", err)
		}
	}
	l.Reregistration.RegisterActivityWithOptions(function, options)
}

func (l lossy) lose(task string, err error) error {
	if err == nil && task == l.lost && *l.losses == 0 {
		*l.losses++
		return fake.ErrAway
	}
	return err
}
