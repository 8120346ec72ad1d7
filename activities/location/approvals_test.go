package location_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/location"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// awaiting returns a world in which a location waits for a decision, and a step that decides about it.
func awaiting(t *testing.T, decision contract.Decision) (*fake.World, contract.DecisionStep) {
	t.Helper()
	w := newPlace(t, true)
	locate(t, w, contract.AdmitLocation.Name)
	view := advance(t, w)
	require.True(t, view.HasPending)
	return w, contract.DecisionStep{
		Ref: fake.Ref(activitytest.Name), UpdateID: "one",
		Request: contract.DecisionRequest{Decision: decision, Reason: "ticket 42", ResourceVersion: view.ResourceVersion},
	}
}

func TestADecisionIsWrittenAsKubectlWould(t *testing.T) {
	reasons := map[contract.Decision]string{
		"approve": oadpv1alpha1.ApprovalReasonAnnotation, "reject": oadpv1alpha1.RejectionReasonAnnotation,
	}
	for decision, annotation := range reasons {
		t.Run(string(decision), func(t *testing.T) {
			w, step := awaiting(t, decision)
			w.Decide(activitytest.Name, func(r *oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest) {
				for _, each := range location.DecisionAnnotations() {
					r.Annotations[each] = "of somebody before"
				}
			})
			step.Request.ResourceVersion = w.ApprovalRequest(activitytest.Name).ResourceVersion
			var view contract.ApprovalView
			require.NoError(t, locationActivity(t, w, contract.DecideApproval.Name, step, &view))
			assert.True(t, view.Fresh)
			assert.Equal(t, string(decision), view.Decision)
			got := w.ApprovalRequest(activitytest.Name).Annotations
			assert.Equal(t, "ticket 42", got[annotation])
			assert.Equal(t, fake.Identity, got[oadpv1alpha1.DecidedByTemporalAnnotation])
			for _, each := range location.DecisionAnnotations() {
				assert.NotEqual(t, "of somebody before", got[each], each)
			}

			before := w.ApprovalRequest(activitytest.Name).ResourceVersion
			require.NoError(t, locationActivity(t, w, contract.DecideApproval.Name, step, &view), "an attempt whose answer was lost")
			assert.Equal(t, before, w.ApprovalRequest(activitytest.Name).ResourceVersion)

			another := step
			another.UpdateID = "two"
			activitytest.RequireError(t, locationActivity(t, w, contract.DecideApproval.Name, another, nil), contract.ErrorLookAgain, false)
		})
	}
}

func TestADecisionThatCannotBePutDownToAnybodyIsTriedAgain(t *testing.T) {
	w, step := awaiting(t, "approve")
	w.Locations.Identity = func(context.Context, contract.DecisionStep) (string, error) { return "", fake.ErrAway }
	activitytest.RequireError(t, locationActivity(t, w, contract.DecideApproval.Name, step, nil), contract.ErrorKubernetes, true)
	assert.EqualValues(t, "pending", w.ApprovalRequest(activitytest.Name).Spec.PendingApprovalDecision)
}

// Somebody's decision of the very same kind was written a moment ago: ours would change nothing but its author.
func TestADecisionIsNotPutDownToSomebodyElse(t *testing.T) {
	w, step := awaiting(t, "approve")
	w.Decide(activitytest.Name, func(r *oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest) {
		r.Spec.PendingApprovalDecision = oadpv1alpha1.ApprovalDecisionApprove
	})
	step.Request.ResourceVersion = w.ApprovalRequest(activitytest.Name).ResourceVersion
	activitytest.RequireError(t, locationActivity(t, w, contract.DecideApproval.Name, step, nil), contract.ErrorLookAgain, false)
}

// An approval advances only from what is there: a write that meets a newer one is decided again.
func TestAnAdvanceMeetsANewerDecision(t *testing.T) {
	w, _ := awaiting(t, "approve")
	w.Decide(activitytest.Name, func(r *oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest) {
		r.Spec.PendingApprovalDecision = oadpv1alpha1.ApprovalDecisionApprove
	})
	w.Fail(func(verb string, _ client.Object) error {
		if verb == "patch status" {
			w.Fail(nil)
			w.Decide(activitytest.Name, func(r *oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest) {
				r.Spec.PendingApprovalDecision = oadpv1alpha1.ApprovalDecisionReject
			})
		}
		return nil
	})
	view := advance(t, w)
	assert.Equal(t, contract.ApprovalRejected, view.State())
	assert.False(t, view.HasApproved)
	assert.EqualValues(t, "reject", view.Last.Decision)
}

func TestWhoDecidedIsRecordedAsFarAsItIsKnown(t *testing.T) {
	tests := map[string]struct {
		annotations map[string]string
		want        string
	}{
		"kubectl":          {nil, "kubectl, see the API server's audit log"},
		"holdfast approve": {map[string]string{oadpv1alpha1.DecidedByAnnotation: "alice"}, "alice"},
		"Temporal":         {map[string]string{oadpv1alpha1.DecidedByTemporalAnnotation: "1234@host"}, "Temporal identity 1234@host, not verified"},
		"both: the one that was not verified": {map[string]string{
			oadpv1alpha1.DecidedByAnnotation: "alice", oadpv1alpha1.DecidedByTemporalAnnotation: "1234@host",
		}, "Temporal identity 1234@host, not verified"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w, _ := awaiting(t, "approve")
			w.Decide(activitytest.Name, func(r *oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest) {
				r.Spec.PendingApprovalDecision = oadpv1alpha1.ApprovalDecisionApprove
				for key, value := range test.annotations {
					r.Annotations[key] = value
				}
				r.Annotations[oadpv1alpha1.ApprovalReasonAnnotation] = "ticket 42"
			})
			view := advance(t, w)
			assert.Equal(t, test.want, view.Last.By)
			assert.Equal(t, "ticket 42", view.Last.Reason)
		})
	}
}
