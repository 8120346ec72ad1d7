package contract_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows/contract"
)

func TestWireNamesOfFinalizationsStayAsTheyAre(t *testing.T) {
	assert.Equal(t, []string{
		"RestoreFinalization", "finalization",
		"plan-finalization", "run-finalization-task", "publish-finalization", "record-finalization",
		"NotYet", "ObjectStoreUnavailable",
	}, []string{
		contract.KindFinalization.Workflow, contract.KindFinalization.ID,
		contract.PlanFinalization.Name, contract.RunFinalizationTask.Name, contract.PublishFinalization.Name,
		contract.RecordFinalization.Name,
		contract.ErrorNotYet, contract.ErrorObjectStore,
	})
}

func TestPayloadsOfFinalizationsKeepTheirFieldNames(t *testing.T) {
	ref := contract.ObjectRef{Namespace: "team", Name: "undo", UID: "u"}
	at := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	lines := contract.FinalizationLines{Velero: []string{"v"}, Cluster: []string{"c"}, Namespace: []string{"n"}}
	for title, test := range map[string]struct {
		value any
		want  string
	}{
		"input":  {contract.ObjectInput{Cluster: "west", Ref: ref}, `{"cluster":"west","ref":{"namespace":"team","name":"undo","uid":"u"}}`},
		"result": {contract.FinalizationResult{Phase: "Completed", Warnings: 1}, `{"phase":"Completed","warnings":1}`},
		"plan": {
			contract.FinalizationPlan{Due: true, Tasks: []contract.PlannedTask{{Name: "volumes", Timeout: time.Second}}},
			`{"due":true,"ended":{},"tasks":[{"name":"volumes","timeout":1000000000}]}`,
		},
		"step": {
			contract.FinalizationTaskStep{Ref: ref, Task: "volumes", Deadline: at},
			`{"ref":{"namespace":"team","name":"undo","uid":"u"},"task":"volumes","deadline":"2026-08-01T12:00:00Z"}`,
		},
		"outcome": {
			contract.FinalizationOutcome{Warnings: lines},
			`{"warnings":{"velero":["v"],"cluster":["c"],"namespace":["n"]},"errors":{}}`,
		},
		"record": {
			contract.FinalizationRecord{Ref: ref, Phase: "Finalizing", StartedAt: at, Tasks: []contract.RecordedTask{{Name: "a", Phase: "New"}}},
			`{"ref":{"namespace":"team","name":"undo","uid":"u"},"phase":"Finalizing","startedAt":"2026-08-01T12:00:00Z",
			  "tasks":[{"name":"a","phase":"New"}]}`,
		},
	} {
		t.Run(title, func(t *testing.T) {
			data, err := json.Marshal(test.value)
			require.NoError(t, err)
			assert.JSONEq(t, test.want, string(data))
		})
	}
	assert.Equal(t, []string{"n", "c", "v"}, lines.All())
	assert.Equal(t, 3, lines.Count())
}
