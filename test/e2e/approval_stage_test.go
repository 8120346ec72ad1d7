package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	temporalclient "go.temporal.io/sdk/client"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

type approvalRequest = oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest

const (
	approvalRequired = "requireApprovalForBSL: true"
	byKubectl        = "kubectl, see the API server's audit log"
)

// newApprover makes a user with nothing but the role holdfast-approver and returns the kubeconfig.
func newApprover(t *testing.T, name string) string {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: "approver-" + name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "holdfast-approver"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
	}
	require.NoError(t, admin.Create(t.Context(), binding))
	t.Cleanup(func() { _ = admin.Delete(context.Background(), binding) })
	config, err := clientcmd.LoadFromFile(stack.Kubeconfig(env.Admin))
	require.NoError(t, err)
	for _, user := range config.AuthInfos {
		user.Impersonate = name
	}
	kubeconfig := filepath.Join(t.TempDir(), name+".kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, kubeconfig))
	return kubeconfig
}

// holdfastAs runs the command as the user of a kubeconfig, who cannot reach Temporal.
func holdfastAs(ctx context.Context, kubeconfig string, args ...string) (output string, err error) {
	command := exec.CommandContext(ctx, stack.Binary(tools.Holdfast), append(args, "--kubeconfig", kubeconfig)...)
	command.Env = append(os.Environ(), "TEMPORAL_ADDRESS=127.0.0.1:1")
	combined, err := command.CombinedOutput()
	return string(combined), err
}

// kubectl runs the real one as the administrator.
func kubectl(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, stack.Binary(tools.Kubectl), append([]string{"--kubeconfig", stack.Kubeconfig(env.Admin)}, args...)...)
	var problems bytes.Buffer
	command.Stderr = &problems
	if err := command.Run(); err != nil {
		return fmt.Errorf("kubectl %v: %w: %s", args, err, problems.Bytes())
	}
	return nil
}

// decisionMerge is the JSON merge patch with which kubectl decides.
func decisionMerge(decision contract.Decision, reason string) string {
	annotation, spec := oadpv1alpha1.ApprovalReasonAnnotation, fmt.Sprintf(`"pendingApprovalDecision":%q`, decision)
	switch decision {
	case contract.DecisionReject:
		annotation = oadpv1alpha1.RejectionReasonAnnotation
	case contract.DecisionRevoke:
		annotation, spec = oadpv1alpha1.RevocationReasonAnnotation, `"revokeApprovedSpec":true`
	case contract.DecisionApprove:
	}
	// Who decides takes off what speaks of a decision through Temporal before.
	return fmt.Sprintf(`{"metadata":{"annotations":{%q:%q,%q:null,%q:null}},"spec":{%s}}`, annotation, reason,
		oadpv1alpha1.DecidedByTemporalAnnotation, oadpv1alpha1.DecidedByAnnotation, spec)
}

// editByHand decides about a location as an administrator does with kubectl.
func editByHand(t *testing.T, location *nabsl, decision contract.Decision, reason string) {
	t.Helper()
	request := &approvalRequest{ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: nacuuid(location)}}
	require.NoError(t, byHand(t, request, decisionMerge(decision, reason)))
}

func approvalID(location *nabsl) string {
	return contract.WorkflowID(stack.ClusterID(), contract.KindApproval, locationRef(location))
}

// approvalOf asks the approval's workflow, as the Web UI does.
func approvalOf(ctx context.Context, location *nabsl) (contract.ApprovalView, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	answer, err := temporal.QueryWorkflow(ctx, approvalID(location), "", contract.QueryState)
	if err != nil {
		return contract.ApprovalView{}, err
	}
	var state contract.State[contract.ApprovalView]
	err = answer.Get(&state)
	return state.View, err
}

// detailsOf asks a workflow for its current details.
func detailsOf(ctx context.Context, id string) (string, error) {
	answer, err := temporal.QueryWorkflow(ctx, id, "", connect.QueryMetadata)
	if err != nil {
		return "", err
	}
	var metadata sdkpb.WorkflowMetadata
	err = answer.Get(&metadata)
	return metadata.GetCurrentDetails(), err
}

// decideByUpdate sends an Update and returns what it answers.
func decideByUpdate(
	ctx context.Context, from temporalclient.Client, location *nabsl, request contract.DecisionRequest,
) (contract.DecisionOutcome, error) {
	var outcome contract.DecisionOutcome
	handle, err := from.UpdateWorkflow(ctx, temporalclient.UpdateWorkflowOptions{
		WorkflowID: approvalID(location), UpdateName: contract.UpdateDecide, Args: []any{request},
		WaitForStage: temporalclient.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(ctx, &outcome)
	}
	return outcome, err
}

func readRequest(t *testing.T, location *nabsl) *approvalRequest {
	t.Helper()
	request := &approvalRequest{}
	require.True(t, made(t, nacuuid(location), request), "no approval request")
	return request
}

func checkNoRequest(t *testing.T, location *nabsl) {
	t.Helper()
	assert.False(t, made(t, nacuuid(location), &approvalRequest{}), "an approval request")
}

// awaitApproval waits until request, workflow and location agree that the approval of the location's present spec has come so
// far, and nothing is left to do; it returns what the workflow shows.
func (x *tenant) awaitApproval(location *nabsl, state contract.Approval) contract.ApprovalView {
	x.t.Helper()
	var seen contract.ApprovalView
	awaitSuccess(x.t, func(ctx context.Context) error {
		view, request, now, err := readApproval(ctx, location)
		if err != nil {
			return err
		}
		if view.State() != state {
			return fmt.Errorf("the workflow says that %s/%s is %s, not %s", location.Namespace, location.Name, view.State(), state)
		}
		c := &doubts{}
		assert.Equal(c, request.ResourceVersion, view.ResourceVersion, "the workflow has seen the last version")
		checkAgreement(c, state, request, now)
		seen = view
		return c.err()
	})
	return seen
}

// readApproval returns what workflow, request and location say of an approval.
func readApproval(
	ctx context.Context, location *nabsl,
) (view contract.ApprovalView, request *approvalRequest, now *nabsl, err error) {
	request, now = &approvalRequest{ObjectMeta: inOADP(nacuuid(location))}, &nabsl{}
	if view, err = approvalOf(ctx, location); err != nil {
		return view, nil, nil, fmt.Errorf("ask the workflow of %s/%s: %w", location.Namespace, location.Name, err)
	}
	if err = admin.Get(ctx, client.ObjectKeyFromObject(request), request); err != nil {
		return view, nil, nil, err
	}
	return view, request, now, admin.Get(ctx, client.ObjectKeyFromObject(location), now)
}

// checkAgreement holds an approval request and its location against the state that they should be in.
func checkAgreement(c assert.TestingT, state contract.Approval, request *approvalRequest, location *nabsl) {
	shown := locationCondition(location, oadpv1alpha1.NonAdminConditionClusterAdminApproved)
	asked := request.Status.VeleroBackupStorageLocationApprovalRequest
	if !assert.NotNil(c, shown) || !assert.NotNil(c, asked) {
		return
	}
	spec := location.Spec.BackupStorageLocationSpec
	reasons := map[contract.Approval]string{
		contract.ApprovalPending:  oadpv1alpha1.ReasonBSLSpecApprovalPending,
		contract.ApprovalApproved: oadpv1alpha1.ReasonBSLSpecApproved,
		contract.ApprovalRejected: oadpv1alpha1.ReasonBSLSpecRejected,
	}
	assert.Equal(c, reasons[state], shown.Reason)
	if state == contract.ApprovalPending {
		assert.Contains(c, []oadpv1alpha1.ApprovalDecision{"", oadpv1alpha1.ApprovalDecisionPending}, request.Spec.PendingApprovalDecision)
	} else {
		assert.Equal(c, request.Generation, request.Status.ObservedGeneration, "everything was acted on")
	}
	if state == contract.ApprovalApproved {
		assert.Equal(c, oadpv1alpha1.NonAdminPhaseCreated, location.Status.Phase)
		assert.Nil(c, asked.PendingSpec)
		assert.True(c, equality.Semantic.DeepEqual(spec, asked.ApprovedSpec), "the approved spec is the present one")
		return
	}
	assert.Equal(c, oadpv1alpha1.NonAdminPhaseBackingOff, location.Status.Phase)
	assert.True(c, equality.Semantic.DeepEqual(spec, asked.PendingSpec), "the pending spec is the present one")
}

// checkInForce: Velero has the location at a prefix of the tenant's folder, or gets it there: a decision is shown before it is
// carried out.
func (x *tenant) checkInForce(location *nabsl, prefix string) {
	x.t.Helper()
	velero := &velerov1.BackupStorageLocation{ObjectMeta: inOADP(nacuuid(location))}
	awaitObject(x.t, admin, velero, patience, "at prefix "+prefix, func(now *velerov1.BackupStorageLocation, there bool) bool {
		return there && now.Spec.ObjectStorage.Prefix == path.Join(x.namespace, prefix)
	})
}

// checkDecision: the request says what was decided last, by whom, when and why.
func checkDecision(t *testing.T, location *nabsl, decision contract.Decision, by, reason string) {
	t.Helper()
	request := readRequest(t, location)
	last := request.Status.LastDecision
	require.NotNil(t, last)
	assert.EqualValues(t, decision, last.Decision)
	assert.Equal(t, by, last.DecidedBy)
	assert.Equal(t, reason, last.Reason)
	assert.WithinRange(t, last.DecidedAt.Time, request.CreationTimestamp.Time, time.Now().Add(time.Second))
	assert.LessOrEqual(t, last.ObservedGeneration, request.Generation)
}
