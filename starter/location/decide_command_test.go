package location

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/operator/operatortest"
	"holdfast.dev/holdfast/workflows/contract"
)

func decidedAs(t *testing.T, output string, request *approvalRequest, decision contract.Decision) string {
	t.Helper()
	o := newOffice(t, request)
	o.worker = actsOn
	flags := &DecideFlags{Flags: operator.Flags{Output: output, OADPNamespace: OADPNamespace}}
	var out bytes.Buffer
	require.NoError(t, flags.decide(t.Context(), o.decider(decision), &out))
	return out.String()
}

func TestADecisionTellsWhatItIsAboutAndWhatCameOfIt(t *testing.T) {
	pending := oadpv1alpha1.ReasonBSLSpecApprovalPending
	assert.Equal(t, []string{
		"Namespace: shop", "Name: offsite", "Request: shop-offsite-1", "Version: 999", "State: pending",
		"Provider: aws", "Bucket: b", "Prefix: nightly", "Changes: - objectStorage.bucket: a", "+ objectStorage.bucket: b",
		"Decision: approve", "Decided by: ann", "Reason: ticket 4711", "",
		"shop/offsite: approved, and in use as soon as Velero has it",
	}, operatortest.Lines(decidedAs(t, "table", asked(bucket("b"), bucket("a"), pending), "approve")))

	revoked := operatortest.Lines(decidedAs(t, "table", asked(bucket("b"), bucket("a"), pending), "revoke"))
	assert.Contains(t, revoked, "Bucket: a", "what is taken back, not what is pending")
	assert.Contains(t, revoked, "- objectStorage.bucket: a")

	tests := map[string]struct {
		request  *approvalRequest
		decision contract.Decision
		want     string
	}{
		"a first request rejected": {asked(bucket("a"), nil, pending), "reject", "shop/offsite: rejected\n"},
		"a change rejected": {
			asked(bucket("b"), bucket("a"), pending), "reject", "shop/offsite: rejected; what was approved before stays in use\n",
		},
		"revoked": {
			asked(nil, bucket("a"), oadpv1alpha1.ReasonBSLSpecApproved), "revoke",
			"shop/offsite: revoked; the tenant's present specification is pending\n",
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			assert.True(t, strings.HasSuffix(decidedAs(t, "table", test.request, test.decision), "\n\n"+test.want))
		})
	}
}

func TestADecisionIsReadByPrograms(t *testing.T) {
	for _, output := range []string{"json", "yaml"} {
		text := decidedAs(t, output, asked(bucket("a"), nil, oadpv1alpha1.ReasonBSLSpecApprovalPending), "approve")
		var read map[string]any
		require.NoError(t, yaml.UnmarshalStrict([]byte(text), &read), "one document")
		assert.Equal(t, true, read["actedOn"])
		assert.Equal(t, "ann", read["by"])
		assert.Equal(t, "ticket 4711", read["reason"])
		assert.Equal(t, "pending", read["about"].(map[string]any)["state"])
		assert.Equal(t, "approved", read["now"].(map[string]any)["state"])
	}
}

// A script learns from the document that the decision is stored, and from the exit status that this is not all.
func TestADecisionThatWasNotActedOnIsToldToPrograms(t *testing.T) {
	o := newOffice(t, asked(bucket("a"), nil, oadpv1alpha1.ReasonBSLSpecApprovalPending))
	flags := &DecideFlags{Flags: operator.Flags{Output: "json", OADPNamespace: OADPNamespace}}
	d := o.decider("approve")
	d.timeout = 20 * time.Millisecond
	var out bytes.Buffer
	require.ErrorContains(t, flags.decide(t.Context(), d, &out), "the decision is stored, but was not acted on yet")
	assert.Contains(t, out.String(), `"actedOn": false`)
	assert.Contains(t, out.String(), `"stored": "approve"`)

	d.resourceVersion = "1"
	out.Reset()
	require.ErrorContains(t, flags.decide(t.Context(), d, &out), "read it again")
	assert.Empty(t, out.String(), "nothing was decided")
}
