package deploy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// change is a patch by somebody.
type change struct{ user, patch string }

func (a *approvals) decidedByIsTrue(ctx context.Context, t *testing.T) {
	const (
		approve  = `{"spec":{"pendingApprovalDecision":"approve"}}`
		reject   = `{"spec":{"pendingApprovalDecision":"reject"}}`
		temporal = `{"metadata":{"annotations":{"holdfast.dev/decided-by-temporal-identity":"carl@cli","holdfast.dev/decision-id":"1"}},` +
			`"spec":{"pendingApprovalDecision":"reject"}}`
		reset = `{"metadata":{"annotations":{"holdfast.dev/decided-by":null,"holdfast.dev/decided-by-temporal-identity":null,` +
			`"holdfast.dev/decision-id":null}},"spec":{"pendingApprovalDecision":"pending","revokeApprovedSpec":false}}`
		unsigned = `{"metadata":{"annotations":{"holdfast.dev/decided-by":null}},"spec":{"pendingApprovalDecision":"reject"}}`
	)
	by := func(user, decision string) string {
		return `{"metadata":{"annotations":{"holdfast.dev/decided-by":"` + user + `"}},"spec":{"pendingApprovalDecision":"` + decision + `"}}`
	}
	annotate := func(key, value string) string { return `{"metadata":{"annotations":{"` + key + `":` + value + `}}}` }
	const approvalReason = "openshift.io/oadp-approval-reason"
	because := func(decision, reason string) string {
		return `{"metadata":{"annotations":{"` + approvalReason + `":"` + reason + `"}},"spec":{"pendingApprovalDecision":"` + decision + `"}}`
	}
	const notTheirs = "can only be changed by users who may delete it"
	const ownName = `annotation holdfast.dev/decided-by can only be set to your own username, `
	tests := map[string]struct {
		earlier []change
		change  change
		want    string // of the refusal; none if empty
	}{
		"a plain edit":                       {nil, change{"ann", approve}, ""},
		"in one's own name":                  {nil, change{"ann", by("ann", "approve")}, ""},
		"in another's name":                  {nil, change{"ann", by("bea", "approve")}, ownName + "ann; set it to that or remove it"},
		"an administrator of the cluster":    {nil, change{"admin", by("ann", "approve")}, ownName + "admin"},
		"the worker in somebody's name":      {nil, change{"worker", by("ann", "approve")}, ownName},
		"in nobody's name":                   {nil, change{"ann", by("", "approve")}, ownName},
		"after another, in one's own name":   {[]change{{"bea", by("bea", "approve")}}, change{"ann", by("ann", "reject")}, ""},
		"the same person again":              {[]change{{"ann", by("ann", "approve")}}, change{"ann", reject}, ""},
		"after another, whose name stays":    {[]change{{"bea", by("bea", "approve")}}, change{"ann", reject}, "names bea, who made an earlier decision; in the same change, set it to ann or remove it"},
		"after another, whose name goes":     {[]change{{"bea", by("bea", "approve")}}, change{"ann", unsigned}, ""},
		"the worker, and the name stays":     {[]change{{"bea", by("bea", "approve")}}, change{"worker", `{"spec":{"pendingApprovalDecision":"pending"}}`}, "names bea"},
		"the worker sets it back":            {[]change{{"bea", by("bea", "approve")}}, change{"worker", reset}, ""},
		"to take over another's decision":    {[]change{{"bea", by("bea", "approve")}}, change{"ann", annotate("holdfast.dev/decided-by", `"ann"`)}, "can only be set together with a decision"},
		"to take over an unsigned decision":  {[]change{{"bea", approve}}, change{"ann", annotate("holdfast.dev/decided-by", `"ann"`)}, "can only be set together with a decision"},
		"to take one's name off":             {[]change{{"bea", by("bea", "approve")}}, change{"bea", annotate("holdfast.dev/decided-by", "null")}, ""},
		"a label after any decision":         {[]change{{"bea", by("bea", "approve")}}, change{"admin", `{"metadata":{"labels":{"a":"b"}}}`}, ""},
		"a label, by an approver":            {nil, change{"ann", `{"metadata":{"labels":{"a":"b"}}}`}, notTheirs},
		"a label less":                       {[]change{{"admin", `{"metadata":{"labels":{"a":"b"}}}`}}, change{"ann", `{"metadata":{"labels":{"a":null}}}`}, notTheirs},
		"a finalizer":                        {nil, change{"ann", `{"metadata":{"finalizers":["example.com/hold"]}}`}, notTheirs},
		"a finalizer, by who may delete":     {nil, change{"admin", `{"metadata":{"finalizers":["example.com/hold"]}}`}, ""},
		"an owner, to have it deleted":       {nil, change{"ann", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"1"}]}}`}, notTheirs},
		"with a decision, not more":          {nil, change{"ann", `{"metadata":{"labels":{"a":"b"}},"spec":{"pendingApprovalDecision":"approve"}}`}, notTheirs},
		"another annotation":                 {nil, change{"ann", annotate("example.com/a", `"b"`)}, notTheirs},
		"another annotation less":            {[]change{{"admin", annotate("example.com/a", `"b"`)}}, change{"ann", annotate("example.com/a", "null")}, notTheirs},
		"a reason with its decision":         {nil, change{"ann", because("approve", "ticket 1")}, ""},
		"a reason for another's decision":    {[]change{{"bea", because("approve", "ticket 1")}}, change{"ann", annotate(approvalReason, `"none"`)}, "can only be set together with the decision"},
		"a reason taken off":                 {[]change{{"bea", because("approve", "ticket 1")}}, change{"ann", annotate(approvalReason, "null")}, "can only be set together with the decision"},
		"the worker for Temporal":            {nil, change{"worker", temporal}, ""},
		"a person for Temporal":              {nil, change{"ann", temporal}, "can only be set by holdfast-worker"},
		"a namesake of the worker":           {nil, change{"namesake", temporal}, "can only be set by holdfast-worker"},
		"the mark of a Temporal decision":    {nil, change{"ann", annotate("holdfast.dev/decision-id", `"2"`)}, "can only be set by holdfast-worker"},
		"another Temporal identity":          {[]change{{"worker", temporal}}, change{"ann", annotate("holdfast.dev/decided-by-temporal-identity", `"dora"`)}, "can only be set by holdfast-worker"},
		"after Temporal, which stays":        {[]change{{"worker", temporal}}, change{"ann", approve}, "speaks of an earlier decision; remove it in the same change"},
		"after Temporal, signed, it stays":   {[]change{{"worker", temporal}}, change{"ann", by("ann", "approve")}, "speaks of an earlier decision"},
		"after Temporal, which goes":         {[]change{{"worker", temporal}}, change{"ann", strings.Replace(reset, "pending", "approve", 1)}, ""},
		"a revocation counts as a decision":  {[]change{{"bea", by("bea", "approve")}}, change{"ann", `{"spec":{"revokeApprovedSpec":true}}`}, "names bea"},
		"other marks remain after any write": {[]change{{"worker", temporal}}, change{"admin", annotate("example.com/a", `"b"`)}, ""},
	}
	number := 0
	for title, test := range tests {
		number++
		request := a.request(ctx, t, fmt.Sprintf("decided-by-%d", number))
		t.Run(title, func(t *testing.T) {
			for _, earlier := range test.earlier {
				require.NoError(t, a.patch(ctx, earlier.user, request, earlier.patch))
			}
			err := a.patch(ctx, test.change.user, request, test.change.patch)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			assert.ErrorContains(t, err, test.want)
		})
	}
	t.Run("a request is not born decided", func(t *testing.T) {
		born := &approvalRequest{ObjectMeta: metav1.ObjectMeta{
			Namespace: env.OADPNamespace, Name: "born", Annotations: map[string]string{"holdfast.dev/decided-by": "ann"},
		}}
		require.ErrorContains(t, a.users["admin"].Create(ctx, born), ownName)
		born.Annotations["holdfast.dev/decided-by"] = "admin"
		require.ErrorContains(t, a.users["admin"].Create(ctx, born), "can only be set together with a decision")
		born.Spec.PendingApprovalDecision = oadpv1alpha1.ApprovalDecisionApprove
		require.NoError(t, a.users["admin"].Create(ctx, born))
	})
	t.Run("kubectl shows the message", func(t *testing.T) {
		_, err := kubectl(ctx, t, a.stack, env.Admin, "annotate", "nabslapprovalrequest", "-n", env.OADPNamespace, "born", "--overwrite",
			"holdfast.dev/decided-by=ann")
		require.ErrorContains(t, err, ownName+"admin; set it to that or remove it")
	})
}
