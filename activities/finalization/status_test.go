package finalization

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestTheStatusSaysWhereAFinalizationStands(t *testing.T) {
	began := time.Date(2026, 8, 1, 12, 0, 0, 5, time.UTC)
	tasks := []contract.RecordedTask{
		{Name: "volumes", Phase: "Completed", StartedAt: began, EndedAt: began.Add(time.Second), Warnings: []string{"w"}},
		{Name: "cleanup", Phase: "New"},
	}
	for title, test := range map[string]struct {
		record         contract.FinalizationRecord
		status         metav1.ConditionStatus
		reason, wanted string
	}{
		"under way": {
			contract.FinalizationRecord{Phase: "Finalizing", StartedAt: began, Tasks: tasks}, "False", "Finalizing", "being checked and completed",
		},
		"over": {
			contract.FinalizationRecord{Phase: "Completed", StartedAt: began, EndedAt: began, Warnings: 1, Tasks: tasks},
			"True", "FinalizationCompleted", "0 errors and 1 warnings after Velero's; first: w",
		},
		"over, with errors": {
			contract.FinalizationRecord{
				Phase: "PartiallyFailed", StartedAt: began, EndedAt: began, VeleroErrors: []string{"boom"}, Problem: "no store",
			},
			"True", "FinalizationPartiallyFailed",
			"Velero's first error: boom; the restore's results in the object store do not contain them: no store",
		},
	} {
		t.Run(title, func(t *testing.T) {
			nar := &oadpv1alpha1.NonAdminRestore{}
			nar.Generation = 3
			Apply(nar, test.record)
			condition := meta.FindStatusCondition(nar.Status.Conditions, "Finalized")
			require.NotNil(t, condition)
			assert.Equal(t, test.status, condition.Status)
			assert.Equal(t, test.reason, condition.Reason)
			assert.Contains(t, condition.Message, test.wanted)
			assert.EqualValues(t, 3, condition.ObservedGeneration)
			assert.EqualValues(t, test.record.Phase, nar.Status.Finalization.Phase)
			assert.Equal(t, began.Truncate(time.Second), nar.Status.Finalization.StartTimestamp.Time)
			for i, task := range nar.Status.Finalization.Tasks {
				assert.Equal(t, tasks[i].Name, task.Name)
				assert.EqualValues(t, tasks[i].Phase, task.Phase)
				assert.Equal(t, tasks[i].EndedAt.IsZero(), task.CompletionTimestamp == nil)
			}
		})
	}
}

func TestWhatHasEndedStaysAsItEnded(t *testing.T) {
	nar := &oadpv1alpha1.NonAdminRestore{}
	Apply(nar, contract.FinalizationRecord{Phase: "PartiallyFailed", Errors: 1})
	Apply(nar, contract.FinalizationRecord{Phase: "Finalizing"})
	assert.EqualValues(t, "PartiallyFailed", nar.Status.Finalization.Phase)
	assert.Equal(t, 1, nar.Status.Finalization.Errors)
}

func TestTheResultsHoldEveryLineOnce(t *testing.T) {
	s := newScene(t)
	file := "restores/" + restoreName + "/restore-" + restoreName + "-results.gz"
	s.put(file, objectstore.Results{
		objectstore.WarningsKey: {Cluster: []string{"velero's"}},
		objectstore.ErrorsKey: {
			Velero:     []string{"of the store"},
			Namespaces: map[string][]string{team: {"could not restore web", strings.Repeat("x", 1000)}, "crew": {"of another"}},
		},
	})
	tasks := []contract.PublishedLines{
		{Task: "volumes", Errors: contract.FinalizationLines{Cluster: []string{"pv"}}},
		{Task: "validation", Warnings: contract.FinalizationLines{Namespace: []string{"web"}, Velero: []string{"store"}}},
	}
	for range 3 {
		published, err := Publish(t.Context(), s.Context, tasks)
		require.NoError(t, err)
		require.Len(t, published.VeleroErrors, 3, "those of the namespace, without ours")
		assert.Equal(t, "could not restore web", published.VeleroErrors[0])
		assert.Len(t, published.VeleroErrors[1], maxLineBytes)
		assert.Equal(t, "Velero had errors that are not about objects of this namespace: 1; "+
			"an administrator finds them in the restore's results", published.VeleroErrors[2])
		assert.Empty(t, published.Problem)
	}
	results, err := s.store.RestoreResults(t.Context(), restoreName)
	require.NoError(t, err)
	assert.Equal(t, objectstore.Result{
		Cluster: []string{"velero's"}, Velero: []string{"holdfast validation: store"},
		Namespaces: map[string][]string{team: {"holdfast validation: web"}},
	}, results[objectstore.WarningsKey])
	assert.Equal(t, []string{"holdfast volumes: pv"}, results[objectstore.ErrorsKey].Cluster)
	assert.Equal(t, []string{"of another"}, results[objectstore.ErrorsKey].Namespaces["crew"])
}

func TestResultsThatAreNotThereAreMadeAndOthersAreLeftAlone(t *testing.T) {
	tasks := []contract.PublishedLines{{Task: "volumes", Errors: contract.FinalizationLines{Cluster: []string{"pv"}}}}
	s := newScene(t)
	published, err := Publish(t.Context(), s.Context, tasks)
	require.NoError(t, err)
	assert.Empty(t, published.Problem)
	results, err := s.store.RestoreResults(t.Context(), restoreName)
	require.NoError(t, err)
	assert.Equal(t, []string{"holdfast volumes: pv"}, results[objectstore.ErrorsKey].Cluster)

	s = newScene(t)
	s.put("restores/"+restoreName+"/restore-"+restoreName+"-results.gz", []string{"not Velero's"})
	published, err = Publish(t.Context(), s.Context, tasks)
	require.NoError(t, err)
	assert.Contains(t, published.Problem, "it is not the gzipped JSON that Velero writes")
}

func TestTasksHaveNamesOfTheirOwn(t *testing.T) {
	var names []string
	for _, task := range Tasks() {
		names = append(names, task.Name())
		again, err := TaskNamed(task.Name())
		require.NoError(t, err)
		assert.Equal(t, task, again)
		assert.NotEmpty(t, task.Summary())
		assert.Positive(t, task.Timeout())
	}
	assert.Equal(t, []string{"volumes", "cleanup", "validation"}, names, "known to tenants, in this order")
	_, err := TaskNamed("x")
	require.ErrorIs(t, err, errUnknownTask)
}
