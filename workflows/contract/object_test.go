package contract_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows/contract"
)

func TestWorkflowIDNamesOneIncarnation(t *testing.T) {
	ref := contract.ObjectRef{Namespace: "team", Name: "nightly", UID: "0b5e"}
	id := contract.WorkflowID("west", contract.KindBackup, ref)
	require.Equal(t, "west/nab/team/nightly/0b5e", id, "recorded histories and running workflows have this form")

	others := map[string]string{
		"another cluster":   contract.WorkflowID("east", contract.KindBackup, ref),
		"another kind":      contract.WorkflowID("west", contract.KindRestore, ref),
		"another namespace": contract.WorkflowID("west", contract.KindBackup, contract.ObjectRef{Namespace: "t", Name: ref.Name, UID: ref.UID}),
		"another name":      contract.WorkflowID("west", contract.KindBackup, contract.ObjectRef{Namespace: "team", Name: "n", UID: ref.UID}),
		"recreated":         contract.WorkflowID("west", contract.KindBackup, contract.ObjectRef{Namespace: "team", Name: "nightly", UID: "77"}),
	}
	for title, other := range others {
		t.Run(title, func(t *testing.T) { assert.NotEqual(t, id, other) })
	}
}

func TestObjectsAreWrittenAsPeopleWriteThem(t *testing.T) {
	assert.Equal(t, "team/nightly", contract.ObjectRef{Namespace: "team", Name: "nightly", UID: "u"}.String())
	assert.Equal(t, "holdfast-west", contract.TaskQueue("west"))
}

// A worker of one half is never given a task of the other.
func TestEachHalfHasItsOwnTaskQueues(t *testing.T) {
	for _, kind := range []contract.Kind{
		contract.KindBackup, contract.KindRestore, contract.KindLocation, contract.KindDownload, contract.KindApproval,
	} {
		assert.Equal(t, "holdfast-west", kind.TaskQueue("west"), kind.Workflow)
	}
	for _, kind := range []contract.Kind{contract.KindFDBBackup, contract.KindFDBExpiry, contract.KindFDBRestore} {
		assert.Equal(t, "holdfast-fdb-west.workflows", kind.TaskQueue("west"), kind.Workflow)
	}
}
