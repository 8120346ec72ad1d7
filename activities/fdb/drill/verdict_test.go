package drill_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// restored is a world whose drill has made its restore, which has come to that state.
func restored(t *testing.T, state fdbv1alpha1.ObservedRestoreState, kind, reason string) *world {
	t.Helper()
	s := admitted()
	s.drill.Status.Records = []fdbv1alpha1.DrillRangeRecord{
		{Name: "orders", Start: "a", End: "b", Keys: 3, Bytes: 30, Digest: "111"}, {Name: "huge", Start: "c", End: "d"},
	}
	w := s.world(t)
	w.do(contract.StartFDBDrillRestore, contract.FDBDrillStep{})
	restore := w.restores()[0]
	restore.Status.State = state
	if reason != "" {
		meta.SetStatusCondition(&restore.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: "because of " + reason,
		})
	}
	require.NoError(t, w.Status().Update(t.Context(), &restore))
	return w
}

func TestVerdictsOfARestoreThatHasNotCompleted(t *testing.T) {
	const incorrect, misconfigured = fdbv1alpha1.ConditionIncorrectRestoreState, fdbv1alpha1.ConditionMisconfiguredRestore
	failed, unknown := holdfastv1alpha1.ReasonRestoreFailed, holdfastv1alpha1.ReasonNotVerified
	for _, test := range []struct {
		state        fdbv1alpha1.ObservedRestoreState
		kind, reason string
		want         string
	}{
		{fdbv1alpha1.RestorePending, misconfigured, fdbv1alpha1.ReasonNotRestorable, failed},
		{fdbv1alpha1.RestorePending, incorrect, fdbv1alpha1.ReasonDataMissing, failed},
		{fdbv1alpha1.RestoreRunning, incorrect, fdbv1alpha1.ReasonRestoring, failed},
		{fdbv1alpha1.RestoreRunning, incorrect, fdbv1alpha1.ReasonNoProgress, failed},
		{fdbv1alpha1.RestoreFailed, incorrect, fdbv1alpha1.ReasonFinalizationFailing, failed},
		{fdbv1alpha1.RestorePending, incorrect, fdbv1alpha1.ReasonNoAgents, unknown},
		{fdbv1alpha1.RestorePending, incorrect, fdbv1alpha1.ReasonDatabaseNotEmpty, unknown},
		{fdbv1alpha1.RestoreRunning, incorrect, fdbv1alpha1.ReasonClusterUnreachable, unknown},
		{fdbv1alpha1.RestoreAborted, incorrect, fdbv1alpha1.ReasonAborted, unknown},
		{"", "", "", unknown},
	} {
		w := restored(t, test.state, test.kind, test.reason)
		view := w.do(contract.ConcludeFDBDrill, contract.FDBDrillStep{})
		assert.True(t, view.Concluded)
		assert.Equal(t, test.want, w.verdict().Reason, "%+v", test)
		assert.Equal(t, test.want == failed, w.verdict().Status == metav1.ConditionFalse)
		assert.Contains(t, w.verdict().Message, test.reason)
		assert.Len(t, w.drill().Status.Findings, map[bool]int{true: 1}[test.want == failed])
	}
}

func TestVerdictsOfChecks(t *testing.T) {
	const (
		restoredOnly = "version 700 was restored in a while"
		equalOnce    = restoredOnly + "; source and target have the same digests in 1 range"
		inPart       = "status.findings says what was not verified"
	)
	for name, test := range map[string]struct {
		check    *contract.FDBDrillCheck
		reason   string
		status   metav1.ConditionStatus
		findings []string
		message  string
	}{
		"the same": {
			&contract.FDBDrillCheck{Keys: 9, Bytes: 90, Records: []contract.FDBRangeRecord{{Name: "orders", Digest: "111"}}},
			holdfastv1alpha1.ReasonVerified, metav1.ConditionTrue, nil, equalOnce,
		},
		"another checksum": {
			&contract.FDBDrillCheck{Keys: 9, Records: []contract.FDBRangeRecord{{Name: "orders", Digest: "222", Keys: 2, Bytes: 20}}},
			holdfastv1alpha1.ReasonChecksFailed, metav1.ConditionFalse,
			[]string{"range orders: 2 keys of 20 bytes came back, and the source held 3 keys of 30 bytes at version 700"},
			"1 finding, see status.findings",
		},
		"not counted": {
			&contract.FDBDrillCheck{Uncounted: "no time", Records: []contract.FDBRangeRecord{{Name: "orders", Digest: "111"}}},
			holdfastv1alpha1.ReasonVerifiedInPart, metav1.ConditionTrue,
			[]string{"the keys were not counted: no time"},
			equalOnce + "; " + inPart,
		},
		"a range not read": {
			&contract.FDBDrillCheck{Records: []contract.FDBRangeRecord{{Name: "orders", Unread: "no time"}}},
			holdfastv1alpha1.ReasonVerifiedInPart, metav1.ConditionTrue,
			[]string{"range orders: no time"},
			restoredOnly + "; " + inPart,
		},
		"a range forgotten": {
			&contract.FDBDrillCheck{Keys: 9}, holdfastv1alpha1.ReasonVerifiedInPart, metav1.ConditionTrue,
			[]string{"range orders: it was not read"},
			restoredOnly + "; " + inPart,
		},
		"nothing read": {
			&contract.FDBDrillCheck{Unmade: "no answer"}, holdfastv1alpha1.ReasonNotVerified, metav1.ConditionUnknown,
			[]string{"no answer"},
			"what came back could not be checked: no answer",
		},
		"no check": {
			nil, holdfastv1alpha1.ReasonNotVerified, metav1.ConditionUnknown,
			[]string{"the target was not read"},
			"what came back could not be checked: the target was not read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := restored(t, fdbv1alpha1.RestoreCompleted, "", "")
			view := w.do(contract.ObserveFDBDrill, contract.FDBDrillStep{})
			assert.True(t, view.Restore.Completed)
			assert.Equal(t, string(fdbv1alpha1.FDBDrillChecking), view.Phase)
			w.do(contract.ConcludeFDBDrill, contract.FDBDrillStep{Check: test.check})
			assert.Equal(t, test.reason, w.verdict().Reason)
			assert.Equal(t, test.status, w.verdict().Status)
			assert.Equal(t, test.message, regexp.MustCompile(`\d+ seconds?`).ReplaceAllString(w.verdict().Message, "a while"))
			status := w.drill().Status
			require.Len(t, status.Findings, len(test.findings))
			for i, want := range test.findings {
				assert.Contains(t, status.Findings[i].Message, want)
			}
			assert.NotNil(t, status.Restored)
			if test.check != nil && test.check.Keys > 0 {
				assert.Equal(t, test.check.Keys, status.Measured.Keys)
			}
		})
	}
}

func TestARestoreThatIsGoneProvesNothing(t *testing.T) {
	w := restored(t, fdbv1alpha1.RestoreRunning, "", "")
	made := w.restores()[0]
	require.NoError(t, w.Delete(t.Context(), &made))
	w.do(contract.ConcludeFDBDrill, contract.FDBDrillStep{})
	assert.Equal(t, holdfastv1alpha1.ReasonNotVerified, w.verdict().Reason)
	assert.Contains(t, w.verdict().Message, "was deleted before it was over")
}

func TestABackupThatDoesNotReachTheVersionProvesNothing(t *testing.T) {
	w := admitted().world(t)
	w.do(contract.ConcludeFDBDrill, contract.FDBDrillStep{})
	assert.Equal(t, holdfastv1alpha1.ReasonNotVerified, w.verdict().Reason)
	assert.Contains(t, w.verdict().Message, "version 700 could not be restored from the backup within 30m")
}

func TestATargetThatStaysIsSaid(t *testing.T) {
	w := restored(t, fdbv1alpha1.RestoreCompleted, "", "")
	w.do(contract.ConcludeFDBDrill, contract.FDBDrillStep{Check: &contract.FDBDrillCheck{Keys: 1}})
	w.do(contract.RemoveFDBDrillRestore, contract.FDBDrillStep{})
	require.NoError(t, w.Delete(t.Context(), newScene().target))
	view := w.do(contract.EndFDBDrill, contract.FDBDrillStep{})
	assert.True(t, view.Ended)
	assert.False(t, view.Cleared)
	last := w.drill().Status.Findings
	assert.Contains(t, last[len(last)-1].Message, `the target was not cleared: FoundationDBCluster "spare" is gone`)
	assert.Contains(t, w.recorded()[2], "TargetNotCleared")
}
