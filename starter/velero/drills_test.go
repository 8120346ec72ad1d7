package velero

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/operator/operatortest"
	"holdfast.dev/holdfast/workflows/contract"
)

// weekly returns a drill of the spec with that verdict.
func weekly(name string, spec holdfastv1alpha1.RestoreDrillSpec, reason string) holdfastv1alpha1.RestoreDrill {
	ended := metav1.NewTime(time.Unix(1_780_000_000, 0))
	return holdfastv1alpha1.RestoreDrill{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: "u-1", CreationTimestamp: metav1.NewTime(time.Now().Add(-3 * time.Hour)),
		},
		Spec: spec,
		Status: holdfastv1alpha1.RestoreDrillStatus{
			Phase: holdfastv1alpha1.DrillEnded, Ended: &ended,
			Conditions: []metav1.Condition{{
				Type: holdfastv1alpha1.ConditionVerified, Status: metav1.ConditionUnknown, Reason: reason, Message: "because",
			}},
		},
	}
}

// measured returns a drill that has restored its backup in that many seconds.
func measured(seconds int64) holdfastv1alpha1.RestoreDrill {
	drill := weekly("measured", holdfastv1alpha1.RestoreDrillSpec{PlanName: "nightly"}, holdfastv1alpha1.ReasonVerified)
	drill.Status.Backup, drill.Status.Namespace = "nightly-1", "drill-0123"
	drill.Status.Restored, drill.Status.Ready = drill.Status.Ended, drill.Status.Ended
	drill.Status.Conditions[0].Status = metav1.ConditionTrue
	drill.Status.Measured = &holdfastv1alpha1.DrillMeasured{RestoreSeconds: seconds, Objects: 4}
	return drill
}

func TestDrillsAreListed(t *testing.T) {
	byPlan := holdfastv1alpha1.RestoreDrillSpec{PlanName: "nightly"}
	list := &holdfastv1alpha1.RestoreDrillList{Items: []holdfastv1alpha1.RestoreDrill{
		weekly("refused", holdfastv1alpha1.RestoreDrillSpec{BackupName: "gone"}, holdfastv1alpha1.ReasonNotVerified),
		weekly("without", byPlan, holdfastv1alpha1.ReasonNotVerified), measured(42), measured(0),
	}}
	rows := operator.RowsOf(list, contract.KindDrill, "west", map[string]bool{}, drillRow)
	text := operatortest.Printed(t, "table", rows, func(out io.Writer) error { return operator.PrintRows(out, drillColumns, rows) })
	assert.Equal(t, []string{
		"NAMESPACE NAME PHASE BACKUP VERIFIED REASON RECOVERY ENDED AGE WORKFLOW",
		"shop refused Ended gone Unknown NotVerified 2026-05-28T20:26:40Z 3h none",
		"shop without Ended last good of plan nightly Unknown NotVerified 2026-05-28T20:26:40Z 3h none",
		"shop measured Ended nightly-1 True Verified 42s 2026-05-28T20:26:40Z 3h none",
		"shop measured Ended nightly-1 True Verified 0s 2026-05-28T20:26:40Z 3h none",
	}, operatortest.Lines(text))
}

func TestADescribedDrillShowsWhatItHasMeasuredAndNothingElse(t *testing.T) {
	lines := func(drill holdfastv1alpha1.RestoreDrill) []string {
		described := describeDrill(&drill, func(contract.Kind, client.Object) operator.DescribedWorkflow {
			return operator.DescribedWorkflow{ID: "w", Status: "Completed"}
		})
		return operatortest.Lines(operatortest.Printed(t, "table", described, described.Print))
	}
	assert.Equal(t, []string{
		"Namespace: shop", "Name: measured", "Phase: Ended", "Backup: nightly-1", "Namespace of the drill: drill-0123",
		"Verified: True, Verified: because", "Restore took: 0s", "Ready after: 0s", "Objects: 4",
		"Restored: 2026-05-28T20:26:40Z", "Ready: 2026-05-28T20:26:40Z", "Ended: 2026-05-28T20:26:40Z",
		"Workflow: w", "Workflow status: Completed",
	}, lines(measured(0)))
	assert.Equal(t, []string{
		"Namespace: shop", "Name: refused", "Phase: Ended", "Backup: gone", "Verified: Unknown, NotVerified: because",
		"Ended: 2026-05-28T20:26:40Z", "Workflow: w", "Workflow status: Completed",
	}, lines(weekly("refused", holdfastv1alpha1.RestoreDrillSpec{BackupName: "gone"}, holdfastv1alpha1.ReasonNotVerified)))
}
