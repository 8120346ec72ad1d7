package monitoring_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	temporalclient "go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

// patience is generous: what is waited for takes seconds.
const patience = 2 * time.Minute

// startStack starts the control plane, Temporal and Holdfast; the test writes Velero's part itself.
func startStack(t *testing.T) (*env.Env, client.Client) {
	t.Helper()
	ctrllog.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	stack, err := env.Start(ctx, env.Options{Progress: t.Output(), Holdfast: true, Without: []string{env.S3, env.Velero}})
	require.NoError(t, err)
	t.Cleanup(stack.Stop)
	config, err := stack.RESTConfig(env.Admin)
	require.NoError(t, err)
	admin, err := client.New(config, client.Options{Scheme: k8s.Scheme()})
	require.NoError(t, err)
	require.NoError(t, admin.Create(t.Context(), &velerov1.BackupStorageLocation{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: "default"},
		Spec: velerov1.BackupStorageLocationSpec{
			Provider: "aws", Default: true,
			StorageType: velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{Bucket: "none"}},
		},
		Status: velerov1.BackupStorageLocationStatus{
			Phase: velerov1.BackupStorageLocationPhaseAvailable, LastValidationTime: &metav1.Time{Time: time.Unix(1_780_000_000, 0)},
		},
	}))
	asked := &oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: "asked"},
	}
	require.NoError(t, admin.Create(t.Context(), asked))
	asked.Status.Conditions = []metav1.Condition{{
		Type: string(oadpv1alpha1.NonAdminConditionClusterAdminApproved), Status: metav1.ConditionFalse,
		Reason: oadpv1alpha1.ReasonBSLSpecApprovalPending, LastTransitionTime: metav1.Now(),
	}}
	require.NoError(t, admin.Status().Update(t.Context(), asked))
	require.NoError(t, admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}))
	return stack, admin
}

// await polls until check passes.
func await(t *testing.T, check func(c *assert.CollectT)) {
	t.Helper()
	require.EventuallyWithT(t, check, patience, 200*time.Millisecond)
}

// scrape reads the metrics page of one of the stack's processes.
func scrape(t require.TestingT, stack *env.Env, process string) string {
	url := "http://" + stack.Component(process).Address(env.AddressMetrics) + "/metrics"
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode)
	return string(body)
}

// One backup, from its creation to the end, moves what an operator watches; whatever the dashboard and the alerts ask of
// others (client-go, controller-runtime, Temporal's SDK) is on the pages.
func TestAnOperatorSeesABackup(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real components")
	}
	stack, admin := startStack(t)
	key := client.ObjectKey{Namespace: "shop", Name: "nightly"}
	require.NoError(t, admin.Create(t.Context(), &oadpv1alpha1.NonAdminBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec:       oadpv1alpha1.NonAdminBackupSpec{BackupSpec: &velerov1.BackupSpec{}},
	}))
	var made velerov1.BackupList
	await(t, func(c *assert.CollectT) {
		require.NoError(c, admin.List(t.Context(), &made, client.InNamespace(env.OADPNamespace)))
		require.Len(c, made.Items, 1)
		assert.Contains(c, scrape(c, stack, env.Watcher), "\nholdfast_velero_backups{state=\"waiting\"} 1\n")
	})
	assert.NotContains(t, scrape(t, stack, env.Watcher), "holdfast_velero_last_start_timestamp_seconds")

	velero := &made.Items[0]
	before := velero.DeepCopy()
	now := metav1.Now()
	velero.Spec.StorageLocation = "default" // as Velero fills in
	velero.Status = velerov1.BackupStatus{Phase: velerov1.BackupPhaseCompleted, StartTimestamp: &now, CompletionTimestamp: &now}
	require.NoError(t, admin.Patch(t.Context(), velero, client.MergeFrom(before)))
	await(t, func(c *assert.CollectT) {
		worker := scrape(c, stack, env.Worker)
		for _, line := range []string{
			`holdfast_backups_total{result="completed"} 1`, `holdfast_backups_total{result="failed"} 0`,
			"holdfast_backup_creation_seconds_count 1", "holdfast_backup_completion_seconds_count 1",
			"holdfast_backup_mirror_seconds_count 1", "holdfast_velero_stalled_total 0", "holdfast_policy_problem 0",
			`holdfast_dependency_up{check="temporal"} 1`, `holdfast_dependency_up{check="kubernetes"} 1`,
			`holdfast_dependency_up{check="worker"} 1`, `holdfast_dependency_up{check="non-admin-controller"} 1`,
		} {
			assert.Contains(c, worker, "\n"+line+"\n")
		}
		watcher := scrape(c, stack, env.Watcher)
		for _, line := range []string{
			`holdfast_velero_backups{state="finished"} 1`, `holdfast_velero_backups{state="waiting"} 0`,
			`holdfast_nonadminbackups{phase="created"} 1`, "holdfast_stalled_backups 0",
			`holdfast_dependency_up{check="temporal"} 1`, `holdfast_dependency_up{check="kubernetes"} 1`,
			`holdfast_dependency_up{check="watch"} 1`, "holdfast_velero_last_validation_timestamp_seconds 1.78e+09",
		} {
			assert.Contains(c, watcher, "\n"+line+"\n")
		}
		assert.Regexp(c, `\nholdfast_signal_seconds_count\{kind="NonAdminBackup"\} [1-9]`, watcher)
		assert.Regexp(c, `\nholdfast_velero_last_start_timestamp_seconds [1-9]`, watcher)
	})

	seeRestore(t, stack, admin, key)
	seeFinalization(t, stack, admin, key)
	failWorkflowTask(t, stack)
	failRequests(t, stack)
	await(t, func(c *assert.CollectT) {
		pages := map[string]string{env.Worker: scrape(c, stack, env.Worker), env.Watcher: scrape(c, stack, env.Watcher)}
		for name, process := range foreign {
			assert.Regexp(c, `(?m)^`+name+`[{ ]`, pages[process], "on the page of the %s", process)
		}
		assert.Regexp(c, `\ntemporal_workflow_task_execution_failed_total\{.*failure_reason="WorkflowError".*workflow_type="no-such-workflow"`,
			pages[env.Worker], "the labels that the alert keeps")
	})
}

// seeRestore has the backup restored, which Velero fails at: with that it is over.
func seeRestore(t *testing.T, stack *env.Env, admin client.Client, backup client.ObjectKey) {
	t.Helper()
	require.NoError(t, admin.Create(t.Context(), &oadpv1alpha1.NonAdminRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: backup.Namespace, Name: "undo"},
		Spec:       oadpv1alpha1.NonAdminRestoreSpec{RestoreSpec: &velerov1.RestoreSpec{BackupName: backup.Name}},
	}))
	var made velerov1.RestoreList
	await(t, func(c *assert.CollectT) {
		require.NoError(c, admin.List(t.Context(), &made, client.InNamespace(env.OADPNamespace)))
		require.Len(c, made.Items, 1)
		assert.Contains(c, scrape(c, stack, env.Watcher), "\nholdfast_nonadminrestores{phase=\"created\"} 1\n")
	})
	velero := &made.Items[0]
	before := velero.DeepCopy()
	now := metav1.Now()
	velero.Status = velerov1.RestoreStatus{Phase: velerov1.RestorePhaseFailed, CompletionTimestamp: &now}
	require.NoError(t, admin.Patch(t.Context(), velero, client.MergeFrom(before)))
	await(t, func(c *assert.CollectT) {
		worker := scrape(c, stack, env.Worker)
		for _, line := range []string{
			`holdfast_restores_total{result="failed"} 1`, `holdfast_restores_total{result="completed"} 0`,
			"holdfast_restore_creation_seconds_count 1", "holdfast_restore_completion_seconds_count 1",
			"holdfast_restore_mirror_seconds_count 1",
			`holdfast_restore_finalization_tasks_total{result="partially_failed",task="volumes"} 0`,
		} {
			assert.Contains(c, worker, "\n"+line+"\n")
		}
		assert.Regexp(c, `\nholdfast_restore_phase_seconds_count\{.*phase="New".*\} 1\n`, worker)
	})
}

// failWorkflowTask starts a workflow that the worker does not know, as one that was rolled back would not.
func failWorkflowTask(t *testing.T, stack *env.Env) {
	t.Helper()
	temporal, err := temporalclient.Dial(temporalclient.Options{HostPort: stack.TemporalAddress(), Logger: env.QuietLogger()})
	require.NoError(t, err)
	defer temporal.Close()
	options := temporalclient.StartWorkflowOptions{TaskQueue: contract.TaskQueue(stack.ClusterID())}
	_, err = temporal.ExecuteWorkflow(t.Context(), options, "no-such-workflow")
	require.NoError(t, err)
}

// failRequests holds Temporal until the worker has had no answer: the SDK shows no counter before it has counted.
func failRequests(t *testing.T, stack *env.Env) {
	t.Helper()
	temporal := stack.Component(env.Temporal)
	require.NoError(t, temporal.Pause())
	defer func() { assert.NoError(t, temporal.Resume()) }()
	await(t, func(c *assert.CollectT) {
		worker := scrape(c, stack, env.Worker)
		assert.Contains(c, worker, "\n"+`holdfast_dependency_up{check="temporal"} 0`+"\n")
		assert.Regexp(c, `\ntemporal_request_failure_total\{.*status_code="DEADLINE_EXCEEDED"`, worker)
	})
}
