package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

func workflowID(nab *oadpv1alpha1.NonAdminBackup) string {
	return contract.WorkflowID(stack.ClusterID(), contract.KindBackup,
		contract.ObjectRef{Namespace: nab.Namespace, Name: nab.Name, UID: string(nab.UID)})
}

// looksAgain has Holdfast look at a settled object once more, as for an event, and returns when it has.
func looksAgain(t *testing.T, nab *oadpv1alpha1.NonAdminBackup) {
	t.Helper()
	asEvents := &connect.Cluster{Client: temporal, ClusterID: stack.ClusterID()}
	ref := contract.ObjectRef{Namespace: nab.Namespace, Name: nab.Name, UID: string(nab.UID)}
	require.NoError(t, asEvents.SignalWithStart(t.Context(), contract.KindBackup, ref, contract.Changed{Reason: "fence"}))
	awaitCompleted(t, workflowID(nab))
}

// While Velero stands still, backups wait in its queue: the time to look at what people see. Not parallel.
func TestWhatPeopleSee(t *testing.T) {
	x := newTenant(t, "frank")
	require.NoError(t, stack.Component(env.Velero).Pause())
	resume := func() { require.NoError(t, stack.Component(env.Velero).Resume()) }
	t.Cleanup(func() { _ = stack.Component(env.Velero).Resume() })
	var nabs []*oadpv1alpha1.NonAdminBackup
	for i := range 3 {
		nabs = append(nabs, x.backUp(fmt.Sprintf("waiting-%d", i)))
		x.await(nabs[i], "Created", func(now *oadpv1alpha1.NonAdminBackup) bool {
			return now.Status.Phase == oadpv1alpha1.NonAdminPhaseCreated
		})
		time.Sleep(1100 * time.Millisecond) // creation times have seconds; a tie would share a position
	}
	t.Run("positions in Velero's queue", func(*testing.T) {
		for i, nab := range nabs {
			x.await(nab, fmt.Sprintf("position %d", i+1), func(now *oadpv1alpha1.NonAdminBackup) bool {
				return now.Status.QueueInfo != nil && now.Status.QueueInfo.EstimatedQueuePosition == i+1
			})
		}
	})
	t.Run("search attributes find the backup", func(t *testing.T) { findBySearchAttributes(t, nabs[0]) })
	t.Run("the Web UI shows summary and current details", func(t *testing.T) { lookIntoWebUI(t, nabs[0]) })
	t.Run("holdfast list and describe", func(t *testing.T) { useCommands(t, nabs[0]) })

	t.Run("a backup that waits is deleted without running", func(t *testing.T) {
		x.patch(nabs[2], `{"spec":{"deleteBackup":true}}`)
		x.awaitGone(nabs[2])
		assert.Len(t, veleroBackupsOf(t, x.namespace), 2)
		awaitEnd(t, nabs[2])
	})
	nabs = nabs[:2]

	// Enough signals for a run to continue as new, with the workflow still at work.
	for range suggestContinueAsNew {
		require.NoError(t, temporal.SignalWorkflow(t.Context(), workflowID(nabs[0]), "", contract.SignalChanged, contract.Changed{}))
		time.Sleep(20 * time.Millisecond)
	}
	stormy := workflowID(nabs[0])
	resume()
	for _, nab := range nabs {
		x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted)
		awaitEnd(t, nab)
	}
	assert.Greater(t, len(runsOf(t, stormy)), 1, "the workflow has continued as new")
	t.Run("Events tell the tenant", func(t *testing.T) {
		want := map[string]int{"VeleroBackupCreated": 1, "BackupCompleted": 1}
		assert.Equal(t, want, firstFitting(t, func(i int) map[string]int {
			if i < len(nabs) {
				return readEvents(t, x, nabs[i])
			}
			return readEvents(t, x, x.completed("measured-again"))
		}, func(counts map[string]int) bool { return maps.Equal(want, counts) }))
	})
}

func findBySearchAttributes(t *testing.T, nab *oadpv1alpha1.NonAdminBackup) {
	t.Helper()
	query := fmt.Sprintf("HoldfastCluster = '%s' AND HoldfastKind = 'NonAdminBackup' AND HoldfastNamespace = '%s' "+
		"AND HoldfastName = '%s' AND HoldfastPhase = 'Created'", stack.ClusterID(), nab.Namespace, nab.Name)
	awaitSuccess(t, func(ctx context.Context) error {
		found, err := temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query})
		if err == nil && (len(found.Executions) != 1 || found.Executions[0].Execution.WorkflowId != workflowID(nab)) {
			err = fmt.Errorf("%s finds %v", query, found.Executions)
		}
		return err
	})
}

// lookIntoWebUI asks the Web UI's own HTTP API for what it draws.
func lookIntoWebUI(t *testing.T, nab *oadpv1alpha1.NonAdminBackup) {
	t.Helper()
	base := stack.TemporalUI() + "/api/v1/namespaces/default/workflows/" + url.PathEscape(workflowID(nab))
	page := ask(t, http.MethodGet, base, nil)
	assert.Contains(t, page, "HoldfastPhase")
	var described struct {
		ExecutionConfig struct {
			UserMetadata struct {
				Summary struct{ Data []byte }
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(page), &described))
	assert.Equal(t, fmt.Sprintf("%q", "Backup of "+nab.Namespace+"/"+nab.Name), string(described.ExecutionConfig.UserMetadata.Summary.Data))

	awaitDetails(t, nab, "waits for Velero to start Velero Backup")
}

func ask(t *testing.T, method, address string, body io.Reader) string {
	t.Helper()
	page, err := read(t.Context(), method, address, body)
	require.NoError(t, err)
	return page
}

// read is ask for a wait.
func read(ctx context.Context, method, address string, body io.Reader) (string, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", method, address, answer.Status, data)
	}
	return string(data), err
}

// holdfast runs the operator's command with the administrator's kubeconfig.
func holdfast(t *testing.T, args ...string) string {
	t.Helper()
	return holdfastAtTemporal(t, append(args, "--kubeconfig", stack.Kubeconfig(env.Admin))...)
}

// holdfastAtTemporal runs a command that needs Temporal alone.
func holdfastAtTemporal(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), stack.Binary(tools.Holdfast), append(args, "--cluster-id", stack.ClusterID())...)
	command.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+stack.TemporalAddress())
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	require.NoError(t, command.Run(), problems.String())
	return out.String()
}

func useCommands(t *testing.T, nab *oadpv1alpha1.NonAdminBackup) {
	t.Helper()
	assert.Regexp(t, nab.Namespace+`\s+`+nab.Name+`\s+Created\s+1\s+\S+\s+running`, holdfast(t, "list", "-n", nab.Namespace))

	described := holdfast(t, "describe", "backup", nab.Namespace+"/"+nab.Name)
	assert.Contains(t, described, "waits for Velero to start")
	assert.Contains(t, described, "backup accepted")

	var listed []struct{ Name, Phase, Workflow string }
	require.NoError(t, json.Unmarshal([]byte(holdfast(t, "list", "-n", nab.Namespace, "-o", "json")), &listed))
	assert.Len(t, listed, 3)
}

// readEvents waits for the Events that a completed backup has, and counts them all.
func readEvents(t *testing.T, x *tenant, nab *oadpv1alpha1.NonAdminBackup) map[string]int {
	t.Helper()
	for _, reason := range []string{"VeleroBackupCreated", "BackupCompleted"} {
		awaitSuccess(t, func(ctx context.Context) error { return eventSaid(ctx, x.client, nab, reason, "") })
	}
	var list eventsv1.EventList
	require.NoError(t, x.client.List(t.Context(), &list, client.InNamespace(nab.Namespace)))
	counts := map[string]int{}
	for _, event := range list.Items {
		if event.Regarding.UID == nab.UID {
			counts[event.Reason]++
		}
	}
	return counts
}

// Readiness tells the truth, and work goes on when Temporal is back. Not parallel.
func TestTemporalAway(t *testing.T) {
	x := newTenant(t, "frank")
	require.NoError(t, stack.Component(env.Temporal).Stop())
	nab := x.backUp("meanwhile")
	for _, name := range []string{env.Worker, env.Watcher} {
		address := "http://" + stack.Component(name).Address(env.AddressHealth)
		awaitStatus(t, address+"/readyz", http.StatusServiceUnavailable) // it is not ready without Temporal
		awaitStatus(t, address+"/healthz", http.StatusOK)
	}
	require.NoError(t, stack.Component(env.Temporal).Restart(t.Context()))
	for _, name := range []string{env.Worker, env.Watcher} {
		require.NoError(t, stack.Component(name).WaitReady(t.Context()))
	}
	x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted)
	awaitEnd(t, nab)
}

// awaitStatus waits until an address answers with an HTTP status.
func awaitStatus(t *testing.T, address string, want int) {
	t.Helper()
	awaitSuccess(t, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			return fmt.Errorf("%s answers %s, not %d", address, answer.Status, want)
		}
		return nil
	})
}

// Signals in a row while the workflow comes to its end: the server refuses a completion that would lose one. The storm goes on
// until it has, or until the workflow has ended between two signals.
func TestSignalsDuringCompletion(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "frank")
	nab := x.backUp("stormy")
	ctx, stop := context.WithCancel(t.Context())
	storm := make(chan struct{})
	var ended atomic.Bool
	go func() {
		defer close(storm)
		for ctx.Err() == nil {
			err := temporal.SignalWorkflow(ctx, workflowID(nab), "", contract.SignalChanged, contract.Changed{Reason: "storm"})
			var none *serviceerror.NotFound
			ended.Store(errors.As(err, &none))
			time.Sleep(3 * time.Millisecond)
		}
	}()
	x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted)
	awaitSuccess(t, func(ctx context.Context) error {
		if ended.Load() {
			return nil
		}
		return completionRefused(ctx, workflowID(nab))
	})
	stop()
	<-storm
	awaitEnd(t, nab)
}

// completionRefused is an error while a workflow's latest run has not seen that.
func completionRefused(ctx context.Context, id string) error {
	events := temporal.GetWorkflowHistory(ctx, id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return err
		}
		failed := event.GetWorkflowTaskFailedEventAttributes()
		if failed != nil && failed.Cause == enumspb.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND {
			return nil
		}
	}
	return fmt.Errorf("no completion of %s was refused", id)
}
