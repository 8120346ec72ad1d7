package location

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/operator/operatortest"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	OADPNamespace = "openshift-adp"
	requestName   = "shop-offsite-1"
)

var offsite = types.NamespacedName{Namespace: "shop", Name: "offsite"}

func bucket(name string) *velerov1.BackupStorageLocationSpec {
	return &velerov1.BackupStorageLocationSpec{
		Provider:   "aws",
		Credential: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}, Key: "cloud"},
		StorageType: velerov1.StorageType{
			ObjectStorage: &velerov1.ObjectStorageLocation{Bucket: name, Prefix: "nightly"},
		},
	}
}

// asked is a request: what was asked for, what is approved and what the ClusterAdminApproved condition says.
func asked(pending, approved *velerov1.BackupStorageLocationSpec, reason string) *approvalRequest {
	request := &approvalRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: OADPNamespace, Name: requestName, UID: "r-1", Generation: 1,
			CreationTimestamp: metav1.NewTime(time.Now().Add(-48 * time.Hour)),
		},
		Spec: oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequestSpec{
			PendingApprovalDecision: oadpv1alpha1.ApprovalDecisionPending,
		},
		Status: oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequestStatus{
			ObservedGeneration: 1,
			VeleroBackupStorageLocationApprovalRequest: &oadpv1alpha1.VeleroBackupStorageLocationApprovalRequest{
				PendingSpec: pending, ApprovedSpec: approved, NACUUID: requestName, Name: offsite.Name, Namespace: offsite.Namespace,
			},
		},
	}
	condition(request, reason)
	return request
}

func condition(request *approvalRequest, reason string) {
	request.Status.Conditions = []metav1.Condition{{
		Type: "ClusterAdminApproved", Status: "False", Reason: reason, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour)),
	}}
}

// named is the request of another tenant's location that was asked for some hours ago.
func named(request *approvalRequest, namespace, name string, hours int) *approvalRequest {
	request.Name = namespace + "-" + name
	request.Status.VeleroBackupStorageLocationApprovalRequest.Namespace = namespace
	request.Status.VeleroBackupStorageLocationApprovalRequest.Name = name
	request.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Now().Add(-time.Duration(hours) * time.Hour))
	return request
}

func TestTheStateOfAnApproval(t *testing.T) {
	pending, approved, rejected := oadpv1alpha1.ReasonBSLSpecApprovalPending, oadpv1alpha1.ReasonBSLSpecApproved, oadpv1alpha1.ReasonBSLSpecRejected
	tests := map[string]struct {
		request *approvalRequest
		want    contract.Approval
	}{
		"a first request waits":                      {asked(bucket("a"), nil, pending), contract.ApprovalPending},
		"a change waits while the old one is in use": {asked(bucket("b"), bucket("a"), pending), contract.ApprovalPending},
		"approved":                 {asked(nil, bucket("a"), approved), contract.ApprovalApproved},
		"a first request rejected": {asked(bucket("a"), nil, rejected), contract.ApprovalRejected},
		"a change rejected while the old is in use":   {asked(bucket("b"), bucket("a"), rejected), contract.ApprovalRejected},
		"approved again after a rejected change went": {asked(nil, bucket("a"), rejected), contract.ApprovalApproved},
		"nothing asked yet":                           {asked(nil, nil, pending), contract.ApprovalUnknown},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			shown, known := showApproval(test.request)
			require.True(t, known)
			assert.Equal(t, test.want, shown.State)
		})
	}
}

// A decision that is stored but not acted on is told, or people would decide twice.
func TestAStoredDecisionIsShown(t *testing.T) {
	tests := map[string]struct {
		decision oadpv1alpha1.ApprovalDecision
		revoke   bool
		observed int64
		want     string
	}{
		"none":                     {"pending", false, 1, "pending"},
		"none at all":              {"", false, 1, "pending"},
		"approve":                  {"approve", false, 1, "pending (approve stored)"},
		"reject":                   {"reject", false, 1, "pending (reject stored)"},
		"a revocation goes before": {"approve", true, 1, "pending (revoke stored)"},
		"acted on":                 {"approve", false, 2, "pending"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			request := asked(bucket("b"), bucket("a"), oadpv1alpha1.ReasonBSLSpecApprovalPending)
			request.Generation, request.Status.ObservedGeneration = 2, test.observed
			request.Spec.PendingApprovalDecision, request.Spec.RevokeApprovedSpec = test.decision, test.revoke
			shown, _ := showApproval(request)
			assert.Equal(t, test.want, shown.stateText())
		})
	}
}

func TestApprovalsThatArePendingComeFirstAndTheOldestOfThem(t *testing.T) {
	pending, approved := oadpv1alpha1.ReasonBSLSpecApprovalPending, oadpv1alpha1.ReasonBSLSpecApproved
	done := named(asked(nil, bucket("done"), approved), "bank", "vault", 100)
	done.ResourceVersion = "7"
	done.Status.LastDecision = &oadpv1alpha1.ApprovalRecord{Decision: "approve", DecidedBy: "kubectl, see the API server's audit log"}
	second := named(asked(bucket("new"), bucket("old"), pending), "shop", "offsite", 2)
	second.ResourceVersion = "8"
	first := named(asked(bucket("evil\x1b[2J\nbank vault"), nil, pending), "shop", "first", 3)
	first.ResourceVersion = "9"
	unwritten := asked(nil, nil, pending)
	unwritten.Status.VeleroBackupStorageLocationApprovalRequest = nil

	rows := approvalRows([]approvalRequest{*done, *second, *unwritten, *first}, "")
	text := operatortest.Printed(t, "table", rows, func(out io.Writer) error { return printApprovals(out, rows) })
	assert.NotContains(t, text, "\x1b", "nothing that a tenant writes reaches the terminal")
	assert.Equal(t, []string{
		"NAMESPACE NAME STATE BUCKET AGE VERSION DECIDED-BY",
		`shop first pending evil\x1b[2J\nbank vault 3h 9`,
		"+ credential.key: cloud",
		"+ credential.name: keys",
		`+ objectStorage.bucket: "evil\x1b[2J\nbank vault"`,
		"+ objectStorage.prefix: nightly",
		"+ provider: aws",
		"shop offsite pending new 120m 8",
		"- objectStorage.bucket: old",
		"+ objectStorage.bucket: new",
		"bank vault approved done 4d4h 7 kubectl, see the API server's audit log (approve)",
	}, operatortest.Lines(text))

	var read []map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(operatortest.Printed(t, "yaml", rows, nil)), &read))
	require.Len(t, read, 3)
	assert.Equal(t, []any{map[string]any{"field": "objectStorage.bucket", "from": "old", "to": "new"}}, read[1]["changes"])
	assert.Equal(t, "old", read[1]["approvedSpec"].(map[string]any)["objectStorage"].(map[string]any)["bucket"])
	assert.Equal(t, "8", read[1]["resourceVersion"])

	assert.Empty(t, approvalRows([]approvalRequest{*first}, "bank"))
	assert.Equal(t, "[]\n", operatortest.Printed(t, "json", approvalRows(nil, ""), nil), "none is a list too")
}

func TestAnApprovalRequestIsFoundByWhoseItIs(t *testing.T) {
	pending := oadpv1alpha1.ReasonBSLSpecApprovalPending
	mine, other := asked(bucket("a"), nil, pending), named(asked(bucket("a"), nil, pending), "shop", "other", 1)
	twin := asked(bucket("a"), nil, pending)
	twin.Name = "twin"
	going := asked(bucket("a"), nil, pending)
	going.Name, going.Finalizers = "going", []string{"example.com/wait"}
	elsewhere := asked(bucket("a"), nil, pending)
	elsewhere.Namespace = "shop"

	tests := map[string]struct {
		objects []client.Object
		want    string // of the error; none if empty
	}{
		"among others":           {[]client.Object{mine, other}, ""},
		"not one that is going":  {[]client.Object{mine, going}, ""},
		"none":                   {[]client.Object{other}, "shop/offsite has no approval request in namespace openshift-adp"},
		"a tenant's own is none": {[]client.Object{elsewhere}, "shop/offsite has no approval request in namespace openshift-adp"},
		"several":                {[]client.Object{mine, twin}, "several approval requests in namespace openshift-adp, shop-offsite-1 and twin"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			reader := fake.NewClientBuilder().WithScheme(k8s.Scheme()).WithObjects(test.objects...).Build()
			if title == "not one that is going" {
				require.NoError(t, reader.Delete(t.Context(), going.DeepCopy()))
			}
			found, err := findApproval(t.Context(), reader, OADPNamespace, offsite)
			if test.want != "" {
				require.ErrorContains(t, err, test.want)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, requestName, found.Name)
		})
	}
}

func TestADescribedApprovalShowsTheWorkflowOfItsLocation(t *testing.T) {
	request := asked(bucket("b"), bucket("a"), oadpv1alpha1.ReasonBSLSpecRejected)
	request.Status.LastDecision = &oadpv1alpha1.ApprovalRecord{
		Decision: "reject", DecidedBy: "bob", Reason: "not ours", DecidedAt: metav1.NewTime(time.Unix(0, 0)),
	}
	nabsl := &oadpv1alpha1.NonAdminBackupStorageLocation{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "offsite", UID: "u-1"}}
	reader := fake.NewClientBuilder().WithScheme(k8s.Scheme()).WithObjects(request, nabsl).Build()
	flags := &operator.Flags{OADPNamespace: OADPNamespace}
	described, err := describeApproval(t.Context(), flags, reader, operatortest.WorkflowFor(t, contract.KindApproval), offsite)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"Namespace: shop", "Name: offsite", "Request: shop-offsite-1", "Version: 999", "State: rejected",
		"Provider: aws", "Bucket: b", "Prefix: nightly", "Changes: - objectStorage.bucket: a", "+ objectStorage.bucket: b",
		"Last decision: reject", "Decided by: bob", "Decided at: 1970-01-01T00:00:00Z", "Reason: not ours",
		"Workflow: west/approval/shop/offsite/u-1", "Workflow status: Running", "Waiting: **Pending**", "", "- a", "+ b",
		"Condition ClusterAdminApproved: False (BslSpecRejected)",
	}, operatortest.Lines(operatortest.Printed(t, "table", described, described.Print)))

	var read map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(operatortest.Printed(t, "yaml", described, nil)), &read))
	assert.Equal(t, "rejected", read["state"])
	assert.Equal(t, "west/approval/shop/offsite/u-1", read["workflow"].(map[string]any)["id"])
}

// An approver has no right to the tenant's object, and sees the rest.
func TestADescribedApprovalNeedsNotTheLocation(t *testing.T) {
	request := asked(bucket("a"), nil, oadpv1alpha1.ReasonBSLSpecApprovalPending)
	reader := interceptor.NewClient(fake.NewClientBuilder().WithScheme(k8s.Scheme()).WithObjects(request).Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("forbidden")
		},
	})
	described, err := describeApproval(t.Context(), &operator.Flags{OADPNamespace: OADPNamespace}, reader, nil, offsite)
	require.NoError(t, err)
	assert.Equal(t, operator.DescribedWorkflow{Status: "unknown: forbidden"}, described.(*describedApproval).Workflow)
}

func usedLocation() *oadpv1alpha1.NonAdminBackupStorageLocation {
	return &oadpv1alpha1.NonAdminBackupStorageLocation{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "offsite", UID: "u-1", CreationTimestamp: metav1.NewTime(time.Now().Add(-3 * time.Hour)),
		},
		Spec: oadpv1alpha1.NonAdminBackupStorageLocationSpec{BackupStorageLocationSpec: bucket("a")},
		Status: oadpv1alpha1.NonAdminBackupStorageLocationStatus{
			Phase: "Created",
			Conditions: []metav1.Condition{{
				Type: "ClusterAdminApproved", Status: "True", Reason: oadpv1alpha1.ReasonBSLSpecApproved, Message: "fine",
			}},
			VeleroBackupStorageLocation: &oadpv1alpha1.VeleroBackupStorageLocation{
				Namespace: OADPNamespace, Name: "shop-offsite-1",
				Status: &velerov1.BackupStorageLocationStatus{Phase: "Unavailable", Message: "wrong\nkey"},
			},
		},
	}
}

func TestStorageLocationsAreListed(t *testing.T) {
	fresh := &oadpv1alpha1.NonAdminBackupStorageLocation{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "new", UID: "u-2", CreationTimestamp: metav1.NewTime(time.Now().Add(-3 * time.Hour)),
	}}
	running := map[string]bool{"west/nabsl/shop/offsite/u-1": true, "west/nab/shop/new/u-2": true}
	list := &oadpv1alpha1.NonAdminBackupStorageLocationList{
		Items: []oadpv1alpha1.NonAdminBackupStorageLocation{*usedLocation(), *fresh},
	}
	rows := operator.RowsOf(list, contract.KindLocation, "west", running, locationRow)
	text := operatortest.Printed(t, "table", rows, func(out io.Writer) error { return operator.PrintRows(out, locationColumns, rows) })
	assert.Equal(t, []string{
		"NAMESPACE NAME PHASE APPROVED VELERO-PHASE AGE WORKFLOW",
		"shop offsite Created approved Unavailable 3h running",
		"shop new 3h none",
	}, operatortest.Lines(text))
	assert.Equal(t, "unknown", operator.RowsOf(list, contract.KindLocation, "west", nil, locationRow)[1].Workflow)
	assert.Contains(t, operatortest.Printed(t, "json", rows, nil), `"approved": "approved"`)
}

func TestADescribedLocationIsATable(t *testing.T) {
	reader := fake.NewClientBuilder().WithScheme(k8s.Scheme()).WithObjects(usedLocation()).Build()
	described, err := Locations.Describe(t.Context(), nil, reader, operatortest.WorkflowFor(t, contract.KindLocation), offsite)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"Namespace: shop", "Name: offsite", "Phase: Created", "Approved: approved", "Provider: aws", "Bucket: a", "Prefix: nightly",
		"Credential: Secret keys, key cloud", "Velero location: openshift-adp/shop-offsite-1", "Velero phase: Unavailable",
		"Velero message: wrong", "key", "Workflow: west/nabsl/shop/offsite/u-1", "Workflow status: Running",
		"Waiting: **Pending**", "", "- a", "+ b", "Condition ClusterAdminApproved: True (BslSpecApproved) fine",
	}, operatortest.Lines(operatortest.Printed(t, "table", described, described.Print)))

	_, err = Locations.Describe(t.Context(), nil, reader, nil, types.NamespacedName{Namespace: "shop", Name: "none"})
	require.ErrorContains(t, err, "get NonAdminBackupStorageLocation shop/none: ")
}
