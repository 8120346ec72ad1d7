package fake

import (
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
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

// ReadPlan returns the BackupPlan of that name, nil if there is none.
func (w *World) ReadPlan(name string) *holdfastv1alpha1.BackupPlan {
	return got(w, types.NamespacedName{Namespace: Namespace, Name: name}, &holdfastv1alpha1.BackupPlan{})
}
