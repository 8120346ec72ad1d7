package location

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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

func TestADecisionThatIsNotActedOnIsAnError(t *testing.T) {
	tests := map[string]struct {
		worker func(o *office) func(*approvalRequest) bool
		want   string
	}{
		"in time": {
			func(*office) func(*approvalRequest) bool { return func(*approvalRequest) bool { return false } },
			"the decision is stored, but was not acted on yet (timed out). Check that holdfast-worker runs",
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
			"the decision was not acted on, because what it was about has changed: read it again",
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
			"overtaken by another decision, reject by bob: read it again",
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
			"something else has changed the approval request since the decision was stored: read it again",
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
			if title == "because the request goes" || strings.HasSuffix(test.want, "read it again") && !strings.Contains(title, "stored") {
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
