package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/process"
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
	return rowsOf(listOf(age), contract.KindBackup, "west", running, backupRow)
}

func printed(t *testing.T, output string, value any, table func(io.Writer) error) string {
	t.Helper()
	flags := operatorFlags{output: output, clusterID: "west", oadpNamespace: "openshift-adp"}
	require.NoError(t, flags.validate())
	var out bytes.Buffer
	require.NoError(t, flags.print(&out, value, table))
	return out.String()
}

// lines are what a person sees, with one space between the columns.
func lines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		all = append(all, strings.Join(strings.Fields(line), " "))
	}
	return all
}

func TestTheListIsATable(t *testing.T) {
	running := map[string]bool{"west/nab/shop/nightly/u-1": true, "east/nab/shop/weekly/u-2": true}
	list := rows(25*24*time.Hour, running)
	text := printed(t, "table", list, func(out io.Writer) error { return printRows(out, backupColumns, list) })
	assert.Equal(t, []string{
		"NAMESPACE NAME PHASE VELERO-PHASE QUEUE AGE WORKFLOW",
		"shop nightly Created Queued 3 25d running",
		"shop weekly Created Completed 0 25d none",
		"bank new 25d none",
	}, lines(text))

	list = rows(25*24*time.Hour, nil)
	text = printed(t, "table", list, func(out io.Writer) error { return printRows(out, backupColumns, list) })
	assert.Equal(t, "shop nightly Created Queued 3 25d unknown", lines(text)[1], "Temporal does not answer")
}

func TestTheListIsReadByPrograms(t *testing.T) {
	list := rows(time.Hour, map[string]bool{"west/nab/shop/nightly/u-1": true})
	created := list[0].Created.Format(time.RFC3339Nano)
	want := `[
		{"namespace":"shop","name":"nightly","phase":"Created","veleroPhase":"Queued","queuePosition":3,"created":"` + created + `","workflow":"running"},
		{"namespace":"shop","name":"weekly","phase":"Created","veleroPhase":"Completed","queuePosition":0,"created":"` + created + `","workflow":"none"},
		{"namespace":"bank","name":"new","created":"` + created + `","workflow":"none"}]`
	list[1].Created, list[2].Created = list[0].Created, list[0].Created
	text := printed(t, "json", list, nil)
	assert.JSONEq(t, want, text)
	assert.True(t, strings.HasSuffix(text, "]\n"))

	fromYAML, err := yaml.YAMLToJSONStrict([]byte(printed(t, "yaml", list, nil)))
	require.NoError(t, err)
	assert.JSONEq(t, want, string(fromYAML))
	assert.Equal(t, "[]\n", printed(t, "json", make([]listedBackup, 0), nil), "none is a list too")
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
		Workflow: describedWorkflow{ID: "west/nab/shop/nightly/u-1", Status: "Running", Waiting: "**Deleting:** waits for Velero."},
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
	}, lines(printed(t, "table", d, d.print)))

	fresh := &describedBackup{Namespace: "shop", Name: "new", Workflow: describedWorkflow{ID: "id", Status: "unknown: no answer"}}
	assert.Equal(t, []string{"Namespace: shop", "Name: new", "Workflow: id", "Workflow status: unknown: no answer"},
		lines(printed(t, "table", fresh, fresh.print)), "what is not known is not shown")
}

func TestADescribedBackupIsReadByPrograms(t *testing.T) {
	d := described()
	text := printed(t, "json", d, nil)
	var read map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &read))
	assert.Equal(t, map[string]any{
		"id": "west/nab/shop/nightly/u-1", "status": "Running", "waiting": "**Deleting:** waits for Velero.",
	}, read["workflow"])
	assert.Equal(t, "PartiallyFailed",
		read["status"].(map[string]any)["veleroBackup"].(map[string]any)["status"].(map[string]any)["phase"])
	assert.Equal(t, "shop", read["namespace"])

	fromYAML, err := yaml.YAMLToJSONStrict([]byte(printed(t, "yaml", d, nil)))
	require.NoError(t, err)
	assert.JSONEq(t, text, string(fromYAML))
}

func TestARowNamesTheWorkflowOfThisIncarnation(t *testing.T) {
	assert.Equal(t, contract.ObjectRef{Namespace: "shop", Name: "nightly", UID: "u-1"}, refOf(&listOf(time.Hour).Items[0]))
	assert.Equal(t, "none", rows(time.Hour, map[string]bool{"west/nab/shop/nightly/u-0": true})[0].Workflow)
}

// kubeconfig names an API server that nobody asks.
func kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c",
		"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}],
		"contexts":[{"name":"c","context":{"cluster":"c"}}]}`), 0o600))
	return path
}

// Bad input ends in one line that says what is wanted, before anything is connected to.
func TestBadArgumentsAreRefused(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"an unknown output":           {[]string{"list", "-o", "xml"}, "--output: want table, json or yaml"},
		"an unknown output, describe": {[]string{"describe", "backup", "shop/nightly", "-o", ""}, "--output: want table, json or yaml"},
		"an unknown kind":             {[]string{"describe", "pod", "shop/nightly"}, `describe "pod": want KIND backup, restore, location, approval, fdbbackup or fdbrestore`},
		"no namespace":                {[]string{"describe", "backup", "nightly"}, `describe backup "nightly": want NAMESPACE/NAME`},
		"an empty namespace":          {[]string{"describe", "backup", "/nightly"}, "want NAMESPACE/NAME"},
		"an empty name":               {[]string{"describe", "backup", "shop/"}, "want NAMESPACE/NAME"},
		"a name missing":              {[]string{"describe", "backup"}, "accepts 2 arg(s), received 1"},
		"arguments too many":          {[]string{"list", "backups", "shop"}, "accepts at most 1 arg(s), received 2"},
		"an unknown list":             {[]string{"list", "shop"}, `list "shop": want backups, restores, locations, approvals, fdbbackups or fdbrestores`},
		"no name of a namespace":      {[]string{"list", "approvals", "--oadp-namespace=A/B"}, "--oadp-namespace: want the name of a namespace"},
		"a name that cannot be":       {[]string{"describe", "approval", "shop/a/b"}, `describe approval "shop/a/b": want NAMESPACE/NAME`},
		"an unknown command":          {[]string{"restore"}, `unknown command "restore" for "holdfast"`},
		"an unknown flag":             {[]string{"list", "--all"}, "unknown flag: --all"},
		"no progress interval":        {[]string{"watch", "--progress-interval=0s"}, "--progress-interval: want a duration above 0"},
		"a resync without pause":      {[]string{"watch", "--resync-interval=10ms"}, "--resync-interval: want a duration of at least 1s"},
		"a watcher of FoundationDB":   {[]string{"watch", "--serve=fdb"}, "--serve: want velero or all"},
		"a bad shared flag":           {[]string{"watch", "--cluster-id=A/B"}, "--cluster-id: want"},
		"a cluster ID with a quote":   {[]string{"list", "--cluster-id=west' OR '1"}, "--cluster-id: want " + process.WantClusterID},
		"a queue of all":              {[]string{"list", "--cluster-id=shared"}, "--cluster-id: want " + process.WantClusterID},
		"a queue of tools":            {[]string{"list", "--cluster-id=fdb"}, "--cluster-id: want " + process.WantClusterID},
		"a cluster ID with a slash":   {[]string{"describe", "backup", "shop/nightly", "--cluster-id=we/st"}, "--cluster-id: want 1 to 63 lower-case letters"},
		"no cluster ID":               {[]string{"list", "--cluster-id="}, "--cluster-id: want 1 to 63 lower-case letters"},
		"a cluster ID in two lines":   {[]string{"describe", "backup", "shop/nightly", "--cluster-id=we\nst"}, "--cluster-id: want 1 to 63 lower-case letters"},
		"payload keys that are not":   {[]string{"list", "--kubeconfig=" + kubeconfig(t), "--payload-keys-dir=/does/not/exist"}, "--payload-keys-dir: read keys: open /does/not/exist"},
		"a kubeconfig that is not":    {[]string{"list", "--kubeconfig=/does/not/exist"}, "--kubeconfig: "},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			root := command()
			root.SilenceErrors, root.SilenceUsage = true, true
			root.SetArgs(test.args)
			root.SetOut(io.Discard)
			root.SetErr(io.Discard)
			err := root.ExecuteContext(t.Context())
			require.ErrorContains(t, err, test.want)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}
