package operations_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	temporalclient "go.temporal.io/sdk/client"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
)

// A release that adds a command cannot be rolled back beneath runs that it has begun: the worker of before refuses them, and does
// nothing for them. They go on with the new one.
func TestAReleaseThatAddsCommandsCannotBeRolledBack(t *testing.T) {
	next := nextRelease(t)
	s := newScene(t, "rolled-back", temporalclient.Options{})
	startNext := func() *process {
		return startBinary(t, next, env.HoldfastWorker, []string{"--serve=velero"}, s.cluster, nil).ready()
	}
	startWatcher(t, s.cluster).ready()

	before := startWorker(t, s.cluster).ready()
	old := s.backUp("begun-before")
	oldVelero := s.awaitVelero(old)
	before.stop()
	newer := startNext()
	begun := s.backUp("begun-by-it")
	velero := s.awaitVelero(begun)
	s.signal(old)
	newer.stop()

	back := startWorker(t, s.cluster).ready()
	s.complete(velero)
	var refusal *historypb.WorkflowTaskFailedEventAttributes
	s.awaitHistory(begun, "the worker of before does not go on with it", func(events []*historypb.HistoryEvent) bool {
		refusal = refused(events)
		return refusal != nil
	})
	assert.Equal(t, enumspb.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR, refusal.Cause)
	assert.Contains(t, refusal.GetFailure().GetMessage(), "TMPRL1100")
	s.complete(oldVelero)
	s.awaitCompleted(old) // it has not begun with the new command
	back.stop()

	startNext()
	s.awaitCompleted(begun)
	var made velerov1.BackupList
	require.NoError(t, admin.List(t.Context(), &made, client.InNamespace(env.OADPNamespace)))
	ours := 0
	for _, backup := range made.Items {
		if strings.HasPrefix(backup.Name, s.namespace) {
			ours++
		}
	}
	assert.Equal(t, 2, ours, "Velero Backups of two objects")
}

func refused(events []*historypb.HistoryEvent) *historypb.WorkflowTaskFailedEventAttributes {
	for _, event := range events {
		if failed := event.GetWorkflowTaskFailedEventAttributes(); failed != nil {
			return failed
		}
	}
	return nil
}

// nextRelease builds a worker whose workflow of backups has one command more, guarded as CONTRIBUTING has it.
func nextRelease(t *testing.T) string {
	t.Helper()
	const file, before = "workflows/backup/backup.go", "func begin(_ workflow.Context, r *run) error {"
	root, err := tools.Root()
	require.NoError(t, err)
	source, err := os.ReadFile(filepath.Join(root, file))
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(source), before))
	worker, err := tools.BuildWorkerWith(t.Context(), t.TempDir(), file, strings.Replace(string(source), before, `
func begin(ctx workflow.Context, r *run) error {
	if workflow.GetVersion(ctx, "one-command-more", workflow.DefaultVersion, 1) == 1 {
		if err := workflow.Sleep(ctx, 1); err != nil {
			return err
		}
	}
`, 1))
	require.NoError(t, err)
	return worker
}
