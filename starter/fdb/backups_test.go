package fdb

import (
	"encoding/json"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"holdfast.dev/holdfast/k8s"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/operator/operatortest"
	"holdfast.dev/holdfast/workflows/contract"
)

var ledger = types.NamespacedName{Namespace: "shop", Name: "ledger"}

const (
	ledgerURL   = "blobstore://key@s3.example.com/ledger-2026-08-01T12-00-00Z?bucket=fdb-backups"
	ledgerOwner = "fdb/shop:Ab12"
)

// ledgerBackup returns a FoundationDBBackup that is replaced by one in another place.
func ledgerBackup() *fdbv1alpha1.FoundationDBBackup {
	point := func(version int64, ago time.Duration) *fdbv1alpha1.RestorePoint {
		at := metav1.NewTime(time.Now().Add(-ago).Truncate(time.Second))
		return &fdbv1alpha1.RestorePoint{Version: version, Timestamp: &at}
	}
	return &fdbv1alpha1.FoundationDBBackup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ledger.Namespace, Name: ledger.Name, UID: "u-1", Generation: 3,
			CreationTimestamp: metav1.NewTime(time.Now().Add(-3 * time.Hour)),
		},
		Spec: fdbv1alpha1.FoundationDBBackupSpec{
			ClusterName: "main", BackupState: fdbv1alpha1.BackupStateRunning, Tag: "default", SnapshotPeriodSeconds: 604800,
			Credentials: fdbv1alpha1.CredentialsReference{SecretName: "bucket", Key: "credentials"},
			KeyRanges:   []fdbv1alpha1.KeyRange{{Start: "a", End: "b"}},
		},
		Status: fdbv1alpha1.FoundationDBBackupStatus{
			ObservedGeneration: 3,
			Conditions: []metav1.Condition{{
				Type: fdbv1alpha1.ConditionIncorrectBackupState, Status: metav1.ConditionTrue,
				Reason: fdbv1alpha1.ReasonInitialSnapshot, Message: "the first snapshot is being written",
			}},
			Backups: []fdbv1alpha1.BackupDetails{
				{
					Tag: "default", URL: "blobstore://key@s3.example.com/old?bucket=b", State: "Aborted",
					OldestData: point(10, 2*time.Hour), LatestRestorable: point(20, time.Hour),
				},
				{Tag: "default", URL: ledgerURL, State: "Running", KeyRanges: []string{"a b"}},
			},
		},
	}
}

func TestFoundationDBBackupsAreListed(t *testing.T) {
	replaced := ledgerBackup()
	settled := ledgerBackup()
	settled.Name, settled.UID, settled.Generation = "settled", "u-2", 3
	settled.Status.Conditions, settled.Status.Reconciled = nil, true
	settled.Spec.BackupState = fdbv1alpha1.BackupStateStopped
	edited := settled.DeepCopy()
	edited.Name, edited.UID, edited.Generation = "edited", "u-3", 4
	fresh := &fdbv1alpha1.FoundationDBBackup{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "new", UID: "u-4", CreationTimestamp: replaced.CreationTimestamp, Generation: 1,
	}}
	deleted := metav1.Now()
	fresh.DeletionTimestamp = &deleted
	list := &fdbv1alpha1.FoundationDBBackupList{Items: []fdbv1alpha1.FoundationDBBackup{*replaced, *settled, *edited, *fresh}}
	rows := operator.RowsOf(list, contract.KindFDBBackup, "west", map[string]bool{"west/fdbb/shop/ledger/u-1": true}, fdbBackupRow)
	oldest, latest := operator.Moment(rows[0].OldestData), operator.Moment(rows[0].LatestRestorable)
	require.NotNil(t, rows[0].LagSeconds)
	assert.InDelta(t, 3600, *rows[0].LagSeconds, 60, "what can be restored counts, wherever it lies")
	*rows[0].LagSeconds = 3605
	text := operatortest.Printed(t, "table", rows, func(out io.Writer) error { return operator.PrintRows(out, fdbBackupColumns, rows) })
	assert.Equal(t, []string{
		"NAMESPACE NAME PHASE WANTED RECONCILED REASONS OLDEST-DATA LATEST-RESTORABLE LAG AGE WORKFLOW",
		"shop ledger Running Running false InitialSnapshot " + oldest + " " + latest + " 1h0m5s 3h running",
		"shop settled Running Stopped true " + oldest + " " + latest + " 3h none",
		"shop edited Running Stopped false " + oldest + " " + latest + " 3h none",
		"shop new Deleting Running false 3h none",
	}, operatortest.Lines(text))

	var read []map[string]any
	require.NoError(t, json.Unmarshal([]byte(operatortest.Printed(t, "json", rows, nil)), &read))
	delete(read[0], "created")
	assert.Equal(t, map[string]any{
		"namespace": "shop", "name": "ledger", "phase": "Running", "wanted": "Running", "reconciled": false,
		"reasons": []any{"InitialSnapshot"}, "oldestData": oldest, "latestRestorable": latest, "lagSeconds": 3605., "workflow": "running",
	}, read[0])
}

// answers are the states of workflows by their IDs.
type answers map[string]any

func (a answers) describer(t *testing.T) operator.WorkflowDescriber {
	t.Helper()
	return func(kind contract.Kind, object client.Object) operator.DescribedWorkflow {
		described := operatortest.WorkflowFor(t, kind)(kind, object)
		described.QueryAny = func(id string, into any) error {
			state, known := a[id]
			if !known {
				return errors.New("no worker answers")
			}
			if err, is := state.(error); is {
				return err
			}
			data, err := json.Marshal(state)
			require.NoError(t, err)
			return json.Unmarshal(data, into)
		}
		described.Query = described.QueryAny
		return described
	}
}

func describedLedger(t *testing.T, object *fdbv1alpha1.FoundationDBBackup, workflow operator.WorkflowDescriber) operator.Description {
	t.Helper()
	reader := fake.NewClientBuilder().WithScheme(k8s.Scheme()).WithObjects(object).Build()
	described, err := Backups.Describe(t.Context(), nil, reader, workflow, ledger)
	require.NoError(t, err)
	return described
}

func TestADescribedFoundationDBBackupSaysWhatItWaitsFor(t *testing.T) {
	const own, other = "west/fdbb/shop/ledger/u-1", "west/fdbb/bank/vault/u-9"
	states := answers{
		own: contract.FDBBackupState{
			View: contract.FDBBackupView{
				Desired: contract.FDBDesired{URL: "blobstore://key@s3.example.com/ledger?bucket=fdb-backups"},
				Agents:  contract.FDBAgentsView{Exists: true, Ours: true, Current: true, Wanted: 3, Ready: 2},
			},
			Seen: contract.FDBInspection{AgentsPaused: true, Tags: []contract.FDBTag{{
				Tag: "default", State: "Running", Running: true, RangeBytes: 4096, Errors: []string{"store refused"},
			}}},
			Memory: contract.FDBMemory{
				Slot: contract.FDBSlotRequested, Owner: "shop:Ab12", Opposed: []string{"bank/vault (Kubernetes cluster west)"},
			},
		},
		"west/fdb-snapshot-throttle": contract.FDBThrottleState{
			Limit: 1, Holders: []contract.FDBHolder{{WorkflowID: other, Since: 1_780_000_000, ClosedSince: 1_780_000_060}},
			Waiting: []contract.FDBHolder{{WorkflowID: own, Since: 1_780_000_030}},
		},
		ledgerOwner: contract.FDBClusterState{
			Members: []contract.FDBMember{{Name: "shop/ledger (Kubernetes cluster west)"}, {Name: "bank/vault (Kubernetes cluster west)", Paused: true}},
			Running: &contract.FDBCommand{Operation: contract.FDBModify}, Requester: "bank/vault (Kubernetes cluster west)", Waiting: 2,
		},
	}
	object := ledgerBackup()
	described := describedLedger(t, object, states.describer(t))
	old := object.Status.Backups[0]
	assert.Equal(t, []string{
		"Namespace: shop", "Name: ledger", "FoundationDBCluster: main", "Wanted: Running", "Tag: default",
		"Destination: blobstore://key@s3.example.com/ledger?bucket=fdb-backups", "Key ranges: a b", "Snapshot period: 168h0m0s",
		"Credentials: Secret bucket, key credentials", "Reconciled: no: see the conditions",
		"On tag default: Running, not restorable yet, 4096 bytes of the first snapshot written", "store refused",
		"Agents: 2 of 3 ready; all agents of the FoundationDB cluster are paused", "With its deletion: its data are deleted",
		"Backup: blobstore://key@s3.example.com/old?bucket=b", "state: Aborted, tag default",
		"restorable from: " + pointText(old.OldestData), "restorable to: " + pointText(old.LatestRestorable),
		"Backup: " + ledgerURL, "state: Running, tag default", "key ranges: a b", "restorable: no",
		"First snapshot: waits for a slot", "Slots: 1 of 1 in use",
		"held by: " + other + " since 2026-05-28T20:26:40Z, its workflow does not run", "waiting: " + own + " since 2026-05-28T20:27:10Z",
		"Objections: bank/vault (Kubernetes cluster west)", "Owner of the cluster: " + ledgerOwner,
		"runs: modify for bank/vault (Kubernetes cluster west)", "waiting: 2 more commands",
		"wants running: shop/ledger (Kubernetes cluster west)", "wants paused: bank/vault (Kubernetes cluster west)",
		"Workflow: " + own, "Workflow status: Running", "Waiting: **Pending**", "", "- a", "+ b",
		"Condition IncorrectBackupState: True (InitialSnapshot) the first snapshot is being written",
	}, operatortest.Lines(operatortest.Printed(t, "table", described, described.Print)))

	var read map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(operatortest.Printed(t, "yaml", described, nil)), &read))
	assert.Equal(t, "requested", read["state"].(map[string]any)["memory"].(map[string]any)["slot"])
	assert.InDelta(t, 1, read["firstSnapshots"].(map[string]any)["limit"], 0)
	assert.InDelta(t, 2, read["owner"].(map[string]any)["waiting"], 0)
}

func TestADescribedFoundationDBBackupNeedsNoWorkflow(t *testing.T) {
	object := ledgerBackup()
	object.Generation = 4
	described := describedLedger(t, object, operatortest.WorkflowFor(t, contract.KindFDBBackup)) // its workflow does not run
	text := operatortest.Lines(operatortest.Printed(t, "table", described, described.Print))
	assert.Contains(t, text, "Reconciled: no: the status is of generation 3, the spec is of 4")
	assert.Contains(t, text, "restorable: no")
	assert.NotContains(t, operatortest.Printed(t, "json", described, nil), `"unknown"`)

	described = describedLedger(t, object, answers{}.describer(t))
	assert.Contains(t, operatortest.Lines(operatortest.Printed(t, "table", described, described.Print)),
		"Not known: state of west/fdbb/shop/ledger/u-1: no worker answers")

	described = describedLedger(t, object, answers{"west/fdbb/shop/ledger/u-1": serviceerror.NewNotFound("never started")}.describer(t))
	assert.NotContains(t, operatortest.Printed(t, "table", described, described.Print), "Not known", "nothing was due yet")
}

func TestADescribedFoundationDBBackupSaysHowFarItIs(t *testing.T) {
	tests := map[string]struct {
		object func(*fdbv1alpha1.FoundationDBBackup)
		state  contract.FDBBackupState
		want   []string
	}{
		"all is well": {
			object: func(object *fdbv1alpha1.FoundationDBBackup) {
				object.Status.Conditions, object.Status.Reconciled = nil, true
			},
			state: contract.FDBBackupState{Memory: contract.FDBMemory{Slot: contract.FDBSlotGranted, Stalled: true}},
			want: []string{
				"Reconciled: yes", "First snapshot: has a slot",
				"has made no progress for --fdb-initial-snapshot-timeout and has given its slot back",
			},
		},
		"being deleted": {
			object: func(object *fdbv1alpha1.FoundationDBBackup) {
				now := metav1.Now()
				object.DeletionTimestamp, object.Finalizers = &now, []string{fdbv1alpha1.FinalizerStop}
			},
			state: contract.FDBBackupState{Seen: contract.FDBInspection{
				Failure: &contract.FDBFailure{Class: contract.FDBClassTimeout, Message: "the cluster does not answer"},
			}},
			want: []string{
				"Reconciled: no: it is being deleted, and its backup stopped first", "FoundationDB: Timeout: the cluster does not answer",
			},
		},
		"somebody else's Deployment": {
			state: contract.FDBBackupState{View: contract.FDBBackupView{Agents: contract.FDBAgentsView{Exists: true, Wanted: 3}}},
			want:  []string{"Agents: 0 of 3 ready; the Deployment is not this backup's"},
		},
		"a tag that was never used, and a Deployment to be mended": {
			state: contract.FDBBackupState{
				View: contract.FDBBackupView{Agents: contract.FDBAgentsView{Exists: true, Ours: true}},
				Seen: contract.FDBInspection{Tags: []contract.FDBTag{{Tag: "default"}}},
			},
			want: []string{"On tag default: never used", "Agents: 0 of 0 ready; the Deployment differs from the spec"},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			object := ledgerBackup()
			if test.object != nil {
				test.object(object)
			}
			described := describedLedger(t, object, answers{"west/fdbb/shop/ledger/u-1": test.state}.describer(t))
			assert.Subset(t, operatortest.Lines(operatortest.Printed(t, "table", described, described.Print)), test.want)
		})
	}
}
