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
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/operator/operatortest"
	"holdfast.dev/holdfast/workflows/contract"
)

// ledgerRestore returns a FoundationDBRestore that runs.
func ledgerRestore() *fdbv1alpha1.FoundationDBRestore {
	at := metav1.NewTime(time.Unix(1_780_000_000, 0))
	return &fdbv1alpha1.FoundationDBRestore{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ledger.Namespace, Name: ledger.Name, UID: "u-1", Generation: 1,
			CreationTimestamp: metav1.NewTime(time.Now().Add(-3 * time.Hour)),
		},
		Spec: fdbv1alpha1.FoundationDBRestoreSpec{
			BackupName: "nightly", DestinationClusterName: "main", SourceClusterName: "old", Timestamp: &at,
			KeyRanges:   []fdbv1alpha1.KeyRange{{Start: "a", End: "b"}},
			Credentials: &fdbv1alpha1.CredentialsReference{SecretName: "bucket"},
		},
		Status: fdbv1alpha1.FoundationDBRestoreStatus{
			ObservedGeneration: 1, State: "Running",
			Conditions: []metav1.Condition{{
				Type: fdbv1alpha1.ConditionIncorrectRestoreState, Status: metav1.ConditionTrue, Reason: fdbv1alpha1.ReasonRestoring,
				Message: "the restore is running",
			}},
			Plan:     &fdbv1alpha1.RestorePlan{Tag: "ledger-u1", URL: ledgerURL, Version: 700, Timestamp: &at, Destination: "shop:Ab12"},
			Progress: &fdbv1alpha1.RestoreProgress{PercentDone: 25, BytesWritten: 4096},
		},
	}
}

func TestFoundationDBRestoresAreListed(t *testing.T) {
	done := ledgerRestore()
	done.Name, done.UID, done.Spec.RestoreState = "done", "u-2", fdbv1alpha1.RestoreStateStopped
	done.Status = fdbv1alpha1.FoundationDBRestoreStatus{State: "Completed", RestoredVersion: 800}
	fresh := ledgerRestore()
	deleted := metav1.Now()
	fresh.Name, fresh.UID, fresh.DeletionTimestamp, fresh.Status = "new", "u-3", &deleted, fdbv1alpha1.FoundationDBRestoreStatus{}
	list := &fdbv1alpha1.FoundationDBRestoreList{Items: []fdbv1alpha1.FoundationDBRestore{*ledgerRestore(), *done, *fresh}}
	rows := operator.RowsOf(list, contract.KindFDBRestore, "west", map[string]bool{"west/fdbr/shop/ledger/u-1": true}, fdbRestoreRow)
	assert.Equal(t, []string{
		"NAMESPACE NAME PHASE WANTED STATE PERCENT VERSION REASONS AGE WORKFLOW",
		"shop ledger Running Running Running 25 700 Restoring 3h running",
		"shop done Completed Stopped Completed 800 3h none",
		"shop new Deleting Running 3h none",
	}, operatortest.Lines(operatortest.Printed(t, "table", rows, func(out io.Writer) error { return operator.PrintRows(out, fdbRestoreColumns, rows) })))
}

func TestADescribedFoundationDBRestoreSaysHowFarItIsAndWhatForItWaits(t *testing.T) {
	const own, container = "west/fdbr/shop/ledger/u-1", "s3.example.com:443/fdb-backups/ledger"
	states := answers{
		own: contract.FDBRestoreState{
			Seen: contract.FDBRestoreInspection{
				LockUID: "9f22", AgentsPaused: true,
				Restore: &contract.FDBRestoreProgress{State: "running", Blocks: 8, BlocksDone: 2, LastError: "disk full"},
			},
			Memory: contract.FDBRestoreMemory{Owner: "shop:Ab12", Reading: container},
		},
		ledgerOwner: contract.FDBClusterState{
			Members: []contract.FDBMember{{Name: "bank/vault (Kubernetes cluster west)", Paused: true}},
			Running: &contract.FDBCommand{Operation: contract.FDBModify}, Requester: "bank/vault (Kubernetes cluster west)", Waiting: 1,
		},
		contract.FDBContainerID(container): contract.FDBContainerState{Holder: &contract.FDBContainerUser{Name: "west, shop/nightly"}},
	}
	object := ledgerRestore()
	reader := fake.NewClientBuilder().WithScheme(k8s.Scheme()).WithObjects(object).Build()
	described, err := Restores.Describe(t.Context(), nil, reader, states.describer(t), ledger)
	require.NoError(t, err)
	text := operatortest.Lines(operatortest.Printed(t, "table", described, described.Print))
	assert.Subset(t, text, []string{
		"FoundationDBCluster: main", "Wanted: Running", "Backup: nightly", "Source cluster: old", "To: 2026-05-28T20:26:40Z",
		"Key ranges: a b", "Credentials: Secret bucket, key credentials", "State: Running",
		"Planned: 2026-05-28T20:26:40Z (version 700)", "from: " + ledgerURL, "into: shop:Ab12", "tag: ledger-u1",
		"Progress: 25 %, 4096 bytes written", "In the database: Running, 2 of 8 blocks", "Last error: disk full", "Locked by: 9f22",
		"Agents: all agents of the FoundationDB cluster are paused", "Owner of the cluster: " + ledgerOwner,
		"runs: modify for bank/vault (Kubernetes cluster west)", "waiting: 1 more commands",
		"wants paused: bank/vault (Kubernetes cluster west)", "Guard of the data: fdb-container/" + container,
		"held by: west, shop/nightly", "Condition IncorrectRestoreState: True (Restoring) the restore is running",
	})

	object.Status.State, object.Status.RestoredVersion, object.Spec.Timestamp = "Failed", 700, nil
	object.Status.Finalization = []fdbv1alpha1.RestoreTask{{Name: "DatabaseUnlocked", Phase: "Failed", Errors: []string{"it is locked"}}}
	described = describeFDBRestore(object, operatortest.WorkflowFor(t, contract.KindFDBRestore))
	text = operatortest.Lines(operatortest.Printed(t, "table", described, described.Print))
	assert.Subset(t, text, []string{
		"State: Failed", "To: the latest that can be restored", "Restored version: 700", "Task DatabaseUnlocked: Failed", "it is locked",
	})
	described = describeFDBRestore(object, answers{}.describer(t))
	assert.Contains(t, operatortest.Lines(operatortest.Printed(t, "table", described, described.Print)), "Not known: state of "+own+": no worker answers")
}
