package fdb_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// atOnce is far less than any deadline of the drills here.
const atOnce = 45 * time.Second

func drillWorkflow(drill *fdbv1alpha1.FoundationDBDrill) string {
	return contract.WorkflowID(stack.ClusterID(), contract.KindFDBDrill, contract.ObjectRef{
		Namespace: drill.Namespace, Name: drill.Name, UID: string(drill.UID),
	})
}

// awaitReading waits until a drill has its databases read by that activity.
func (x *tenant) awaitReading(drill *fdbv1alpha1.FoundationDBDrill, activity string) {
	x.t.Helper()
	eventually.IsTrue(x.t, patience, fmt.Sprintf("%s is pending", activity), func() bool {
		run, err := temporal.DescribeWorkflowExecution(x.t.Context(), drillWorkflow(drill), "")
		if err != nil {
			return false // it has not begun
		}
		for _, pending := range run.GetPendingActivities() {
			if pending.GetActivityType().GetName() == activity {
				return true
			}
		}
		return false
	})
}

func gone(t *testing.T, object client.Object) func() bool {
	t.Helper()
	return func() bool {
		return apierrors.IsNotFound(admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	}
}

// requireClearedAlone: nothing read the target while the owner was asked to clear it.
func requireClearedAlone(t *testing.T, drill *fdbv1alpha1.FoundationDBDrill) {
	t.Helper()
	open, asked := map[int64]string{}, false
	events := temporal.GetWorkflowHistory(t.Context(), drillWorkflow(drill), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		if scheduled := event.GetActivityTaskScheduledEventAttributes(); scheduled != nil {
			open[event.GetEventId()] = scheduled.GetActivityType().GetName()
		}
		if open[event.GetEventId()] == contract.RequestFDBCommand.Name {
			asked = true
			assert.NotContains(t, open, contract.CheckFDBDrill.Name)
		}
		for _, ended := range []interface{ GetScheduledEventId() int64 }{
			event.GetActivityTaskCompletedEventAttributes(), event.GetActivityTaskFailedEventAttributes(),
			event.GetActivityTaskTimedOutEventAttributes(), event.GetActivityTaskCanceledEventAttributes(),
		} {
			delete(open, ended.GetScheduledEventId())
		}
	}
	assert.True(t, asked)
}

// A drill whose target cannot be read is released when it is deleted, or its namespace, and not at its deadline.
func TestADrillThatCannotReadItsTargetCanBeDeleted(t *testing.T) {
	sample.InLong(t, "TestADrillVerifiesABackup")
	t.Parallel()
	if own == nil {
		t.Skip("FoundationDB's own programs are neither in FDB_BIN_DIR nor in a folder shared/fdb beside the checkout")
	}
	x := newTenant(t)
	x.servers = &sync.Map{}
	x.cluster("ledger")
	spec := fdbv1alpha1.FoundationDBDrillSpec{BackupName: "ledger", TargetClusterName: "spare", Timeout: "1h"}
	keys := map[string]string{}
	for i := range 16 { // each is read by a program of its own: there is time to stop the database during the check
		begin := fmt.Sprintf("k/%02d", i)
		keys[begin] = "v"
		spec.Ranges = append(spec.Ranges, fdbv1alpha1.DrillKeyRange{Name: fmt.Sprint("r", i), Start: begin, End: begin + "/"})
	}
	x.console("ledger").write("k/", "k0", keys)
	backup := x.backUp("ledger")
	x.destination("spare")
	x.label("spare")
	x.await(backup, "restorable", func(o *fdbv1alpha1.FoundationDBBackup) bool {
		return reconciled(o) && o.Status.Backups[0].LatestRestorable != nil
	})
	checking := func(name string) *fdbv1alpha1.FoundationDBDrill {
		t.Helper()
		drill := x.drill(name, spec)
		present := &fdbv1alpha1.FoundationDBDrill{}
		eventually.IsTrue(t, manyPatience, fmt.Sprintf("%s is checked", name), func() bool {
			return x.client.Get(t.Context(), client.ObjectKeyFromObject(drill), present) == nil &&
				present.Status.Phase == fdbv1alpha1.FDBDrillChecking
		})
		x.unreachable("spare", true)
		x.awaitReading(drill, contract.CheckFDBDrill.Name)
		return drill
	}

	x.unreachable("spare", true)
	surveyed := x.drill("surveyed", spec)
	x.awaitReading(surveyed, contract.SurveyFDBDrill.Name)
	require.NoError(t, x.client.Delete(t.Context(), surveyed.DeepCopy()))
	eventually.IsTrue(t, atOnce, "the drill that is surveyed goes", gone(t, surveyed.DeepCopy()))
	x.unreachable("spare", false)

	checked := checking("checked")
	require.NoError(t, x.client.Delete(t.Context(), checked.DeepCopy()))
	eventually.IsTrue(t, atOnce, "cleaning up begins while the target cannot be read", func() bool {
		list := &fdbv1alpha1.FoundationDBRestoreList{}
		return x.client.List(t.Context(), list, client.InNamespace(x.namespace)) == nil && len(list.Items) == 0
	})
	x.unreachable("spare", false)
	eventually.IsTrue(t, patience, "the drill that is checked goes", gone(t, checked.DeepCopy()))
	assert.Empty(t, x.console("spare").keys(`\x00`, `\xff`), "the target is empty again")
	requireClearedAlone(t, checked)

	last := checking("last")
	x.kubectlAsAdmin("delete", "namespace", x.namespace, "--wait=false")
	eventually.IsTrue(t, patience, "the drill goes with its namespace", gone(t, last.DeepCopy()))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: x.namespace}}
	eventually.IsTrue(t, patience, "the namespace goes", gone(t, namespace))
}
