package fdb

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"holdfast.dev/holdfast/k8s"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/operator/operatortest"
	"holdfast.dev/holdfast/workflows/contract"
)

// ledgerDrill returns a FoundationDBDrill that has failed.
func ledgerDrill() *fdbv1alpha1.FoundationDBDrill {
	at := metav1.NewTime(time.Unix(1_780_000_000, 0))
	return &fdbv1alpha1.FoundationDBDrill{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ledger.Namespace, Name: ledger.Name, UID: "u-1", Generation: 1,
			CreationTimestamp: metav1.NewTime(time.Now().Add(-3 * time.Hour)),
		},
		Spec: fdbv1alpha1.FoundationDBDrillSpec{BackupName: "nightly", TargetClusterName: "spare"},
		Status: fdbv1alpha1.FoundationDBDrillStatus{
			Phase: fdbv1alpha1.FDBDrillEnded, URL: ledgerURL, Version: 700, Restore: "ledger-drill-u1", Started: &at, Restored: &at, Ended: &at,
			Conditions: []metav1.Condition{{
				Type: holdfastv1alpha1.ConditionVerified, Status: metav1.ConditionFalse, Reason: holdfastv1alpha1.ReasonChecksFailed,
				Message: "1 finding, see status.findings",
			}},
			Records: []fdbv1alpha1.DrillRangeRecord{
				{Name: "orders", Keys: 3, Bytes: 30, Digest: "5e88"}, {Name: "huge"},
			},
			Measured: &fdbv1alpha1.FoundationDBDrillMeasured{RestoreSeconds: 42, Keys: 4, Bytes: 40},
			Findings: []holdfastv1alpha1.DrillFinding{{
				Check: fdbv1alpha1.CheckRanges, Result: holdfastv1alpha1.DrillFailed, Message: "range orders differs",
			}},
			MoreFindings: 2,
		},
	}
}

func TestFoundationDBDrillsAreListed(t *testing.T) {
	fresh := ledgerDrill()
	fresh.Name, fresh.UID, fresh.Status = "new", "u-2", fdbv1alpha1.FoundationDBDrillStatus{}
	list := &fdbv1alpha1.FoundationDBDrillList{Items: []fdbv1alpha1.FoundationDBDrill{*ledgerDrill(), *fresh}}
	rows := operator.RowsOf(list, contract.KindFDBDrill, "west", map[string]bool{"west/fdbdrill/shop/new/u-2": true}, fdbDrillRow)
	assert.Equal(t, []string{
		"NAMESPACE NAME PHASE BACKUP TARGET VERIFIED REASON RESTORE ENDED AGE WORKFLOW",
		"shop ledger Ended nightly spare False ChecksFailed 42s 2026-05-28T20:26:40Z 3h none",
		"shop new nightly spare 3h running",
	}, operatortest.Lines(operatortest.Printed(t, "table", rows, func(out io.Writer) error { return operator.PrintRows(out, fdbDrillColumns, rows) })))
}

func TestADescribedFoundationDBDrillSaysWhatItHasFound(t *testing.T) {
	reader := fake.NewClientBuilder().WithScheme(k8s.Scheme()).WithObjects(ledgerDrill()).Build()
	described, err := Drills.Describe(t.Context(), nil, reader, answers{}.describer(t), ledger)
	require.NoError(t, err)
	text := operatortest.Lines(operatortest.Printed(t, "table", described, described.Print))
	assert.Subset(t, text, []string{
		"Namespace: shop", "Name: ledger", "Phase: Ended", "Backup: nightly", "URL: " + ledgerURL, "Version: 700", "Target: spare",
		"Restore: ledger-drill-u1", "Verified: False, ChecksFailed: 1 finding, see status.findings",
		"Range orders: 3 keys of 30 bytes, digest 5e88", "Range huge: not recorded", "Restored in: 42s", "Keys: 4", "Bytes: 40",
		"Finding 1: ranges (Failed): range orders differs", "More findings: 2", "Started: 2026-05-28T20:26:40Z",
		"Ended: 2026-05-28T20:26:40Z",
	}, text)
}
