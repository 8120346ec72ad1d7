package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

// record waits until the object's workflow has ended, and keeps the histories of all its runs when `make histories` asks
// for them. Histories of a release are only added, never rewritten: a file that exists stays.
func record(t *testing.T, nab *oadpv1alpha1.NonAdminBackup) {
	t.Helper()
	recordWorkflow(t, workflowID(nab), fileName(t.Name()))
}

// recordLocation is record for a location and, if there was one, its approval, whose workflow ends with the location or when
// none is required any more.
func recordLocation(t *testing.T, location *nabsl) {
	t.Helper()
	for _, kind := range []contract.Kind{contract.KindLocation, contract.KindApproval} {
		id := contract.WorkflowID(stack.ClusterID(), kind, locationRef(location))
		if kind == contract.KindApproval && !workflowKnown(t, id) {
			continue
		}
		recordWorkflow(t, id, fmt.Sprintf("%s.%s.%.40s", fileName(t.Name()), kind.ID, location.Name))
	}
}

func workflowKnown(t *testing.T, id string) bool {
	t.Helper()
	_, err := temporal.DescribeWorkflowExecution(t.Context(), id, "")
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return false
	}
	require.NoError(t, err)
	return true
}

// awaitCompleted waits for the end of a workflow whose object is settled.
func awaitCompleted(t *testing.T, id string) {
	t.Helper()
	require.Eventually(t, func() bool {
		described, err := temporal.DescribeWorkflowExecution(context.Background(), id, "")
		return err == nil && described.WorkflowExecutionInfo.Status == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	}, patience, 200*time.Millisecond, "workflow %s has not completed: its object is settled", id)
}

func recordWorkflow(t *testing.T, id, name string) {
	t.Helper()
	awaitCompleted(t, id)
	folder := os.Getenv("HOLDFAST_RECORD_HISTORIES")
	if folder == "" {
		return
	}
	require.NoError(t, env.SaveHistories(t.Context(), temporal, id, folder, name))
}

// runsOf lists the runs of a workflow ID, the oldest first.
func runsOf(t *testing.T, id string) []string {
	t.Helper()
	runs, err := env.RunsOf(t.Context(), temporal, id)
	require.NoError(t, err)
	return runs
}

func fileName(test string) string {
	return strings.NewReplacer("/", ".", " ", "-").Replace(strings.TrimPrefix(test, "Test"))
}
