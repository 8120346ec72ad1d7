package monitoring_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
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
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

// patience is generous: what is waited for takes seconds.
const patience = 2 * time.Minute

// pagePatience is how long one page may take.
const pagePatience = 20 * time.Second

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

// scrape reads the metrics page of one of the stack's processes.
func scrape(ctx context.Context, stack *env.Env, process string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, pagePatience)
	defer cancel()
	url := "http://" + stack.Component(process).Address(env.AddressMetrics) + "/metrics"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("metrics of the %s: %s", process, answer.Status)
	}
	return string(body), err
}

// awaitPage waits until a process's metrics have these lines, and match these expressions.
func awaitPage(t *testing.T, stack *env.Env, process string, lines []string, expressions ...string) {
	t.Helper()
	eventually.Succeeds(t, patience, func() error {
		page, err := scrape(t.Context(), stack, process)
		if err != nil {
			return err
		}
		for _, line := range lines {
			if !strings.Contains(page, "\n"+line+"\n") {
				return fmt.Errorf("the page of the %s has no line %s; alike: %q", process, line, alike(page, line))
			}
		}
		return matches(page, expressions...)
	})
}

// alike are the lines of a page about the metric of a line.
func alike(page, line string) (found []string) {
	name := line[:strings.IndexAny(line, "{ ")]
	for each := range strings.Lines(page) {
		if strings.HasPrefix(each, name) {
			found = append(found, each)
		}
	}
	return found
}

// matches returns an error that names the first expression that a text does not match.
func matches(text string, expressions ...string) error {
	for _, expression := range expressions {
		if !regexp.MustCompile(expression).MatchString(text) {
			return fmt.Errorf("nothing matches %s", expression)
		}
	}
	return nil
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
	eventually.Succeeds(t, patience, func() error {
		err := admin.List(t.Context(), &made, client.InNamespace(env.OADPNamespace))
		if err == nil && len(made.Items) != 1 {
			err = fmt.Errorf("%d Velero Backups", len(made.Items))
		}
		return err
	})
	awaitPage(t, stack, env.Watcher, []string{`holdfast_velero_backups{state="waiting"} 1`})
	page, err := scrape(t.Context(), stack, env.Watcher)
	require.NoError(t, err)
	assert.NotContains(t, page, "holdfast_velero_last_start_timestamp_seconds")

	velero := &made.Items[0]
	before := velero.DeepCopy()
	now := metav1.Now()
	velero.Spec.StorageLocation = "default" // as Velero fills in
	velero.Status = velerov1.BackupStatus{Phase: velerov1.BackupPhaseCompleted, StartTimestamp: &now, CompletionTimestamp: &now}
	require.NoError(t, admin.Patch(t.Context(), velero, client.MergeFrom(before)))
	awaitPage(t, stack, env.Worker, []string{
		`holdfast_backups_total{result="completed"} 1`, `holdfast_backups_total{result="failed"} 0`,
		"holdfast_backup_creation_seconds_count 1", "holdfast_backup_completion_seconds_count 1",
		"holdfast_backup_mirror_seconds_count 1", "holdfast_velero_stalled_total 0", "holdfast_policy_problem 0",
		`holdfast_dependency_up{check="temporal"} 1`, `holdfast_dependency_up{check="kubernetes"} 1`,
		`holdfast_dependency_up{check="worker"} 1`, `holdfast_dependency_up{check="non-admin-controller"} 1`,
	})
	awaitPage(t, stack, env.Watcher, []string{
		`holdfast_velero_backups{state="finished"} 1`, `holdfast_velero_backups{state="waiting"} 0`,
		`holdfast_nonadminbackups{phase="created"} 1`, "holdfast_stalled_backups 0",
		`holdfast_dependency_up{check="temporal"} 1`, `holdfast_dependency_up{check="kubernetes"} 1`,
		`holdfast_dependency_up{check="watch"} 1`, "holdfast_velero_last_validation_timestamp_seconds 1.78e+09",
	}, `\nholdfast_signal_seconds_count\{kind="NonAdminBackup"\} [1-9]`, `\nholdfast_velero_last_start_timestamp_seconds [1-9]`)

	seeRestore(t, stack, admin, key)
	seeFinalization(t, stack, admin, key)
	failWorkflowTask(t, stack)
	failRequests(t, stack)
	expected := map[string][]string{env.Worker: { // with the labels that the alert keeps
		`\ntemporal_workflow_task_execution_failed_total\{.*failure_reason="WorkflowError".*workflow_type="no-such-workflow"`,
	}}
	for name, process := range foreign {
		expected[process] = append(expected[process], `(?m)^`+name+`[{ ]`)
	}
	for process, expressions := range expected {
		awaitPage(t, stack, process, nil, expressions...)
	}
}

// seeRestore has the backup restored, which Velero fails at: with that it is over.
func seeRestore(t *testing.T, stack *env.Env, admin client.Client, backup client.ObjectKey) {
	t.Helper()
	require.NoError(t, admin.Create(t.Context(), &oadpv1alpha1.NonAdminRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: backup.Namespace, Name: "undo"},
		Spec:       oadpv1alpha1.NonAdminRestoreSpec{RestoreSpec: &velerov1.RestoreSpec{BackupName: backup.Name}},
	}))
	var made velerov1.RestoreList
	eventually.Succeeds(t, patience, func() error {
		err := admin.List(t.Context(), &made, client.InNamespace(env.OADPNamespace))
		if err == nil && len(made.Items) != 1 {
			err = fmt.Errorf("%d Velero Restores", len(made.Items))
		}
		return err
	})
	awaitPage(t, stack, env.Watcher, []string{`holdfast_nonadminrestores{phase="created"} 1`})
	velero := &made.Items[0]
	before := velero.DeepCopy()
	now := metav1.Now()
	velero.Status = velerov1.RestoreStatus{Phase: velerov1.RestorePhaseFailed, CompletionTimestamp: &now}
	require.NoError(t, admin.Patch(t.Context(), velero, client.MergeFrom(before)))
	awaitPage(t, stack, env.Worker, []string{
		`holdfast_restores_total{result="failed"} 1`, `holdfast_restores_total{result="completed"} 0`,
		"holdfast_restore_creation_seconds_count 1", "holdfast_restore_completion_seconds_count 1",
		"holdfast_restore_mirror_seconds_count 1",
		`holdfast_restore_finalization_tasks_total{result="partially_failed",task="volumes"} 0`,
	}, `\nholdfast_restore_phase_seconds_count\{.*phase="New".*\} 1\n`)
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
	awaitPage(t, stack, env.Worker, []string{`holdfast_dependency_up{check="temporal"} 0`},
		`\ntemporal_request_failure_total\{.*status_code="DEADLINE_EXCEEDED"`)
}
