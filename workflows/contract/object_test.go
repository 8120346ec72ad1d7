package contract_test

import (
	"strings"
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

// Whatever Kubernetes accepts is served: Temporal's SQL stores hold 255 bytes of an ID (temporal#2122).
func TestAWorkflowIDFitsIntoEveryStore(t *testing.T) {
	longest := contract.ObjectRef{
		Namespace: strings.Repeat("n", 63), Name: strings.Repeat("a", 253), UID: "11111111-1111-1111-1111-111111111111",
	}
	ids := map[string]bool{}
	for i := range 253 {
		ref := longest
		ref.Name = ref.Name[:i+1]
		for _, uid := range []string{longest.UID, "22222222-2222-2222-2222-222222222222"} {
			ref.UID = uid
			id := contract.WorkflowID("west", contract.KindBackup, ref)
			require.LessOrEqual(t, len(id), contract.MaxIDBytes)
			require.False(t, ids[id], "of two objects")
			ids[id] = true
		}
	}
	id := contract.WorkflowID("west", contract.KindBackup, longest)
	require.Len(t, id, contract.MaxIDBytes)
	assert.Regexp(t, "^west/nab/n{63}/a+~[0-9a-f]{32}$", id, "people find it by its prefix")
	assert.Len(t, contract.WorkflowID("west", contract.KindPlan, longest), 232, "Temporal adds to the ID of a Schedule")
	assert.Equal(t, id, contract.WorkflowID("west", contract.KindBackup, longest))
	container := "store.example:9000/bucket/" + strings.Repeat("b", 512)
	assert.Len(t, contract.FDBContainerID(container), contract.MaxIDBytes)
	assert.NotEqual(t, contract.FDBContainerID(container), contract.FDBContainerID(container+"b"))
	assert.Len(t, contract.KindFDBContainer.SummaryOf(container), 350)
	name, _ := contract.KindFDBContainer.Attributes("", contract.ObjectRef{Name: container}).GetKeyword(contract.AttributeName)
	assert.Len(t, name, 255)
	name, _ = contract.KindBackup.Attributes("west", longest).GetKeyword(contract.AttributeName)
	assert.Equal(t, longest.Name, name, "what people search for stays whole")
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
