package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	require.NoError(o.t, o.client.Get(o.t.Context(), types.NamespacedName{Namespace: oadpNamespace, Name: requestName}, request))
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
		client: o.client, oadpNamespace: oadpNamespace, location: offsite, decision: decision, reason: "ticket 4711",
		timeout: 10 * time.Second, interval: time.Millisecond, shown: func(*decided) error { return nil },
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
		Decision: string(decision), DecidedBy: request.Annotations["holdfast.dev/decided-by"], ObservedGeneration: request.Generation,
	}
	request.Status.ObservedGeneration = request.Generation
	return true
}

func TestADecisionIsWrittenInOnePatchAndItsOutcomeAwaited(t *testing.T) {
	pending, approved := oadpv1alpha1.ReasonBSLSpecApprovalPending, oadpv1alpha1.ReasonBSLSpecApproved
	tests := map[string]struct {
		request  *approvalRequest
		decision contract.Decision
		spec     string
		reason   string
		now      contract.Approval
	}{
		"approve a first request": {
			asked(bucket("a"), nil, pending), "approve", `{"pendingApprovalDecision":"approve"}`, "openshift.io/oadp-approval-reason", "approved",
		},
		"approve what was rejected": {
			asked(bucket("a"), nil, oadpv1alpha1.ReasonBSLSpecRejected), "approve", `{"pendingApprovalDecision":"approve"}`,
			"openshift.io/oadp-approval-reason", "approved",
		},
		"reject a change": {
			asked(bucket("b"), bucket("a"), pending), "reject", `{"pendingApprovalDecision":"reject"}`, "openshift.io/oadp-rejection-reason", "rejected",
		},
		"revoke": {
			asked(nil, bucket("a"), approved), "revoke", `{"revokeApprovedSpec":true}`, "holdfast.dev/revocation-reason", "pending",
		},
		"revoke while a change is pending": {
			asked(bucket("b"), bucket("a"), pending), "revoke", `{"revokeApprovedSpec":true}`, "holdfast.dev/revocation-reason", "pending",
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			test.request.Annotations = map[string]string{
				"holdfast.dev/decided-by-temporal-identity": "carl@cli", "holdfast.dev/decision-id": "1", "example.com/kept": "yes",
				"openshift.io/oadp-approval-reason": "old", "openshift.io/oadp-rejection-reason": "old", "holdfast.dev/revocation-reason": "old",
			}
			o := newOffice(t, test.request)
			version := o.request().ResourceVersion
			o.worker = actsOn
			d := o.decider(test.decision)
			var before *decided
			d.shown = func(about *decided) error {
				assert.Empty(t, o.patches, "shown before anything is written")
				before = about
				return nil
			}
			result, err := d.run(t.Context())
			require.NoError(t, err)
			assert.Same(t, before, result)
			assert.Equal(t, "ann", result.By)
			assert.Equal(t, version, result.About.ResourceVersion)
			assert.True(t, result.ActedOn)
			assert.Equal(t, test.now, result.Now.State)

			require.Len(t, o.patches, 1)
			assert.Contains(t, o.patches[0], `"spec":`+test.spec)
			assert.Contains(t, o.patches[0], `"resourceVersion":"`+version+`"`)
			assert.Contains(t, o.patches[0], `"uid":"r-1"`)
			assert.Equal(t, map[string]string{
				test.reason: "ticket 4711", "holdfast.dev/decided-by": "ann", "example.com/kept": "yes",
			}, o.request().Annotations)
		})
	}
}

func TestWhatCannotBeDecidedIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	pending, approved, rejected := oadpv1alpha1.ReasonBSLSpecApprovalPending, oadpv1alpha1.ReasonBSLSpecApproved, oadpv1alpha1.ReasonBSLSpecRejected
	stored := func(request *approvalRequest, decision oadpv1alpha1.ApprovalDecision, revoke bool) *approvalRequest {
		request.Generation = 2
		request.Spec.PendingApprovalDecision, request.Spec.RevokeApprovedSpec = decision, revoke
		return request
	}
	tests := map[string]struct {
		request  *approvalRequest
		decision contract.Decision
		want     string
	}{
		"approve, nothing pending":        {asked(nil, bucket("a"), approved), "approve", "is approved already"},
		"approve, nothing asked":          {asked(nil, nil, pending), "approve", "nothing is pending"},
		"reject, nothing pending":         {asked(nil, bucket("a"), approved), "reject", "nothing is pending; what is approved can be taken back with holdfast revoke"},
		"reject, nothing asked":           {asked(nil, nil, pending), "reject", "nothing is pending"},
		"reject, rejected":                {asked(bucket("a"), nil, rejected), "reject", "is rejected already"},
		"revoke, nothing approved":        {asked(bucket("a"), nil, pending), "revoke", "nothing is approved that could be revoked"},
		"approve, approve stored":         {stored(asked(bucket("a"), nil, pending), "approve", false), "approve", "approve is stored already"},
		"revoke, revoke stored":           {stored(asked(nil, bucket("a"), approved), "pending", true), "revoke", "revoke is stored already"},
		"approve, revoke stored":          {stored(asked(bucket("b"), bucket("a"), pending), "pending", true), "approve", "a revocation is stored"},
		"reject, revoke stored":           {stored(asked(bucket("b"), bucket("a"), pending), "pending", true), "reject", "a revocation is stored"},
		"another location's":              {named(asked(bucket("a"), nil, pending), "shop", "other", 1), "approve", "shop/offsite has no approval request"},
		"changed since it was looked at":  {asked(bucket("a"), nil, pending), "approve", "changed since version 1: look again with holdfast list approvals"},
		"changed, and nothing is pending": {asked(nil, bucket("a"), approved), "approve", "changed since version 1: look again"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			o := newOffice(t, test.request)
			d := o.decider(test.decision)
			d.shown = func(*decided) error { return errors.New("nothing must be shown") }
			if strings.HasPrefix(title, "changed") {
				d.resourceVersion = "1"
			}
			result, err := d.run(t.Context())
			require.ErrorContains(t, err, test.want)
			assert.Contains(t, err.Error(), "shop/offsite")
			assert.Nil(t, result)
			assert.Empty(t, o.patches)
		})
	}
}

// Another mind may be made up while the worker is away.
func TestADecisionThatWasNotActedOnCanBeReplaced(t *testing.T) {
	request := asked(bucket("a"), nil, oadpv1alpha1.ReasonBSLSpecApprovalPending)
	request.Generation, request.Spec.PendingApprovalDecision = 2, "approve"
	o := newOffice(t, request)
	d := o.decider("reject")
	d.resourceVersion = o.request().ResourceVersion
	o.worker = func(request *approvalRequest) bool { return len(o.patches) > 0 && actsOn(request) }
	result, err := d.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, contract.ApprovalRejected, result.Now.State)
}

// The tenant has changed an approved location, and the worker has not yet set the decision back.
func TestTheSameDecisionAgainWaitsForTheReset(t *testing.T) {
	again := func() *approvalRequest {
		request := asked(bucket("b"), bucket("a"), oadpv1alpha1.ReasonBSLSpecApprovalPending)
		request.Spec.PendingApprovalDecision = "approve"
		return request
	}
	t.Run("and then counts", func(t *testing.T) {
		o := newOffice(t, again())
		looks := 0
		o.worker = func(request *approvalRequest) bool {
			if looks++; looks == 3 {
				assert.Empty(t, o.patches)
				request.Spec.PendingApprovalDecision, request.Generation = "pending", 2
				return true
			}
			return actsOn(request)
		}
		result, err := o.decider("approve").run(t.Context())
		require.NoError(t, err)
		assert.Equal(t, contract.ApprovalApproved, result.Now.State)
		assert.Equal(t, "b", result.Now.Bucket)
		require.Len(t, o.patches, 1)
		assert.Contains(t, o.patches[0], `"spec":{"pendingApprovalDecision":"approve"}`)
	})
	t.Run("and gives up without having decided", func(t *testing.T) {
		o := newOffice(t, again())
		d := o.decider("approve")
		d.timeout = 20 * time.Millisecond
		result, err := d.run(t.Context())
		require.ErrorContains(t, err, "still holds the earlier decision")
		require.ErrorContains(t, err, "nothing was decided")
		assert.Nil(t, result)
		assert.Empty(t, o.patches)
	})
	t.Run("unless the tenant changes it once more", func(t *testing.T) {
		o := newOffice(t, again())
		o.worker = func(request *approvalRequest) bool {
			if request.Generation == 2 {
				return false
			}
			request.Status.VeleroBackupStorageLocationApprovalRequest.PendingSpec = bucket("c")
			request.Spec.PendingApprovalDecision, request.Generation = "pending", 2
			return true
		}
		_, err := o.decider("approve").run(t.Context())
		require.ErrorContains(t, err, "changed meanwhile: look again with holdfast list approvals")
		assert.Empty(t, o.patches)
	})
	t.Run("unless somebody else decides", func(t *testing.T) {
		o := newOffice(t, again())
		o.worker = func(request *approvalRequest) bool {
			request.Spec.PendingApprovalDecision, request.Generation = "reject", 2
			return true
		}
		_, err := o.decider("approve").run(t.Context())
		require.ErrorContains(t, err, "somebody else has decided meanwhile (reject): look again")
		assert.Empty(t, o.patches)
	})
	t.Run("also of a revocation", func(t *testing.T) {
		request := asked(bucket("a"), nil, oadpv1alpha1.ReasonBSLSpecApprovalPending)
		request.Spec.RevokeApprovedSpec = true // acted on, and not yet set back
		o := newOffice(t, request)
		d := o.decider("approve")
		d.timeout = 20 * time.Millisecond
		_, err := d.run(t.Context())
		require.ErrorContains(t, err, "still holds the earlier decision", "it would be revoked again, not approved")
		assert.Empty(t, o.patches)
	})
}

func TestARequestThatChangesWhileItIsDecidedIsNotDecided(t *testing.T) {
	o := newOffice(t, asked(bucket("a"), nil, oadpv1alpha1.ReasonBSLSpecApprovalPending))
	o.beforePatch = func() {
		o.change(func(r *approvalRequest) { r.Status.VeleroBackupStorageLocationApprovalRequest.PendingSpec = bucket("evil") })
	}
	result, err := o.decider("approve").run(t.Context())
	require.ErrorContains(t, err, "shop/offsite: changed just now, nothing was decided: look again with holdfast list approvals")
	assert.Nil(t, result)
	assert.Equal(t, oadpv1alpha1.ApprovalDecisionPending, o.request().Spec.PendingApprovalDecision)
}

func TestADecisionThatIsNotActedOnIsAnError(t *testing.T) {
	tests := map[string]struct {
		worker func(o *office) func(*approvalRequest) bool
		want   string
	}{
		"in time": {
			func(*office) func(*approvalRequest) bool { return func(*approvalRequest) bool { return false } },
			"the decision is stored, and will be acted on, but was not yet (timed out): see whether holdfast-worker runs",
		},
		"because the tenant has changed the spec": {
			func(*office) func(*approvalRequest) bool {
				return func(r *approvalRequest) bool {
					if r.Generation == 1 || r.Status.ObservedGeneration == r.Generation {
						return false
					}
					r.Status.VeleroBackupStorageLocationApprovalRequest.PendingSpec = bucket("c")
					r.Status.ObservedGeneration = r.Generation
					return true
				}
			},
			"the decision was not acted on, because what it was about has changed: look again",
		},
		"because somebody else has decided": {
			func(*office) func(*approvalRequest) bool {
				return func(r *approvalRequest) bool {
					if r.Generation != 2 {
						return false
					}
					r.Generation, r.Spec.PendingApprovalDecision = 3, "reject"
					r.Annotations["holdfast.dev/decided-by"] = "bob"
					return actsOn(r)
				}
			},
			"overtaken by another decision, reject by bob: look again",
		},
		"because the change of somebody else is stored too": {
			func(*office) func(*approvalRequest) bool {
				return func(r *approvalRequest) bool {
					if r.Generation != 2 {
						return false
					}
					r.Generation, r.Spec.PendingApprovalDecision = 3, "pending"
					return true
				}
			},
			"something else has changed the approval request since the decision was stored: look again",
		},
		"because the request goes": {
			func(o *office) func(*approvalRequest) bool {
				return func(r *approvalRequest) bool {
					if r.Generation == 2 {
						require.NoError(o.t, o.client.Delete(o.t.Context(), r.DeepCopy()))
					}
					return false
				}
			},
			"the approval request is gone",
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			o := newOffice(t, asked(bucket("a"), nil, oadpv1alpha1.ReasonBSLSpecApprovalPending))
			o.worker = test.worker(o)
			d := o.decider("approve")
			d.timeout = 50 * time.Millisecond
			if title == "because the request goes" || strings.HasSuffix(test.want, "look again") && !strings.Contains(title, "stored") {
				d.timeout = time.Minute // not a matter of time
			}
			result, err := d.run(t.Context())
			require.ErrorContains(t, err, test.want)
			assert.NotContains(t, err.Error(), "\n")
			require.NotNil(t, result, "it is stored")
			assert.False(t, result.ActedOn)
			assert.Len(t, o.patches, 1)
		})
	}
}

func TestAnOutageWhileTheOutcomeIsAwaitedIsSeenThrough(t *testing.T) {
	o := newOffice(t, asked(bucket("a"), nil, oadpv1alpha1.ReasonBSLSpecApprovalPending))
	o.worker = actsOn
	refused := 0
	flaky := interceptor.NewClient(o.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if refused++; refused < 5 {
				return apierrors.NewServiceUnavailable("starting")
			}
			return c.Get(ctx, key, object, opts...)
		},
	})
	d := o.decider("approve")
	d.client = flaky
	result, err := d.run(t.Context())
	require.NoError(t, err)
	assert.True(t, result.ActedOn)
	assert.Equal(t, 5, refused)
}

func TestWhoIsUnknownDecidesNothing(t *testing.T) {
	o := newOffice(t, asked(bucket("a"), nil, oadpv1alpha1.ReasonBSLSpecApprovalPending))
	d := o.decider("approve")
	d.client = interceptor.NewClient(o.client, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewForbidden(authenticationv1.Resource("selfsubjectreviews"), "", errors.New("no"))
		},
	})
	_, err := d.run(t.Context())
	require.ErrorContains(t, err, "find out your username (SelfSubjectReview): ")
	assert.Empty(t, o.patches)

	d.client = interceptor.NewClient(o.client, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return nil },
	})
	_, err = d.run(t.Context())
	require.ErrorContains(t, err, "the API server names none")
	assert.Empty(t, o.patches)
}

func TestAnInterruptEndsTheWait(t *testing.T) {
	o := newOffice(t, asked(bucket("a"), nil, oadpv1alpha1.ReasonBSLSpecApprovalPending))
	ctx, cancel := context.WithCancel(t.Context())
	o.worker = func(r *approvalRequest) bool {
		if r.Generation == 2 {
			cancel()
		}
		return false
	}
	_, err := o.decider("approve").run(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestAnotherRequestOfTheSameNameIsNotTheOneDecided(t *testing.T) {
	o := newOffice(t, asked(bucket("a"), nil, oadpv1alpha1.ReasonBSLSpecApprovalPending))
	o.worker = func(r *approvalRequest) bool {
		if r.Generation == 2 && r.UID == "r-1" {
			require.NoError(t, o.client.Delete(t.Context(), r.DeepCopy()))
			other := asked(bucket("a"), nil, oadpv1alpha1.ReasonBSLSpecApprovalPending)
			other.UID, other.CreationTimestamp = "r-2", metav1.Now()
			require.NoError(t, o.client.Create(t.Context(), other))
		}
		return false
	}
	_, err := o.decider("approve").run(t.Context())
	require.ErrorContains(t, err, "the approval request is gone")
}
