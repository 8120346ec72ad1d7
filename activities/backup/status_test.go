package backup_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/backup"
	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/velero"
)

var (
	acceptance = check.Verdict{Accepted: true, Reason: "BackupAccepted", Message: "backup accepted"}
	rejection  = check.Verdict{Reason: "InvalidBackupSpec", Message: "excludedNamespaces is restricted"}
)

// statusText is a status as a tenant reads it, without the times.
func statusText(t *testing.T, nab *oadpv1alpha1.NonAdminBackup) string {
	t.Helper()
	status := nab.Status.DeepCopy()
	for i := range status.Conditions {
		require.False(t, status.Conditions[i].LastTransitionTime.IsZero(), "a condition says when")
		status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	text, err := json.Marshal(status)
	require.NoError(t, err)
	return string(text)
}

func inPhase(phase oadpv1alpha1.NonAdminPhase) func(*oadpv1alpha1.NonAdminBackup) {
	return func(nab *oadpv1alpha1.NonAdminBackup) { nab.Status.Phase = phase }
}

// The texts are those of the OADP non-admin controller: scripts and people know them.
func TestAVerdictIsWritten(t *testing.T) {
	const (
		accepted = `{"type":"Accepted","status":"True","observedGeneration":1,"lastTransitionTime":null,
			"reason":"BackupAccepted","message":"backup accepted"}`
		refused = `{"type":"Accepted","status":"False","observedGeneration":1,"lastTransitionTime":null,
			"reason":"InvalidBackupSpec","message":"excludedNamespaces is restricted"}`
		reference = `{"nacuuid":"b","name":"b","namespace":"openshift-adp"}`
	)
	queuedCondition := func(nab *oadpv1alpha1.NonAdminBackup) {
		nab.Status.Conditions = []metav1.Condition{{Type: "Queued", Status: "True", LastTransitionTime: metav1.Time{Time: now}}}
	}
	tests := map[string]struct {
		before  []func(*oadpv1alpha1.NonAdminBackup)
		verdict check.Verdict
		want    string
	}{
		"a valid spec": {
			verdict: acceptance,
			want:    `{"phase":"New","conditions":[` + accepted + `],"veleroBackup":` + reference + `}`,
		},
		"an invalid spec": {
			verdict: rejection, want: `{"phase":"BackingOff","conditions":[` + refused + `]}`,
		},
		"a spec that turns out to be impossible": {
			before: []func(*oadpv1alpha1.NonAdminBackup){inPhase("New")}, verdict: rejection,
			want: `{"phase":"BackingOff","conditions":[` + refused + `]}`,
		},
		"a spec mended: BackingOff is left when the backup is made": {
			before: []func(*oadpv1alpha1.NonAdminBackup){inPhase("BackingOff")}, verdict: acceptance,
			want: `{"phase":"BackingOff","conditions":[` + accepted + `],"veleroBackup":` + reference + `}`,
		},
		"an invalid edit after creation": {
			before: []func(*oadpv1alpha1.NonAdminBackup){inPhase("Created"), statusNames("b")}, verdict: rejection,
			want: `{"phase":"Created","conditions":[` + refused + `],"veleroBackup":` + reference + `}`,
		},
		"an invalid edit during deletion": {
			before: []func(*oadpv1alpha1.NonAdminBackup){inPhase("Deleting")}, verdict: rejection,
			want: `{"phase":"Deleting","conditions":[` + refused + `]}`,
		},
		"an object that the other controller left as queued": {
			before: []func(*oadpv1alpha1.NonAdminBackup){inPhase("New"), queuedCondition}, verdict: rejection,
			want: `{"phase":"New","conditions":[{"type":"Queued","status":"True","lastTransitionTime":null,
				"reason":"","message":""},` + refused + `]}`,
		},
		"a reference to something else": {
			before: []func(*oadpv1alpha1.NonAdminBackup){statusNames(victims), func(nab *oadpv1alpha1.NonAdminBackup) {
				nab.Status.VeleroBackup.Status = &velerov1.BackupStatus{Phase: "Completed"}
			}}, verdict: acceptance,
			want: `{"phase":"New","conditions":[` + accepted + `],"veleroBackup":` + reference + `}`,
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			nab := fake.NAB(name)
			for _, change := range test.before {
				change(nab)
			}
			lifecycle.ApplyVerdict(nab, test.verdict, "b", fake.OADPNamespace)
			assert.JSONEq(t, test.want, statusText(t, nab))
		})
	}
}

func TestAVerdictSpeaksOfTheGenerationItWasMadeFor(t *testing.T) {
	nab := fake.NAB(name)
	lifecycle.ApplyVerdict(nab, acceptance, "b", fake.OADPNamespace)
	nab.Generation = 5
	lifecycle.ApplyVerdict(nab, acceptance, "b", fake.OADPNamespace)
	require.Len(t, nab.Status.Conditions, 1)
	assert.EqualValues(t, 5, nab.Status.Conditions[0].ObservedGeneration)
}

// The whole way of a backup, with its queue position.
func TestTheStatusOfABackupReadsAsTenantsKnowIt(t *testing.T) {
	const conditions = `"conditions":[
		{"type":"Accepted","status":"True","observedGeneration":1,"lastTransitionTime":null,"reason":"BackupAccepted","message":"backup accepted"},
		{"type":"Queued","status":"True","observedGeneration":1,"lastTransitionTime":null,"reason":"BackupScheduled","message":"Created Velero Backup object"}]`
	nab := fake.NAB(name)
	velero := made(ours, "team", name)
	velero.Spec = velerov1.BackupSpec{SnapshotVolumes: new(false)}
	objects := &backup.Objects{NAB: nab, BackupName: ours, Backup: velero}
	lifecycle.ApplyVerdict(nab, acceptance, ours, fake.OADPNamespace)

	lifecycle.ApplyCreated(nab)
	backup.ApplyMirror(nab, objects, fake.OADPNamespace)
	spec := `"nacuuid":"` + ours + `","name":"` + ours + `","namespace":"openshift-adp",
		"spec":{"snapshotVolumes":false,"csiSnapshotTimeout":"0s","hooks":{},"itemOperationTimeout":"0s","metadata":{},"ttl":"0s"}`
	assert.JSONEq(t, `{"phase":"Created",`+conditions+`,"veleroBackup":{`+spec+`,"status":{}}}`, statusText(t, nab))

	velero.Status.Phase = velerov1.BackupPhaseInProgress
	backup.ApplyMirror(nab, objects, fake.OADPNamespace)
	assert.JSONEq(t, `{"phase":"Created",`+conditions+`,"queueInfo":{"estimatedQueuePosition":1},
		"veleroBackup":{`+spec+`,"status":{"phase":"InProgress"}}}`, statusText(t, nab))

	velero.Status = velerov1.BackupStatus{
		Phase: velerov1.BackupPhasePartiallyFailed, Errors: 1, Warnings: 2, ValidationErrors: []string{"v"}, FailureReason: "disk",
		Progress: &velerov1.BackupProgress{TotalItems: 56, ItemsBackedUp: 55}, Version: 1, FormatVersion: "1.1.0",
		StartTimestamp: &metav1.Time{Time: now}, CompletionTimestamp: &metav1.Time{Time: now}, Expiration: &metav1.Time{Time: now},
	}
	backup.ApplyMirror(nab, objects, fake.OADPNamespace)
	assert.JSONEq(t, `{"phase":"Created",`+conditions+`,"queueInfo":{"estimatedQueuePosition":0},
		"veleroBackup":{`+spec+`,"status":{"phase":"PartiallyFailed","errors":1,"warnings":2,"validationErrors":["v"],
			"failureReason":"disk","progress":{"totalItems":56,"itemsBackedUp":55},"version":1,"formatVersion":"1.1.0",
			"startTimestamp":"2026-08-01T12:00:00Z","completionTimestamp":"2026-08-01T12:00:00Z",
			"expiration":"2026-08-01T12:00:00Z"}}}`, statusText(t, nab))

	velero.Status.ValidationErrors[0] = "changed later"
	assert.Equal(t, "v", nab.Status.VeleroBackup.Status.ValidationErrors[0], "the mirror is a copy")
}

func TestTheMirrorWritesTheQueuePositionOnlyWhereItIsCertain(t *testing.T) {
	const kept = 12
	tests := map[velerov1.BackupPhase]int{
		"": kept, "New": kept, "Queued": kept, "ReadyToStart": kept, "OfANewerVelero": kept,
		"InProgress":                                1,
		"WaitingForPluginOperations":                0,
		"WaitingForPluginOperationsPartiallyFailed": 0,
		"Finalizing":                                0,
		"FinalizingPartiallyFailed":                 0,
		"FailedValidation":                          0,
		"Completed":                                 0,
		"PartiallyFailed":                           0,
		"Failed":                                    0,
		"Deleting":                                  0,
	}
	for phase, want := range tests {
		t.Run("in phase "+string(phase), func(t *testing.T) {
			nab := fake.NAB(name)
			nab.Status.QueueInfo = &oadpv1alpha1.QueueInfo{EstimatedQueuePosition: kept}
			velero := made(ours, "team", name)
			velero.Status.Phase = phase
			lifecycle.ApplyBackup(nab, ours, velero, fake.OADPNamespace)
			assert.Equal(t, want, nab.Status.QueueInfo.EstimatedQueuePosition)
			assert.Equal(t, phase, nab.Status.VeleroBackup.Status.Phase)
		})
	}
}

func TestALostVeleroBackupIsReported(t *testing.T) {
	const gone = `{"type":"Accepted","status":"False","observedGeneration":1,"lastTransitionTime":null,
		"reason":"VeleroBackupNotFound","message":"NonAdminBackup is finalized and its associated Velero Backup has been ` +
		`removed. Please create a new NonAdminBackup to initiate a new backup"}`
	tests := map[string]struct {
		phase oadpv1alpha1.NonAdminPhase
		want  string
	}{
		"of a created backup":        {"Created", `{"phase":"Created","queueInfo":{"estimatedQueuePosition":0},"conditions":[` + gone + `]}`},
		"of one that is not created": {"New", `{"phase":"New"}`},
		"of one that was kept back":  {"BackingOff", `{"phase":"BackingOff"}`},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			nab := fake.NAB(name)
			nab.Status.Phase = test.phase
			lifecycle.ApplyBackup(nab, ours, nil, fake.OADPNamespace)
			assert.JSONEq(t, test.want, statusText(t, nab))
		})
	}

	t.Run("but its deletion needs no report", func(t *testing.T) {
		nab := fake.NAB(name)
		lifecycle.ApplyVerdict(nab, acceptance, ours, fake.OADPNamespace)
		lifecycle.ApplyCreated(nab)
		nab.Status.Phase = oadpv1alpha1.NonAdminPhaseDeleting
		lifecycle.ApplyBackup(nab, ours, nil, fake.OADPNamespace)
		assert.Zero(t, nab.Status.QueueInfo.EstimatedQueuePosition)
		assert.Equal(t, "backup accepted", nab.Status.Conditions[0].Message)
	})
}

func TestADeletionIsAnnounced(t *testing.T) {
	const (
		accepted = "backup accepted for deletion"
		pending  = "backup deletion requires setting spec.deleteBackup or spec.forceDeleteBackup to true or finalizer removal"
	)
	tests := map[string]struct {
		deleteBackup, force bool
		want                string
	}{
		"of the data too":           {deleteBackup: true, want: accepted},
		"of the Velero Backup only": {force: true, want: accepted},
		"both":                      {deleteBackup: true, force: true, want: accepted},
		"of which the tenant must say what becomes of the data": {want: pending},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			nab := fake.NAB(name)
			nab.Spec.DeleteBackup, nab.Spec.ForceDeleteBackup = test.deleteBackup, test.force
			backup.ApplyDeletion(nab)
			assert.JSONEq(t, `{"phase":"Deleting","conditions":[{"type":"Deleting","status":"True","observedGeneration":1,
				"lastTransitionTime":null,"reason":"DeletionPending","message":"`+test.want+`"}]}`, statusText(t, nab))
		})
	}
}

func TestTheRequestToDeleteIsMirrored(t *testing.T) {
	nab := fake.NAB(name)
	nab.Spec.DeleteBackup = true
	of := made(ours, "team", name)
	first, second := velero.NewDeleteRequest(nab, of, 1), velero.NewDeleteRequest(nab, of, 10)
	second.Status = velerov1.DeleteBackupRequestStatus{Phase: "Processed", Errors: []string{"location is read-only"}}
	foreign := velero.NewDeleteRequest(nab, of, 99)
	foreign.Annotations["openshift.io/oadp-nab-origin-namespace"] = "crew"
	objects := &backup.Objects{
		NAB: nab, BackupName: ours, Backup: of, DeleteRequests: []velerov1.DeleteBackupRequest{*second, *first, *foreign},
	}
	backup.ApplyMirror(nab, objects, fake.OADPNamespace)
	assert.Equal(t, &oadpv1alpha1.VeleroDeleteBackupRequest{
		NACUUID: ours, Name: ours + "-10", Namespace: fake.OADPNamespace,
		Status: &velerov1.DeleteBackupRequestStatus{Phase: "Processed", Errors: []string{"location is read-only"}},
	}, nab.Status.VeleroDeleteBackupRequest)
}

func TestWhatIsMadeForAnObjectSaysSo(t *testing.T) {
	nab := fake.NAB(name)
	made := velero.NewBackup(nab, ours, fake.OADPNamespace, velerov1.BackupSpec{StorageLocation: "x"})
	made.UID = "uid-of-backup"
	request := velero.NewDeleteRequest(nab, made, 3)
	labels := map[string]string{
		"openshift.io/oadp": "True", "app.kubernetes.io/managed-by": "oadp-nac-controller", "openshift.io/oadp-nab-origin-nacuuid": ours,
	}
	annotations := map[string]string{
		"openshift.io/oadp-nab-origin-namespace": "team", "openshift.io/oadp-nab-origin-name": name,
	}
	assert.Equal(t, metav1.ObjectMeta{
		Namespace: fake.OADPNamespace, Name: ours, UID: "uid-of-backup", Labels: labels, Annotations: annotations,
	}, made.ObjectMeta)
	assert.Equal(t, "x", made.Spec.StorageLocation)

	labels["velero.io/backup-name"], labels["velero.io/backup-uid"] = ours, "uid-of-backup"
	assert.Equal(t, metav1.ObjectMeta{
		Namespace: fake.OADPNamespace, Name: ours + "-3", Labels: labels, Annotations: annotations,
	}, request.ObjectMeta)
	assert.Equal(t, ours, request.Spec.BackupName)
	assert.True(t, owner.Backup.Names(made, "team", name))
	assert.True(t, owner.Backup.Names(request, "team", name))
}
