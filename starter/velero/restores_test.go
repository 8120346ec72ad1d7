package velero

import (
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/operator/operatortest"
	"holdfast.dev/holdfast/workflows/codec"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

var undo = types.NamespacedName{Namespace: "shop", Name: "undo"}

// finalizing returns a restore that Velero has ended and whose last task waits.
func finalizing() *oadpv1alpha1.NonAdminRestore {
	began := metav1.NewTime(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))
	ended := metav1.NewTime(began.Add(4 * time.Second))
	return &oadpv1alpha1.NonAdminRestore{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: undo.Namespace, Name: undo.Name, UID: "u-1",
			CreationTimestamp: metav1.NewTime(time.Now().Add(-3 * time.Hour)),
		},
		Spec: oadpv1alpha1.NonAdminRestoreSpec{RestoreSpec: &velerov1.RestoreSpec{BackupName: "nightly"}},
		Status: oadpv1alpha1.NonAdminRestoreStatus{
			Phase: "Created", QueueInfo: &oadpv1alpha1.QueueInfo{},
			VeleroRestore: &oadpv1alpha1.VeleroRestore{
				NACUUID: "r", Name: "r", Namespace: "openshift-adp",
				Status: &velerov1.RestoreStatus{
					Phase: "PartiallyFailed", Errors: 1, Warnings: 2,
					Progress: &velerov1.RestoreProgress{ItemsRestored: 6, TotalItems: 7},
				},
			},
			Finalization: &oadpv1alpha1.RestoreFinalization{
				Phase: "FinalizingPartiallyFailed", StartTimestamp: &began,
				VeleroErrors: []string{"could not restore Quota small"},
				Tasks: []oadpv1alpha1.FinalizationTask{
					{
						Name: "volumes", Phase: "PartiallyFailed", StartTimestamp: &began, CompletionTimestamp: &ended,
						Warnings: []string{"first", "second"}, Errors: []string{"refused"},
					},
					{Name: "validation", Phase: "InProgress", StartTimestamp: &ended},
				},
			},
			Conditions: []metav1.Condition{{Type: "Finalized", Status: "False", Reason: "Finalizing", Message: "under way"}},
		},
	}
}

func TestRestoresAreListed(t *testing.T) {
	over := finalizing()
	over.Name, over.UID = "over", "u-2"
	over.Status.Finalization.Phase = "PartiallyFailed"
	fresh := &oadpv1alpha1.NonAdminRestore{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "new", UID: "u-3", CreationTimestamp: over.CreationTimestamp,
	}}
	list := &oadpv1alpha1.NonAdminRestoreList{Items: []oadpv1alpha1.NonAdminRestore{*finalizing(), *over, *fresh}}
	rows := operator.RowsOf(list, contract.KindRestore, "west", map[string]bool{"west/nar/shop/undo/u-1": true}, restoreRow)
	text := operatortest.Printed(t, "table", rows, func(out io.Writer) error { return operator.PrintRows(out, restoreColumns, rows) })
	assert.Equal(t, []string{
		"NAMESPACE NAME PHASE VELERO-PHASE FINALIZATION QUEUE AGE WORKFLOW",
		"shop undo Created PartiallyFailed FinalizingPartiallyFailed 0 3h running",
		"shop over Created PartiallyFailed PartiallyFailed 0 3h none",
		"shop new 3h none",
	}, operatortest.Lines(text))

	var read []map[string]any
	require.NoError(t, json.Unmarshal([]byte(operatortest.Printed(t, "json", rows, nil)), &read))
	delete(read[0], "created")
	assert.Equal(t, map[string]any{
		"namespace": "shop", "name": "undo", "phase": "Created", "veleroPhase": "PartiallyFailed",
		"finalization": "FinalizingPartiallyFailed", "queuePosition": 0., "workflow": "running",
	}, read[0])
}

func describedUndo(t *testing.T, nar *oadpv1alpha1.NonAdminRestore, workflow operator.WorkflowDescriber) operator.Description {
	t.Helper()
	reader := fake.NewClientBuilder().WithScheme(k8s.Scheme()).WithObjects(nar).Build()
	described, err := Restores.Describe(t.Context(), nil, reader, workflow, undo)
	require.NoError(t, err)
	return described
}

func TestADescribedRestoreSaysWhatIsAwaited(t *testing.T) {
	workflows := func(kind contract.Kind, object client.Object) operator.DescribedWorkflow {
		described := operator.DescribedWorkflow{ID: contract.WorkflowID("west", kind, operator.RefOf(object)), Status: "Running", Waiting: "a child"}
		if kind == contract.KindFinalization {
			described.Waiting = "**Finalizing**"
			described.Retried = []string{"run-finalization-task, attempt 3: waits for Deployment web"}
		}
		return described
	}
	described := describedUndo(t, finalizing(), workflows)
	assert.Equal(t, []string{
		"Namespace: shop", "Name: undo", "Backup: nightly", "Phase: Created", "Queue position: 0",
		"Velero Restore: openshift-adp/r", "Velero phase: PartiallyFailed", "Items restored: 6 of 7", "Errors, warnings: 1, 2",
		"Finalization: FinalizingPartiallyFailed", "Velero's errors: could not restore Quota small",
		"Task volumes: PartiallyFailed after 4s", "errors: refused", "warnings: first", "second", "Task validation: InProgress",
		"Workflow: west/nar/shop/undo/u-1", "Workflow status: Running", "Waiting: a child",
		"Finalization workflow: west/finalization/shop/undo/u-1", "Finalization workflow status: Running",
		"Waiting: **Finalizing**", "Retried: run-finalization-task, attempt 3: waits for Deployment web",
		"Condition Finalized: False (Finalizing) under way",
	}, operatortest.Lines(operatortest.Printed(t, "table", described, described.Print)))
	assert.Contains(t, operatortest.Printed(t, "yaml", described, nil), "waits for Deployment web")
}

func TestARestoreThatIsOverHasNoFinalizationUnderWay(t *testing.T) {
	over := finalizing()
	over.Status.Finalization.Phase = "Completed"
	over.Status.Finalization.CompletionTimestamp = &metav1.Time{Time: over.Status.Finalization.StartTimestamp.Add(5 * time.Second)}
	described := describedUndo(t, over, operatortest.WorkflowFor(t, contract.KindRestore))
	text := operatortest.Lines(operatortest.Printed(t, "table", described, described.Print))
	assert.Contains(t, text, "Finalization: Completed after 5s")
	assert.NotContains(t, operatortest.Printed(t, "json", described, nil), "west/finalization")
}

func TestAStepThatIsTriedAgainSaysWhatItFailedOf(t *testing.T) {
	step := func(attempt int32, failure *failurepb.Failure) *workflowpb.PendingActivityInfo {
		return &workflowpb.PendingActivityInfo{
			ActivityType: &common.ActivityType{Name: "run-finalization-task"}, Attempt: attempt, LastFailure: failure,
		}
	}
	application := &failurepb.Failure{Message: "waits for Deployment web", FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
		ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: contract.ErrorNotYet},
	}}
	assert.Equal(t, []string{
		"run-finalization-task, attempt 3: waits for Deployment web", "run-finalization-task, attempt 2: no heartbeat (type: Heartbeat)",
	}, operator.Retried(&connect.Temporal{PayloadKeys: codec.None()}, []*workflowpb.PendingActivityInfo{
		step(1, nil), step(3, application),
		step(2, &failurepb.Failure{Message: "no heartbeat", FailureInfo: &failurepb.Failure_TimeoutFailureInfo{
			TimeoutFailureInfo: &failurepb.TimeoutFailureInfo{TimeoutType: 4},
		}}),
	}))
}
