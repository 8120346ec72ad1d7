package contract_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"holdfast.dev/holdfast/workflows/contract"
)

// Wire names are part of recorded histories, of operators' queries and of alerts: a change of one is a change for them.
func TestWireNamesStayAsTheyAre(t *testing.T) {
	assert.Equal(t, []string{
		"NonAdminBackup", "NonAdminBackup", "changed", "state",
		"refresh-backup", "start-backup", "check-velero-stall", "admit-backup", "mark-backup-deleting", "request-velero-deletion",
		"withdraw-velero-backup", "delete-velero-objects", "release-backup",
		"HoldfastPaused", "PolicyUnusable", "KubernetesUnavailable", "KubernetesAccessDenied", "InvalidObject",
		"holdfast_resource_timeouts_total",
		"nab", "", "pending", "accepted",
	}, []string{
		contract.KindBackup.Workflow, contract.KindBackup.Kubernetes, contract.SignalChanged, contract.QueryState,
		contract.RefreshBackup.Name, contract.StartBackup.Name, contract.CheckVeleroStall.Name, contract.AdmitBackup.Name,
		contract.MarkBackupDeleting.Name, contract.RequestDeletion.Name, contract.WithdrawBackup.Name, contract.DeleteVeleroObjects.Name,
		contract.ReleaseBackup.Name,
		contract.ErrorPaused, contract.ErrorPolicyUnusable, contract.ErrorKubernetes, contract.ErrorAccessDenied,
		contract.ErrorInvalidObject,
		contract.MetricResourceTimeouts,
		contract.KindBackup.ID, string(contract.MarkNone), string(contract.MarkPending), string(contract.MarkAccepted),
	})
	assert.Equal(t, []string{
		"NonAdminRestore", "NonAdminRestore", "refresh-restore", "start-restore", "admit-restore", "check-velero-restore-stall",
		"delete-velero-restore", "release-restore", "nar", "holdfast_restore_phase_seconds",
	}, []string{
		contract.KindRestore.Workflow, contract.KindRestore.Kubernetes, contract.RefreshRestore.Name, contract.StartRestore.Name,
		contract.AdmitRestore.Name, contract.CheckRestoreStall.Name, contract.DeleteRestore.Name,
		contract.ReleaseRestore.Name, contract.KindRestore.ID, contract.MetricRestorePhase,
	})
	assert.Equal(t, []string{
		"NonAdminDownloadRequest", "NonAdminDownloadRequest", "refresh-download", "request-velero-download", "remove-download", "nadr",
	}, []string{
		contract.KindDownload.Workflow, contract.KindDownload.Kubernetes, contract.RefreshDownload.Name,
		contract.RequestDownload.Name, contract.RemoveDownload.Name, contract.KindDownload.ID,
	})
	assert.Equal(t, []string{
		"BackupSynchronization", "synchronize-backups", "GarbageCollection", "collect-orphans", "here/backup-sync", "here/garbage-collection",
	}, []string{
		contract.KindSynchronization.Workflow, contract.SynchronizeBackups.Name, contract.KindCollection.Workflow, contract.CollectOrphans.Name,
		contract.ScheduleID("here", contract.KindSynchronization), contract.ScheduleID("here", contract.KindCollection),
	})
	assert.Equal(t, []string{"ClusterHeartbeat", "inspect-worker", "here/heartbeat", "heartbeat", "heartbeat"}, []string{
		contract.KindHeartbeat.Workflow, contract.InspectWorker.Name, contract.HeartbeatID("here"), contract.SignalHeartbeat,
		contract.MemoHeartbeat,
	})
	assert.Equal(t, []string{"RolloutGate", "replay-open-workflows", "DoesNotReplay"}, []string{
		contract.KindGate.Workflow, contract.ReplayOpenWorkflows.Name, contract.ErrorDoesNotReplay,
	})
	assert.Equal(t, []string{
		"NonAdminBackupStorageLocation", "NonAdminBackupStorageLocation",
		"refresh-location", "admit-location", "sync-location", "withdraw-location", "delete-location", "release-location",
		"nabsl", "", "notRequired", "notRequested", "pending", "approved", "rejected",
	}, []string{
		contract.KindLocation.Workflow, contract.KindLocation.Kubernetes,
		contract.RefreshLocation.Name, contract.AdmitLocation.Name, contract.SyncLocation.Name,
		contract.WithdrawLocation.Name, contract.DeleteLocation.Name, contract.ReleaseLocation.Name,
		contract.KindLocation.ID, string(contract.ApprovalUnknown), string(contract.ApprovalNotRequired),
		string(contract.ApprovalNotRequested), string(contract.ApprovalPending), string(contract.ApprovalApproved), string(contract.ApprovalRejected),
	})
	assert.Equal(t, []string{
		"StorageLocationApproval", "NonAdminBackupStorageLocationApprovalRequest", "decide", "decide",
		"refresh-approval", "advance-approval", "decide-approval", "approve", "reject", "revoke",
		"DecisionInvalid", "NothingToDecide", "LookAgain", "DecisionsOff", "approval",
		"wait", "close", "revoke", "request", "reset", "approve", "reject", "reopen", "drop", "follow", "observe",
	}, []string{
		contract.KindApproval.Workflow, contract.KindApproval.Kubernetes, contract.UpdateDecide, contract.SignalDecide,
		contract.RefreshApproval.Name, contract.AdvanceApproval.Name, contract.DecideApproval.Name,
		string(contract.DecisionApprove), string(contract.DecisionReject), string(contract.DecisionRevoke),
		contract.ErrorDecisionInvalid, contract.ErrorNothingToDecide, contract.ErrorLookAgain, contract.ErrorDecisionsOff,
		contract.KindApproval.ID,
		string(contract.ApprovalWait), string(contract.ApprovalClose), string(contract.ApprovalRevoke), string(contract.ApprovalRequest),
		string(contract.ApprovalReset), string(contract.ApprovalApprove), string(contract.ApprovalReject),
		string(contract.ApprovalReopen), string(contract.ApprovalDrop), string(contract.ApprovalFollow), string(contract.ApprovalObserve),
	})
	assert.Equal(t, []string{
		"HoldfastCluster", "HoldfastKind", "HoldfastNamespace", "HoldfastName", "HoldfastPhase", "HoldfastVeleroPhase",
	}, contract.SearchAttributeNames())
}

func TestPayloadsKeepTheirFieldNames(t *testing.T) {
	ref := contract.ObjectRef{Namespace: "team", Name: "nightly", UID: "u"}
	shown := contract.ObjectInput{Cluster: "west", Ref: ref, ShownPhase: "Created", ShownVeleroPhase: "New"}
	tests := map[string]struct {
		value any
		want  string
	}{
		"a workflow's first input": {
			value: contract.ObjectInput{Cluster: "west", Ref: ref},
			want:  `{"cluster":"west","ref":{"namespace":"team","name":"nightly","uid":"u"}}`,
		},
		"a workflow's input after continue-as-new": {
			value: contract.BackupInput{ObjectInput: shown, Volumes: true},
			want: `{"cluster":"west","ref":{"namespace":"team","name":"nightly","uid":"u"},
				"shownPhase":"Created","shownVeleroPhase":"New","volumes":true}`,
		},
		"a heartbeat's first input": {value: contract.HeartbeatInput{Cluster: "west"}, want: `{"cluster":"west"}`},
		"a heartbeat's input after continue-as-new": {
			value: contract.HeartbeatInput{Cluster: "west", ClusterUID: "k"}, want: `{"cluster":"west","clusterUID":"k"}`,
		},
		"whose a heartbeat is": {
			value: contract.WatcherState{Version: "v1", ClusterUID: "k"},
			want:  `{"version":"v1","clusterUID":"k","unfinished":0,"objectivesMissed":0,"verificationsMissed":0,"stalled":0,"pendingApprovals":0}`,
		},
		"a step": {
			value: contract.BackupStep{Ref: ref, Attempt: 2},
			want:  `{"ref":{"namespace":"team","name":"nightly","uid":"u"},"attempt":2}`,
		},
		"a restore's input after continue-as-new": {
			value: contract.RestoreInput{ObjectInput: shown, Volumes: true},
			want: `{"cluster":"west","ref":{"namespace":"team","name":"nightly","uid":"u"},
				"shownPhase":"Created","shownVeleroPhase":"New","volumes":true}`,
		},
		"a restore's step": {
			value: contract.RestoreStep{Ref: ref, Volumes: true},
			want:  `{"ref":{"namespace":"team","name":"nightly","uid":"u"},"volumes":true}`,
		},
		"a restore that is not": {value: contract.RestoreView{}, want: `{"found":false,"velero":{}}`},
		"a restore": {
			value: contract.RestoreView{
				Found: true, Phase: "Created", BeingDeleted: true, NamespaceTerminating: true, Finalizer: true, Marked: true,
				SpecValidated: true, Accepted: true, EverCreated: true, AbsenceReported: true, FinalizationDue: true,
				Velero: contract.VeleroRestoreView{
					Exists: true, Name: "r", Phase: "New", Finished: true, Deleting: true, MirroredPhase: "New",
					ItemsRestored: 1, TotalItems: 2, Stalled: true, AtWork: true,
				},
			},
			want: `{"found":true,"phase":"Created","beingDeleted":true,"namespaceTerminating":true,"finalizer":true,"marked":true,
				"specJudged":true,"accepted":true,"everCreated":true,"absenceReported":true,"finalizationDue":true,
				"velero":{"exists":true,"name":"r","phase":"New","finished":true,"deleting":true,"atWork":true,"mirroredPhase":"New",
				"itemsRestored":1,"totalItems":2,"stalled":true}}`,
		},
		"a FoundationDB backup's input after continue-as-new": {
			value: contract.FDBBackupInput{ObjectInput: shown, Memory: contract.FDBMemory{Quiet: 2}},
			want: `{"cluster":"west","ref":{"namespace":"team","name":"nightly","uid":"u"},
				"shownPhase":"Created","shownVeleroPhase":"New","memory":{"quiet":2}}`,
		},
		"a FoundationDB restore's input after continue-as-new": {
			value: contract.FDBRestoreInput{ObjectInput: shown, Memory: contract.FDBRestoreMemory{Quiet: 2}},
			want: `{"cluster":"west","ref":{"namespace":"team","name":"nightly","uid":"u"},
				"shownPhase":"Created","shownVeleroPhase":"New","memory":{"quiet":2}}`,
		},
		"a first input has nothing else": {
			value: contract.FDBBackupInput{ObjectInput: contract.ObjectInput{Cluster: "west", Ref: ref}},
			want:  `{"cluster":"west","ref":{"namespace":"team","name":"nightly","uid":"u"}}`,
		},
		"a Schedule's input": {value: contract.ScheduledInput{Cluster: "west"}, want: `{"cluster":"west"}`},
		"a collection's":     {value: contract.CollectionInput{Cluster: "west"}, want: `{"cluster":"west"}`},
		"a download's step": {
			value: contract.ObjectStep{Ref: ref}, want: `{"ref":{"namespace":"team","name":"nightly","uid":"u"}}`,
		},
		"a download that is not": {value: contract.DownloadView{}, want: `{"found":false,"velero":{}}`},
		"a download": {
			value: contract.DownloadView{
				Found: true, Phase: "New", BeingDeleted: true, Expired: true, Validated: true, Refused: true, Answered: true,
				Velero: contract.VeleroDownloadView{Exists: true, Name: "r", Phase: "Processed", Current: true, Signed: true},
			},
			want: `{"found":true,"phase":"New","beingDeleted":true,"expired":true,"judged":true,"refused":true,"answered":true,
				"velero":{"exists":true,"name":"r","phase":"Processed","current":true,"signed":true}}`,
		},
		"a location's step": {
			value: contract.ObjectStep{Ref: ref}, want: `{"ref":{"namespace":"team","name":"nightly","uid":"u"}}`,
		},
		"a location that is not": {value: contract.LocationView{}, want: `{"found":false,"velero":{}}`},
		"a decision": {
			value: contract.DecisionRequest{Decision: "approve", Reason: "ticket 42", ResourceVersion: "7"},
			want:  `{"decision":"approve","reason":"ticket 42","resourceVersion":"7"}`,
		},
		"a decision's step": {
			value: contract.DecisionStep{Ref: ref, Request: contract.DecisionRequest{Decision: "revoke"}, SignalNumber: 2},
			want: `{"ref":{"namespace":"team","name":"nightly","uid":"u"},
				"request":{"decision":"revoke","reason":"","resourceVersion":""},"signalNumber":2}`,
		},
		"a decision's outcome": {
			value: contract.DecisionOutcome{
				Decided: contract.DecisionRecord{
					Decision: "approve", By: "alice", At: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC), Reason: "ticket 42", Generation: 3,
				}, State: contract.ApprovalApproved,
			},
			want: `{"decided":{"decision":"approve","by":"alice","at":"2026-08-01T12:00:00Z","reason":"ticket 42","generation":3},
				"state":"approved"}`,
		},
		"an approval that is not": {value: contract.ApprovalView{}, want: `{"found":false}`},
		"an approval's change": {
			value: contract.ApprovalView{Found: true, Changes: []contract.FieldChange{{Field: "provider", From: "aws", To: "gcp"}}},
			want:  `{"found":true,"changes":[{"field":"provider","from":"aws","to":"gcp"}]}`,
		},
		"a signal":            {value: contract.Changed{Reason: "deleted"}, want: `{"reason":"deleted"}`},
		"a signal of volumes": {value: contract.VeleroChanged{Volumes: true}, want: `{"volumes":true}`},
		"a signal of a turn": {
			value: contract.VeleroChanged{Changed: contract.Changed{Reason: "turn"}, Turn: contract.Turn{Number: 7, Given: 8}},
			want:  `{"reason":"turn","turn":{"number":7,"given":8}}`,
		},
		"a signal by a Schedule": {value: contract.PlanChanged{RunNow: true, Schedule: true}, want: `{"runNow":true,"schedule":true}`},
		"an object that is not":  {value: contract.BackupView{}, want: `{"found":false,"velero":{},"deleteRequest":{}}`},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			data, err := json.Marshal(test.value)
			require.NoError(t, err)
			assert.JSONEq(t, test.want, string(data))
		})
	}
}

func TestAWorkflowIsFoundByItsObjectFromItsFirstEvent(t *testing.T) {
	attributes := contract.KindBackup.Attributes("west", contract.ObjectRef{Namespace: "team", Name: "nightly", UID: "u"})
	got := map[string]any{}
	for key, value := range attributes.GetUntypedValues() {
		assert.Equal(t, enumspb.INDEXED_VALUE_TYPE_KEYWORD, key.GetValueType(), "registered as Keyword")
		got[key.GetName()] = value
	}
	assert.Equal(t, map[string]any{
		"HoldfastCluster": "west", "HoldfastKind": "NonAdminBackup", "HoldfastNamespace": "team", "HoldfastName": "nightly",
	}, got)
	for name := range got {
		assert.Contains(t, contract.SearchAttributeNames(), name, "a name that is not registered fails the start for ever")
	}
}
