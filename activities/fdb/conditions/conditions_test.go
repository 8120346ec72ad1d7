package conditions_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/fdb/conditions"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

var well = conditions.Outcome{Status: metav1.ConditionTrue, Reason: fdbv1alpha1.ReasonReconciled, Message: "all is well"}

// held returns conditions given as type/reason; the message of each is its reason in other words.
func held(all ...string) []contract.FDBCondition {
	var list []contract.FDBCondition
	for _, each := range all {
		kind, reason, _ := strings.Cut(each, "/")
		list = append(list, contract.FDBCondition{Type: kind, Reason: reason, Message: "because of " + reason})
	}
	return list
}

func TestReadyRepeatsTheMostImportantCondition(t *testing.T) {
	for title, tt := range map[string]struct {
		held   []contract.FDBCondition
		status metav1.ConditionStatus
		reason string
	}{
		"none holds":               {nil, "True", "Reconciled"},
		"on the way":               {held("IncorrectBackupState/InitialSnapshot"), "False", "InitialSnapshot"},
		"a restore that runs":      {held("IncorrectRestoreState/Restoring"), "False", "Restoring"},
		"a restore that was ended": {held("IncorrectRestoreState/Aborted"), "False", "Aborted"},
		"the cluster is silent":    {held("IncorrectBackupState/ClusterUnreachable"), "Unknown", "ClusterUnreachable"},
		"its state is not known":   {held("IncorrectRestoreState/StateUnknown"), "Unknown", "StateUnknown"},
		"nobody has read it":       {held("IncorrectBackupState/NoWorker"), "Unknown", "NoWorker"},
		"of two types the one that blocks the repair of the other": {
			held("IncorrectDeployment/NotOurs", "IncorrectBackupState/DataMissing", "MisconfiguredBackup/SecretMissing"),
			"False", "SecretMissing",
		},
		"the Deployment before the state": {
			held("IncorrectBackupState/DataMissing", "IncorrectDeployment/Refused"), "False", "Refused",
		},
		"a state before a rollout": {
			held("DeploymentRollingOut/AgentsNotReady", "IncorrectBackupState/InitialSnapshot"), "False", "InitialSnapshot",
		},
		"a fault before what ends by itself": {
			held("IncorrectDeployment/Differs", "IncorrectBackupState/TagTaken", "MisconfiguredBackup/ParametersDiffer"),
			"False", "TagTaken",
		},
		"a fault before what is not known": {
			held("IncorrectBackupState/StateUnknown", "MisconfiguredBackup/ToolsMissing"), "False", "ToolsMissing",
		},
		"what is not known before what ends by itself": {
			held("DeploymentRollingOut/AgentsNotReady", "IncorrectBackupState/ClusterUnreachable"), "Unknown", "ClusterUnreachable",
		},
		"a reason of another release is a fault": {
			held("IncorrectBackupState/InitialSnapshot", "IncorrectDeployment/Haunted"), "False", "Haunted",
		},
	} {
		t.Run(title, func(t *testing.T) {
			ready := conditions.Ready(tt.held, well)
			assert.Equal(t, tt.status, ready.Status)
			assert.Equal(t, tt.reason, ready.Reason)
			if tt.held != nil {
				assert.Equal(t, "because of "+tt.reason, ready.Message)
			}
		})
	}
}

// Ready is True only if no condition holds.
func TestNothingThatHoldsIsReady(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../../k8s/api/fdb/v1alpha1/conditions.go", nil, 0)
	require.NoError(t, err)
	seen := 0
	ast.Inspect(file, func(node ast.Node) bool {
		value, is := node.(*ast.ValueSpec)
		if !is || !strings.HasPrefix(value.Names[0].Name, "Reason") {
			return true
		}
		reason := strings.Trim(value.Values[0].(*ast.BasicLit).Value, `"`)
		ready := conditions.Ready(held(fdbv1alpha1.ConditionIncorrectBackupState+"/"+reason), well)
		assert.NotEqual(t, metav1.ConditionTrue, ready.Status, reason)
		assert.Equal(t, reason, ready.Reason)
		seen++
		return true
	})
	require.Greater(t, seen, 30)
}

func TestConditionsSaySinceWhen(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC) }
	var list []metav1.Condition
	pass := func(minute int, all ...string) {
		list = conditions.List(list, conditions.Found{
			Held: held(all...), Otherwise: well, Generation: int64(minute), At: at(minute),
		})
	}
	since := func(kind string) int { return meta.FindStatusCondition(list, kind).LastTransitionTime.Minute() }

	pass(1, "IncorrectBackupState/NotRunning")
	require.Len(t, list, 2)
	pass(2, "IncorrectBackupState/InitialSnapshot")
	assert.Equal(t, 2, since("IncorrectBackupState"), "another reason")
	assert.Equal(t, 1, since("Ready"), "Ready has the same status")
	assert.Equal(t, "InitialSnapshot", meta.FindStatusCondition(list, "Ready").Reason)
	pass(3, "IncorrectBackupState/InitialSnapshot")
	assert.Equal(t, 2, since("IncorrectBackupState"), "the same reason")
	pass(4, "IncorrectBackupState/StateUnknown")
	assert.Equal(t, 4, since("Ready"))
	pass(5)
	require.Len(t, list, 1)
	assert.Equal(t, metav1.Condition{
		Type: "Ready", Status: "True", Reason: "Reconciled", Message: "all is well", ObservedGeneration: 5,
		LastTransitionTime: metav1.NewTime(at(5)),
	}, list[0])
	before := list
	pass(5)
	assert.Equal(t, before, list, "nothing new is nothing to write")
}

func TestWhatHasBegun(t *testing.T) {
	list := func(all ...string) []metav1.Condition {
		return conditions.List(nil, conditions.Found{Held: held(all...), Otherwise: well})
	}
	begun := func(before, now []metav1.Condition) (reasons []string) {
		for _, condition := range conditions.Begun(before, now) {
			reasons = append(reasons, condition.Reason)
		}
		return reasons
	}
	slow, wrong := "IncorrectBackupState/InitialSnapshot", "MisconfiguredBackup/SecretMissing"
	assert.Empty(t, begun(nil, list()), "that all is well is no condition that begins")
	assert.Equal(t, []string{"InitialSnapshot"}, begun(list(), list(slow)))
	assert.Equal(t, []string{"SecretMissing"}, begun(list(slow), list(slow, wrong)))
	assert.Equal(t, []string{"InitialSnapshot"}, begun(list("IncorrectBackupState/NotRunning"), list(slow)))
	assert.Empty(t, begun(list(slow, wrong), list(slow)))
}
