package deploy_test

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// commandDecides runs the real command with nothing but an approver's rights, and writes what the worker would.
func (a *approvals) commandDecides(ctx context.Context, t *testing.T) {
	programs, err := binaries()
	require.NoError(t, err)
	config, err := clientcmd.LoadFromFile(a.stack.Kubeconfig(env.Admin))
	require.NoError(t, err)
	for _, user := range config.AuthInfos {
		user.Impersonate, user.ImpersonateGroups = "ann", []string{approvers}
	}
	kubeconfig := filepath.Join(t.TempDir(), "ann.kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, kubeconfig))
	run := func(args ...string) (string, error) {
		command := exec.CommandContext(ctx, programs["holdfast"], append(args, "--kubeconfig", kubeconfig)...)
		command.Env = []string{"TEMPORAL_ADDRESS=127.0.0.1:1"} // nobody is there
		output, err := command.CombinedOutput()
		return string(output), err
	}
	request := a.request(ctx, t, "vault")
	where := tenantNamespace + "/vault"

	listed, err := run("list", "approvals", "-n", tenantNamespace)
	require.NoError(t, err, listed)
	assert.Regexp(t, tenantNamespace+` +vault +pending +tenant-bucket +\d+s +`+request.ResourceVersion, listed)
	assert.Contains(t, listed, "+ objectStorage.bucket: tenant-bucket")

	output, err := run("approve", where, "--reason", "too early", "--resource-version", "1")
	require.Error(t, err)
	assert.Contains(t, output, where+": changed since version 1: read it again with holdfast list approvals")

	output, err = run("approve", where, "--reason", "ticket 4711", "--resource-version", request.ResourceVersion, "--timeout", "2s")
	require.Error(t, err, "there is no worker")
	assert.Contains(t, output, "the decision is stored, but was not acted on yet")
	require.NoError(t, a.users["admin"].Get(ctx, client.ObjectKeyFromObject(request), request))
	assert.Equal(t, oadpv1alpha1.ApprovalDecisionApprove, request.Spec.PendingApprovalDecision)
	assert.Equal(t, "ann", request.Annotations[oadpv1alpha1.DecidedByAnnotation])
	assert.Equal(t, "ticket 4711", request.Annotations[oadpv1alpha1.ApprovalReasonAnnotation])

	done := make(chan error, 1)
	go func() { done <- a.actOnRejection(ctx, client.ObjectKeyFromObject(request)) }()
	output, err = run("reject", where, "--reason", "on second thought", "--timeout", "5m")
	require.NoError(t, err, output)
	assert.Contains(t, output, "Decided by:  ann")
	assert.Contains(t, output, "\n"+where+": rejected\n")
	require.NoError(t, <-done)
}

// actOnRejection waits for the decision and writes the status that says that it was acted on.
func (a *approvals) actOnRejection(ctx context.Context, key client.ObjectKey) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		acted, err := a.actOnce(ctx, key)
		if acted {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (a *approvals) actOnce(ctx context.Context, key client.ObjectKey) (acted bool, err error) {
	request := &approvalRequest{}
	if err := a.users["admin"].Get(ctx, key, request); err != nil {
		return false, err
	}
	if request.Spec.PendingApprovalDecision != oadpv1alpha1.ApprovalDecisionReject {
		return false, errors.New("nothing is decided")
	}
	request.Status.ObservedGeneration = request.Generation
	request.Status.LastDecision = &oadpv1alpha1.ApprovalRecord{
		Decision: "reject", DecidedBy: request.Annotations[oadpv1alpha1.DecidedByAnnotation], DecidedAt: metav1.Now(),
		ObservedGeneration: request.Generation,
	}
	request.Status.Conditions = []metav1.Condition{{
		Type: "ClusterAdminApproved", Status: "False", Reason: oadpv1alpha1.ReasonBSLSpecRejected, LastTransitionTime: metav1.Now(),
	}}
	err = a.users["admin"].Status().Update(ctx, request)
	return err == nil, err
}
