package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/api/serviceerror"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// These tests disturb the whole stack, so none is parallel.

// awaitDetails waits until the object's workflow says a text in its details: what it waits for. It says so after the status does.
func awaitDetails(t *testing.T, nab *oadpv1alpha1.NonAdminBackup, text string) {
	t.Helper()
	awaitDetailsOf(t, workflowID(nab), text)
}

// awaitDetailsOf waits until a workflow says all the texts in its details.
func awaitDetailsOf(t *testing.T, id string, texts ...string) {
	t.Helper()
	awaitSuccess(t, func(ctx context.Context) error {
		details, err := detailsOf(ctx, id)
		for _, text := range texts {
			if err == nil && !strings.Contains(details, text) {
				err = fmt.Errorf("workflow %s does not say %q, but %q", id, text, details)
			}
		}
		return err
	})
}

func TestPolicyIsEnforcedLive(t *testing.T) {
	x := newTenant(t, "erin")
	setNonAdminPolicy(t, "enforceBackupSpec:\n  ttl: 48h\n  snapshotVolumes: false\n")

	filled := x.completed("filled")
	made := veleroBackup(t, filled.Status.VeleroBackup.Name)
	assert.Equal(t, 48*time.Hour, made.Spec.TTL.Duration, "the enforced field is filled in")
	awaitEnd(t, filled)

	refused := x.backUp("refused", withSpec(func(spec *velerov1.BackupSpec) { spec.TTL.Duration = 24 * time.Hour }))
	accepted := x.awaitCondition(refused, oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.ReasonInvalidBackupSpec)
	assert.Equal(t, "the administrator has restricted spec.backupSpec.ttl field value to 48h0m0s", accepted.Message)

	// An unparsable policy changes nothing; a new one takes effect without a restart.
	setNonAdminPolicy(t, "enforceBackupSpec: [broken")
	stillRefused := x.backUp("still-refused", withSpec(func(spec *velerov1.BackupSpec) { spec.TTL.Duration = 24 * time.Hour }))
	x.awaitCondition(stillRefused, oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.ReasonInvalidBackupSpec)
	setNonAdminPolicy(t, "{}")
	for _, nab := range []*oadpv1alpha1.NonAdminBackup{refused, stillRefused} {
		x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted)
		awaitEnd(t, nab)
	}
}

// setNonAdminPolicy writes the administrator's policy, for the rest of the test; it is in force within seconds.
func setNonAdminPolicy(t *testing.T, content string) {
	t.Helper()
	setPolicy(t, map[string]string{"nonAdmin": content})
}

// setPolicy writes the keys of the administrator's policy, for the rest of the test.
func setPolicy(t *testing.T, keys map[string]string) {
	t.Helper()
	write := func(ctx context.Context, changed map[string]string) {
		keys := map[string]string{"nonAdmin": "{}", "holdfast": "{}"} // a policy that went would stay in force
		maps.Copy(keys, changed)
		rules := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: "holdfast-policy"}, Data: keys,
		}
		err := admin.Update(ctx, rules)
		if apierrors.IsNotFound(err) {
			err = admin.Create(ctx, rules)
		}
		require.NoError(t, err)
	}
	write(t.Context(), keys)
	t.Cleanup(func() { write(context.Background(), nil) })
}

// In test/outage, each process is killed before and after each step of the scenario "create".
func TestKilledWhileCreating(t *testing.T) {
	sample.InLong(t, "TestKilledWhileDeleting")
	for _, name := range []string{env.Worker, env.Watcher} {
		t.Run(name, func(t *testing.T) {
			x := newTenant(t, "erin")
			var made []*oadpv1alpha1.NonAdminBackup
			for _, each := range []string{"one", "two", "three"} {
				made = append(made, x.backUp(each))
			}
			killAndRestart(t, name, func() {
				awaitObject(t, admin, &velerov1.Backup{ObjectMeta: inOADP(backupID(made[0]))}, patience, "made",
					func(_ *velerov1.Backup, there bool) bool { return there })
			})
			for _, nab := range made {
				seen := x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted)
				awaitEnd(t, seen)
			}
			assert.Len(t, veleroBackupsOf(t, x.namespace), len(made), "exactly one Velero Backup each")
		})
	}
}

// In test/outage, each process is killed before and after each step of the scenario "delete with the data".
func TestKilledWhileDeleting(t *testing.T) {
	for _, name := range []string{env.Worker, env.Watcher} {
		t.Run(name, func(t *testing.T) {
			sample.Case(t, name == env.Watcher)
			x := newTenant(t, "erin")
			nab := x.completed("doomed")
			x.patch(nab, `{"spec":{"deleteBackup":true}}`)
			killAndRestart(t, name, func() {
				awaitObject(t, admin, nab, patience, "Deleting", func(now *oadpv1alpha1.NonAdminBackup, there bool) bool {
					return !there || now.Status.Phase == oadpv1alpha1.NonAdminPhaseDeleting
				})
			})
			x.awaitGone(nab)
			checkDeleted(t, nab.Status.VeleroBackup.Name, false)
			awaitEnd(t, nab)
		})
	}
}

// killAndRestart ends the process with SIGKILL at the given moment, and starts it again.
func killAndRestart(t *testing.T, name string, moment func()) {
	t.Helper()
	moment()
	require.NoError(t, stack.Component(name).Kill())
	require.NoError(t, stack.Component(name).Restart(t.Context()))
}

func TestRestartOverSettledObjectsStartsNothing(t *testing.T) {
	x := newTenant(t, "grace")
	nab := x.completed("settled")
	rejected := x.backUp("rejected", withSpec(func(spec *velerov1.BackupSpec) { spec.ExcludedNamespaces = []string{"other"} }))
	x.awaitCondition(rejected, oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.ReasonInvalidBackupSpec)
	awaitEnd(t, nab)
	awaitEnd(t, rejected)
	before := []string{latestRun(t, nab), latestRun(t, rejected)}

	require.NoError(t, stack.Component(env.Watcher).Stop())
	require.NoError(t, stack.Component(env.Watcher).Restart(t.Context()))
	other := x.completed("after") // so the watcher has looked at everything
	awaitEnd(t, other)
	after := []string{latestRun(t, nab), latestRun(t, rejected)}
	assert.Equal(t, before, after)
}

// latestRun asks the history service itself: visibility may lag.
func latestRun(t *testing.T, nab *oadpv1alpha1.NonAdminBackup) string {
	t.Helper()
	described, err := temporal.DescribeWorkflowExecution(t.Context(), workflowID(nab), "")
	require.NoError(t, err)
	return described.WorkflowExecutionInfo.Execution.RunId
}

// While the OADP non-admin controller runs, Holdfast keeps its hands off and says so. The fence is the only
// NonAdminDownloadRequest: what the watcher counts of that kind is its judgement of that one.
func TestKeepsOffWhileTheNonAdminControllerRuns(t *testing.T) {
	x := newTenant(t, "grace")
	dropDownloads(t)
	labels := map[string]string{"app": "nac"}
	rival := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: "non-admin-controller"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nac", Image: "nac"}}},
			},
		},
	}
	require.NoError(t, admin.Create(t.Context(), rival))
	t.Cleanup(func() { _ = admin.Delete(context.Background(), rival) })
	for _, name := range []string{env.Worker, env.Watcher} {
		address := "http://" + stack.Component(name).Address(env.AddressHealth) + "/readyz"
		awaitStatus(t, address, http.StatusServiceUnavailable)
	}
	before := map[string]string{}
	for _, kind := range []string{"nonadminbackup", "nonadmindownloadrequest"} {
		count, err := putOff(t.Context(), kind)
		require.NoError(t, err)
		before[kind] = count
	}
	nab := x.backUp("waits")
	fence := x.request(velerov1.DownloadTargetKindBackupLog, nab.Name)
	for kind, count := range before {
		awaitSuccess(t, func(ctx context.Context) error {
			now, err := putOff(ctx, kind)
			if err == nil && now == count {
				err = fmt.Errorf("the watcher has judged no %s since: still %s", kind, now)
			}
			return err
		})
	}
	waiting := []string{
		workflowID(nab), contract.WorkflowID(stack.ClusterID(), contract.KindDownload, contract.ObjectRef{
			Namespace: fence.Namespace, Name: fence.Name, UID: string(fence.UID),
		}),
	}
	for _, id := range waiting {
		_, err := temporal.DescribeWorkflowExecution(t.Context(), id, "")
		var none *serviceerror.NotFound
		require.ErrorAs(t, err, &none, "the watcher has told a workflow")
	}
	allowed := time.Now()
	require.NoError(t, admin.Delete(t.Context(), rival))
	x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted)
	awaitEnd(t, nab)
	for _, id := range waiting {
		var begun time.Time
		awaitSuccess(t, func(ctx context.Context) error {
			described, err := temporal.DescribeWorkflowExecution(ctx, id, "")
			if err == nil {
				begun = described.WorkflowExecutionInfo.StartTime.AsTime()
			}
			return err
		})
		assert.True(t, begun.After(allowed), "the watcher had told workflow %s", id)
	}
	requests, err := stack.Audit()
	require.NoError(t, err)
	for _, request := range requests {
		if request.Namespace == x.namespace && request.Wrote() {
			assert.False(t, request.At.Before(allowed), "Holdfast has acted: %v", request)
		}
	}
	x.drop(fence)
}

// putOff is how often the watcher has judged that an object of the kind must wait.
func putOff(ctx context.Context, kind string) (string, error) {
	page, err := readMetrics(ctx, env.Watcher)
	return seriesOf(page, `controller_runtime_reconcile_total{controller="`+kind+`",result="requeue_after"}`), err
}

// dropDownloads deletes every NonAdminDownloadRequest, and returns when neither they nor what Velero had for them is left.
func dropDownloads(t *testing.T) {
	t.Helper()
	awaitSuccess(t, func(ctx context.Context) error {
		var requests oadpv1alpha1.NonAdminDownloadRequestList
		if err := admin.List(ctx, &requests); err != nil {
			return err
		}
		for i := range requests.Items {
			if err := client.IgnoreNotFound(admin.Delete(ctx, &requests.Items[i])); err != nil {
				return err
			}
		}
		var veleros velerov1.DownloadRequestList
		if err := admin.List(ctx, &veleros, client.InNamespace(env.OADPNamespace),
			client.MatchingLabels{oadpv1alpha1.OadpLabel: oadpv1alpha1.OadpLabelValue}); err != nil {
			return err
		}
		if left, ofVelero := len(requests.Items), len(veleros.Items); left+ofVelero > 0 {
			return fmt.Errorf("%d NonAdminDownloadRequests are left, and %d DownloadRequests of Velero's", left, ofVelero)
		}
		return nil
	})
}

// Temporal comes back without its database: no workflow, no search attributes. The truth is in the objects. In test/outage, this
// meets steps of several kinds ("stopped without its database").
func TestLossOfTemporalsDatabase(t *testing.T) {
	sample.InLong(t, "TestTemporalAway")
	x := newTenant(t, "grace")
	require.NoError(t, stack.Component(env.Velero).Pause())
	t.Cleanup(func() { _ = stack.Component(env.Velero).Resume() })
	nab := x.await(x.backUp("survivor"), "Created", func(now *oadpv1alpha1.NonAdminBackup) bool {
		return now.Status.Phase == oadpv1alpha1.NonAdminPhaseCreated
	})
	require.NoError(t, env.RecordHistories(t.Context(), temporal)) // while they are there
	require.NoError(t, stack.Component(env.Temporal).Stop())
	files, err := filepath.Glob(filepath.Join(stack.Dir(), "data", "temporal.db*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		require.NoError(t, os.Remove(file))
	}
	require.NoError(t, stack.Component(env.Temporal).Restart(t.Context()))
	require.NoError(t, stack.Component(env.Velero).Resume())
	done := x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted)
	checkFinished(t, done, veleroBackup(t, done.Status.VeleroBackup.Name))
	awaitEnd(t, nab)
}

// seriesOf is the line of one series on a page of metrics, empty if there is none.
func seriesOf(page, series string) string {
	_, after, _ := strings.Cut("\n"+page, "\n"+series+" ")
	value, _, _ := strings.Cut(after, "\n")
	return value
}
