package location

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// office is a cluster with one approval request in it and, beside the administrator, somebody who acts.
type office struct {
	t      *testing.T
	client client.WithWatch
	// patches are what the administrator's client sent.
	patches []string
	// worker changes the request whenever the administrator looks at it; it says whether it did.
	worker func(*approvalRequest) bool
	// beforePatch runs while the administrator's patch is on its way.
	beforePatch func()
}

func newOffice(t *testing.T, request *approvalRequest) *office {
	t.Helper()
	o := &office{t: t, worker: func(*approvalRequest) bool { return false }, beforePatch: func() {}}
	inner := fake.NewClientBuilder().WithScheme(k8s.Scheme()).WithObjects(request).Build()
	o.client = interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, _ ...client.CreateOption) error {
			if review, ok := object.(*authenticationv1.SelfSubjectReview); ok {
				review.Status.UserInfo.Username = "ann"
				return nil
			}
			return c.Create(ctx, object)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
			request := &approvalRequest{}
			if err := c.Get(ctx, key, request); err != nil {
				return err
			}
			if o.worker(request) {
				require.NoError(t, c.Update(ctx, request))
			}
			return c.Get(ctx, key, object)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
			o.beforePatch()
			data, err := patch.Data(object)
			require.NoError(t, err)
			assert.Equal(t, types.MergePatchType, patch.Type())
			o.patches = append(o.patches, string(data))
			if err := c.Patch(ctx, object, client.RawPatch(patch.Type(), data)); err != nil {
				return err
			}
			object.SetGeneration(object.GetGeneration() + 1) // every decision changes the spec
			return c.Update(ctx, object)
		},
	})
	return o
}

func (o *office) request() *approvalRequest {
	o.t.Helper()
	request := &approvalRequest{}
	require.NoError(o.t, o.client.Get(o.t.Context(), types.NamespacedName{Namespace: OADPNamespace, Name: requestName}, request))
	return request
}

func (o *office) change(alter func(*approvalRequest)) {
	o.t.Helper()
	request := o.request()
	alter(request)
	require.NoError(o.t, o.client.Update(o.t.Context(), request))
}

func (o *office) decider(decision contract.Decision) *decider {
	return &decider{
		client: o.client, oadpNamespace: OADPNamespace, location: offsite, decision: decision, reason: "ticket 4711",
		timeout: time.Minute, interval: time.Millisecond, shown: func(*decided) error { return nil },
	}
}

// actsOn is a worker that acts on the decision that it finds, once.
func actsOn(request *approvalRequest) bool {
	decision := storedDecision(request)
	if decision == "" {
		return false
	}
	status := request.Status.VeleroBackupStorageLocationApprovalRequest
	switch decision {
	case contract.DecisionApprove:
		status.ApprovedSpec, status.PendingSpec = status.PendingSpec, nil
		condition(request, oadpv1alpha1.ReasonBSLSpecApproved)
	case contract.DecisionReject:
		condition(request, oadpv1alpha1.ReasonBSLSpecRejected)
	case contract.DecisionRevoke:
		status.PendingSpec, status.ApprovedSpec = status.ApprovedSpec, nil
		condition(request, oadpv1alpha1.ReasonBSLSpecApprovalPending)
	}
	request.Status.LastDecision = &oadpv1alpha1.ApprovalRecord{
		Decision: oadpv1alpha1.RecordedDecision(decision), DecidedBy: request.Annotations["holdfast.dev/decided-by"], ObservedGeneration: request.Generation,
	}
	request.Status.ObservedGeneration = request.Generation
	return true
}
