package velero

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/operator/operatortest"
	"holdfast.dev/holdfast/workflows/contract"
)

func listOf(age time.Duration) *oadpv1alpha1.NonAdminBackupList {
	created := metav1.NewTime(time.Now().Add(-age))
	return &oadpv1alpha1.NonAdminBackupList{Items: []oadpv1alpha1.NonAdminBackup{
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly", UID: "u-1", CreationTimestamp: created},
			Status: oadpv1alpha1.NonAdminBackupStatus{
				Phase: "Created", QueueInfo: &oadpv1alpha1.QueueInfo{EstimatedQueuePosition: 3},
				VeleroBackup: &oadpv1alpha1.VeleroBackup{Status: &velerov1.BackupStatus{Phase: "Queued"}},
			},
		},
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "weekly", UID: "u-2", CreationTimestamp: created},
			Status: oadpv1alpha1.NonAdminBackupStatus{
				Phase: "Created", QueueInfo: &oadpv1alpha1.QueueInfo{},
				VeleroBackup: &oadpv1alpha1.VeleroBackup{Status: &velerov1.BackupStatus{Phase: "Completed"}},
			},
		},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "new", UID: "u-3", CreationTimestamp: created}},
	}}
}

func rows(age time.Duration, running map[string]bool) []listedBackup {
	return operator.RowsOf(listOf(age), contract.KindBackup, "west", running, backupRow)
}

func TestTheListIsATable(t *testing.T) {
	running := map[string]bool{"west/nab/shop/nightly/u-1": true, "east/nab/shop/weekly/u-2": true}
	list := rows(25*24*time.Hour, running)
	text := operatortest.Printed(t, "table", list, func(out io.Writer) error { return operator.PrintRows(out, backupColumns, list) })
	assert.Equal(t, []string{
		"NAMESPACE NAME PHASE VELERO-PHASE QUEUE AGE WORKFLOW",
		"shop nightly Created Queued 3 25d running",
		"shop weekly Created Completed 0 25d none",
		"bank new 25d none",
	}, operatortest.Lines(text))

	list = rows(25*24*time.Hour, nil)
	text = operatortest.Printed(t, "table", list, func(out io.Writer) error { return operator.PrintRows(out, backupColumns, list) })
	assert.Equal(t, "shop nightly Created Queued 3 25d unknown", operatortest.Lines(text)[1], "Temporal does not answer")
}

func TestTheListIsReadByPrograms(t *testing.T) {
	list := rows(time.Hour, map[string]bool{"west/nab/shop/nightly/u-1": true})
	created := list[0].Created.Format(time.RFC3339Nano)
	want := `[
		{"namespace":"shop","name":"nightly","phase":"Created","veleroPhase":"Queued","queuePosition":3,"created":"` + created + `","workflow":"running"},
		{"namespace":"shop","name":"weekly","phase":"Created","veleroPhase":"Completed","queuePosition":0,"created":"` + created + `","workflow":"none"},
		{"namespace":"bank","name":"new","created":"` + created + `","workflow":"none"}]`
	list[1].Created, list[2].Created = list[0].Created, list[0].Created
	text := operatortest.Printed(t, "json", list, nil)
	assert.JSONEq(t, want, text)
	assert.True(t, strings.HasSuffix(text, "]\n"))

	fromYAML, err := yaml.YAMLToJSONStrict([]byte(operatortest.Printed(t, "yaml", list, nil)))
	require.NoError(t, err)
	assert.JSONEq(t, want, string(fromYAML))
	assert.Equal(t, "[]\n", operatortest.Printed(t, "json", make([]listedBackup, 0), nil), "none is a list too")
}

func described() *describedBackup {
	return &describedBackup{
		Namespace: "shop", Name: "nightly",
		Status: oadpv1alpha1.NonAdminBackupStatus{
			Phase: "Deleting", QueueInfo: &oadpv1alpha1.QueueInfo{},
			VeleroBackup: &oadpv1alpha1.VeleroBackup{
				NACUUID: "b", Name: "b", Namespace: "openshift-adp",
				Status: &velerov1.BackupStatus{Phase: "PartiallyFailed", Errors: 1, Warnings: 2, FailureReason: "disk full"},
			},
			VeleroDeleteBackupRequest: &oadpv1alpha1.VeleroDeleteBackupRequest{
				Name: "b-1", Status: &velerov1.DeleteBackupRequestStatus{Phase: "Processed", Errors: []string{"read-only", "second"}},
			},
			Conditions: []metav1.Condition{{Type: "Deleting", Status: "True", Reason: "DeletionPending", Message: "backup accepted for deletion"}},
		},
		Workflow: operator.DescribedWorkflow{ID: "west/nab/shop/nightly/u-1", Status: "Running", Waiting: "**Deleting:** waits for Velero."},
	}
}

func TestADescribedBackupIsATable(t *testing.T) {
	d := described()
	assert.Equal(t, []string{
		"Namespace: shop", "Name: nightly", "Phase: Deleting", "Queue position: 0",
		"Velero Backup: openshift-adp/b", "Velero phase: PartiallyFailed", "Errors, warnings: 1, 2", "Failure: disk full",
		"Delete request: b-1 Processed read-only; second",
		"Workflow: west/nab/shop/nightly/u-1", "Workflow status: Running", "Waiting: **Deleting:** waits for Velero.",
		"Condition Deleting: True (DeletionPending) backup accepted for deletion",
	}, operatortest.Lines(operatortest.Printed(t, "table", d, d.Print)))

	fresh := &describedBackup{Namespace: "shop", Name: "new", Workflow: operator.DescribedWorkflow{ID: "id", Status: "unknown: no answer"}}
	assert.Equal(t, []string{"Namespace: shop", "Name: new", "Workflow: id", "Workflow status: unknown: no answer"},
		operatortest.Lines(operatortest.Printed(t, "table", fresh, fresh.Print)), "what is not known is not shown")
}

func TestADescribedBackupIsReadByPrograms(t *testing.T) {
	d := described()
	text := operatortest.Printed(t, "json", d, nil)
	var read map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &read))
	assert.Equal(t, map[string]any{
		"id": "west/nab/shop/nightly/u-1", "status": "Running", "waiting": "**Deleting:** waits for Velero.",
	}, read["workflow"])
	assert.Equal(t, "PartiallyFailed",
		read["status"].(map[string]any)["veleroBackup"].(map[string]any)["status"].(map[string]any)["phase"])
	assert.Equal(t, "shop", read["namespace"])

	fromYAML, err := yaml.YAMLToJSONStrict([]byte(operatortest.Printed(t, "yaml", d, nil)))
	require.NoError(t, err)
	assert.JSONEq(t, text, string(fromYAML))
}

func TestARowNamesTheWorkflowOfThisIncarnation(t *testing.T) {
	assert.Equal(t, contract.ObjectRef{Namespace: "shop", Name: "nightly", UID: "u-1"}, operator.RefOf(&listOf(time.Hour).Items[0]))
	assert.Equal(t, "none", rows(time.Hour, map[string]bool{"west/nab/shop/nightly/u-0": true})[0].Workflow)
}
