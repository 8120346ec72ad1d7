package gate

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"

	"holdfast.dev/holdfast/workflows/contract"
)

func ran(name, id, phase string) *workflowpb.WorkflowExecutionInfo {
	payload, _ := converter.GetDefaultDataConverter().ToPayload(phase)
	return &workflowpb.WorkflowExecutionInfo{
		Type: &commonpb.WorkflowType{Name: name}, Execution: &commonpb.WorkflowExecution{WorkflowId: id},
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{contract.AttributePhase.GetName(): payload}},
	}
}

func ids(chosen []contract.GateFinding) (ids []string) {
	for _, each := range chosen {
		ids = append(ids, each.ID)
	}
	return ids
}

func newOpen(each int) *open {
	return &open{each: each, counts: map[string]int{}, groups: map[string]*group{}}
}

// Listed from the newest to the oldest.
func TestTheOldestAndTheNewestOfEachTypeAndPhaseAreChosen(t *testing.T) {
	o := newOpen(2)
	for i := range 9 {
		o.add(ran("A", fmt.Sprintf("a%d", i), "Created"))
	}
	o.add(ran("A", "other-phase", "BackingOff"))
	o.add(ran("B", "b", ""))
	assert.ElementsMatch(t, []string{"a0", "a1", "a7", "a8", "other-phase", "b"}, ids(o.choose()))
	assert.Equal(t, "a8", ids(o.groups["A\x00Created\x00"].chosen())[0], "the oldest first")
	assert.Equal(t, []contract.GateType{{Workflow: "A", Open: 10, Replayed: 5}, {Workflow: "B", Open: 1, Replayed: 1}},
		o.types(map[string]int{"A": 5, "B": 1}))
}

// However many there are, each group has its share.
func TestTheBoundTakesFromTheLargest(t *testing.T) {
	o := newOpen(maxEach)
	for i := range 20 * maxEach {
		o.add(ran(fmt.Sprintf("Large%d", i%10), fmt.Sprint(i), ""))
	}
	o.add(ran("Small", "small", ""))
	chosen := o.choose()
	assert.Len(t, chosen, maxChosen)
	assert.Contains(t, ids(chosen), "small")
}

func TestPhasesWithoutEndAreOneGroup(t *testing.T) {
	o := newOpen(1)
	for i := range 3 * maxGroups {
		o.add(ran("A", fmt.Sprint(i), fmt.Sprint("phase", i)))
	}
	assert.Len(t, o.groups, maxGroups+1)
}

// What an error quotes of a history stays where it is.
func TestExplainKeepsNamesAlone(t *testing.T) {
	for text, want := range map[string]string{
		`[TMPRL1100] nondeterministic workflow: history event is ActivityTaskScheduled: (ActivityId:11, ActivityType:(Name:start-backup), Input:[secret]), replay command is StartTimer: (TimerId:5)`: "TMPRL1100, history event is ActivityTaskScheduled, replay command is StartTimer, ActivityType:(Name:start-backup)",
		`[TMPRL1100] code executed local activity refresh-backup, but history event found start-backup, markerData: {"data": "secret"}`:                                                               "TMPRL1100, code executed local activity refresh-backup, but history event found start-backup",
		`unable to read: payload encrypted with key "2026-08": there is no such key in /etc/secret`:                                                                                                   `payload encrypted with key "2026-08"`,
		`secret`: "the workflow's code fails with this history, see the failed task with: temporal workflow show",
	} {
		assert.Equal(t, want, explain(text))
	}
}
