package location

import (
	"context"
	"fmt"
	"io"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/locationspec"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/workflows/contract"
)

// Approvals is how approval requests are listed and described.
var Approvals = operator.Shown{
	Kind: contract.KindApproval, Name: "approval", List: listApprovals, Describe: describeApproval,
}

// shownApproval is what an administrator is shown of an approval request.
type shownApproval struct {
	// Namespace and Name are the tenant's NonAdminBackupStorageLocation's.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Request and ResourceVersion are the approval request's own.
	Request         string `json:"request"`
	ResourceVersion string `json:"resourceVersion"`
	// State is empty if no approval was requested.
	State contract.Approval `json:"state,omitempty"`
	// Stored is a decision that the worker has not acted on yet.
	Stored contract.Decision `json:"stored,omitempty"`
	// Since is when that state began, as far as the request shows.
	Since    time.Time `json:"since"`
	Provider string    `json:"provider,omitempty"`
	Bucket   string    `json:"bucket,omitempty"`
	Prefix   string    `json:"prefix,omitempty"`
	// Changes are what the pending spec changes of the approved one.
	Changes      []contract.FieldChange              `json:"changes,omitempty"`
	PendingSpec  *velerov1.BackupStorageLocationSpec `json:"pendingSpec,omitempty"`
	ApprovedSpec *velerov1.BackupStorageLocationSpec `json:"approvedSpec,omitempty"`
	LastDecision *oadpv1alpha1.ApprovalRecord        `json:"lastDecision,omitempty"`
	Conditions   []metav1.Condition                  `json:"conditions,omitempty"`
}

type approvalRequest = oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest

// showApproval returns false for a request that does not say yet whose it is: its status is still to be written.
func showApproval(request *approvalRequest) (shownApproval, bool) {
	asked := request.Status.VeleroBackupStorageLocationApprovalRequest
	if asked == nil || asked.Namespace == "" || asked.Name == "" {
		return shownApproval{}, false
	}
	shown := shownApproval{
		Namespace: asked.Namespace, Name: asked.Name, Request: request.Name, ResourceVersion: request.ResourceVersion,
		State: approvalState(request), Stored: storedDecision(request), Since: since(request),
		PendingSpec: asked.PendingSpec, ApprovedSpec: asked.ApprovedSpec,
		LastDecision: request.Status.LastDecision, Conditions: request.Status.Conditions,
	}
	spec := asked.ApprovedSpec
	if asked.PendingSpec != nil {
		spec = asked.PendingSpec
		shown.Changes = locationspec.Changes(asked.ApprovedSpec, asked.PendingSpec)
	}
	shown.store(spec)
	return shown, true
}

// store shows where a spec puts backups.
func (s *shownApproval) store(spec *velerov1.BackupStorageLocationSpec) {
	if spec == nil {
		return
	}
	s.Provider = spec.Provider
	if spec.ObjectStorage != nil {
		s.Bucket, s.Prefix = spec.ObjectStorage.Bucket, spec.ObjectStorage.Prefix
	}
}

func approvalState(request *approvalRequest) contract.Approval {
	asked := request.Status.VeleroBackupStorageLocationApprovalRequest
	switch {
	case asked.PendingSpec != nil && clusterAdminApproved(request.Status.Conditions) == contract.ApprovalRejected:
		return contract.ApprovalRejected
	case asked.PendingSpec != nil:
		return contract.ApprovalPending
	case asked.ApprovedSpec != nil:
		return contract.ApprovalApproved
	}
	return contract.ApprovalUnknown
}

// clusterAdminApproved is the state in the condition of that name, on either kind.
func clusterAdminApproved(conditions []metav1.Condition) contract.Approval {
	condition := meta.FindStatusCondition(conditions, string(oadpv1alpha1.NonAdminConditionClusterAdminApproved))
	if condition == nil {
		return contract.ApprovalUnknown
	}
	switch condition.Reason {
	case oadpv1alpha1.ReasonBSLSpecRejected, oadpv1alpha1.ReasonBSLSpecUpdateRejected:
		return contract.ApprovalRejected
	case oadpv1alpha1.ReasonBSLSpecApproved:
		return contract.ApprovalApproved
	}
	return contract.ApprovalPending
}

// storedDecision is the decision in the spec, if it was not handled yet.
func storedDecision(request *approvalRequest) contract.Decision {
	switch {
	case request.Generation <= request.Status.ObservedGeneration:
		return ""
	case request.Spec.RevokeApprovedSpec:
		return contract.DecisionRevoke
	case request.Spec.PendingApprovalDecision == oadpv1alpha1.ApprovalDecisionApprove:
		return contract.DecisionApprove
	case request.Spec.PendingApprovalDecision == oadpv1alpha1.ApprovalDecisionReject:
		return contract.DecisionReject
	}
	return ""
}

func since(request *approvalRequest) time.Time {
	condition := meta.FindStatusCondition(request.Status.Conditions,
		string(oadpv1alpha1.NonAdminConditionClusterAdminApproved))
	if condition == nil {
		return request.CreationTimestamp.Time
	}
	return condition.LastTransitionTime.Time
}

func approvalRequests(ctx context.Context, reader client.Reader, oadpNamespace string) ([]approvalRequest, error) {
	var list oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequestList
	if err := reader.List(ctx, &list, client.InNamespace(oadpNamespace)); err != nil {
		return nil, fmt.Errorf("list approval requests in namespace %s: %w", oadpNamespace, err)
	}
	return list.Items, nil
}

// findApproval returns the approval request of a tenant's NonAdminBackupStorageLocation. That itself need not be readable.
func findApproval(
	ctx context.Context, reader client.Reader, oadpNamespace string, location types.NamespacedName,
) (*approvalRequest, error) {
	requests, err := approvalRequests(ctx, reader, oadpNamespace)
	if err != nil {
		return nil, err
	}
	var found *approvalRequest
	for i := range requests {
		asked := requests[i].Status.VeleroBackupStorageLocationApprovalRequest
		if asked == nil || asked.Namespace != location.Namespace || asked.Name != location.Name ||
			!requests[i].DeletionTimestamp.IsZero() {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%s has several approval requests in namespace %s, %s and %s: "+
				"delete all but the right one with kubectl", location, oadpNamespace, found.Name, requests[i].Name)
		}
		found = &requests[i]
	}
	if found == nil {
		return nil, fmt.Errorf("%s has no approval request in namespace %s: no such storage location, or its spec is not valid, "+
			"or the policy requires no approval (see holdfast list approvals)", location, oadpNamespace)
	}
	return found, nil
}

// describedApproval is what `holdfast describe approval` shows.
type describedApproval struct {
	shownApproval
	Workflow operator.DescribedWorkflow `json:"workflow"`
}

func describeApproval(
	ctx context.Context, flags *operator.Flags, kubeClient client.Client, workflow operator.WorkflowDescriber,
	key types.NamespacedName,
) (operator.Description, error) {
	request, err := findApproval(ctx, kubeClient, flags.OADPNamespace, key)
	if err != nil {
		return nil, err
	}
	shown, _ := showApproval(request)
	described := &describedApproval{shownApproval: shown}
	// The workflow's ID holds the UID of the tenant's object, which an approver may have no right to read.
	var nabsl oadpv1alpha1.NonAdminBackupStorageLocation
	if err := kubeClient.Get(ctx, key, &nabsl); err != nil {
		described.Workflow.Status = fmt.Sprintf("unknown: %v", err)
	} else {
		described.Workflow = workflow(contract.KindApproval, &nabsl)
	}
	return described, nil
}

func (s *shownApproval) lines(sheet operator.Sheet) {
	sheet.Line("Namespace", s.Namespace)
	sheet.Line("Name", s.Name)
	sheet.Line("Request", s.Request)
	sheet.Line("Version", s.ResourceVersion)
	sheet.Line("State", s.stateText())
	sheet.Line("Provider", s.Provider)
	sheet.Line("Bucket", s.Bucket)
	sheet.Line("Prefix", s.Prefix)
	sheet.Changes(s.Changes)
}

// stateText is State with what is about to change it.
func (s *shownApproval) stateText() string {
	text := string(s.State)
	if text == "" {
		text = "no request"
	}
	if s.Stored != "" {
		text += fmt.Sprintf(" (%s stored)", s.Stored)
	}
	return text
}

func (d *describedApproval) Print(out io.Writer) error {
	sheet := operator.NewSheet(out)
	d.lines(sheet)
	if last := d.LastDecision; last != nil {
		sheet.Line("Last decision", string(last.Decision))
		sheet.Line("Decided by", last.DecidedBy)
		sheet.Line("Decided at", last.DecidedAt.UTC().Format(time.RFC3339))
		sheet.Line("Reason", last.Reason)
	}
	sheet.Workflow(d.Workflow)
	sheet.Conditions(d.Conditions)
	return sheet.Flush()
}
