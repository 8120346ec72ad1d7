package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

// awaitEnd waits until the workflow of an object that is settled has completed.
func awaitEnd(t *testing.T, nab *oadpv1alpha1.NonAdminBackup) {
	t.Helper()
	awaitCompleted(t, workflowID(nab))
}

// awaitEndOfLocation is awaitEnd for a location and, if there was one, its approval, whose workflow ends with the location or when
// none is required any more.
func awaitEndOfLocation(t *testing.T, location *nabsl) {
	t.Helper()
	for _, kind := range []contract.Kind{contract.KindLocation, contract.KindApproval} {
		id := contract.WorkflowID(stack.ClusterID(), kind, locationRef(location))
		if kind == contract.KindApproval && !workflowKnown(t, id) {
			continue
		}
		awaitCompleted(t, id)
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
	awaitSuccess(t, func(ctx context.Context) error {
		described, err := temporal.DescribeWorkflowExecution(ctx, id, "")
		if err != nil {
			return fmt.Errorf("workflow %s: %w", id, err)
		}
		if status := described.WorkflowExecutionInfo.Status; status != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
			return fmt.Errorf("workflow %s is %s: its object is settled", id, status)
		}
		return nil
	})
}

// runsOf lists the runs of a workflow ID, the oldest first.
func runsOf(t *testing.T, id string) []string {
	t.Helper()
	runs, err := env.RunsOf(t.Context(), temporal, id)
	require.NoError(t, err)
	return runs
}
