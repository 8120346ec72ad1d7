package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestBadArgumentsOfADecisionAreRefused(t *testing.T) {
	reason := "--reason=ticket 4711"
	tests := map[string]struct {
		args []string
		want string
	}{
		"no object":               {[]string{"approve", reason}, "accepts 1 arg(s), received 0"},
		"no namespace":            {[]string{"approve", "offsite", reason}, `approve "offsite": want NAMESPACE/NAME`},
		"a name that cannot be":   {[]string{"reject", "shop/Off_site", reason}, `reject "shop/Off_site": want NAMESPACE/NAME`},
		"no reason":               {[]string{"approve", "shop/offsite"}, "--reason: say why"},
		"a reason of blanks":      {[]string{"revoke", "shop/offsite", "--reason=  "}, "--reason: say why"},
		"a reason too long":       {[]string{"reject", "shop/offsite", "--reason=" + strings.Repeat("é", 257)}, "--reason: want at most 512 bytes, these are 514"},
		"a reason in two lines":   {[]string{"reject", "shop/offsite", "--reason=a\nb"}, "--reason: want one line of text"},
		"a reason that is binary": {[]string{"reject", "shop/offsite", "--reason=a\xff"}, "--reason: want one line of text"},
		"no timeout":              {[]string{"approve", "shop/offsite", reason, "--timeout=0s"}, "--timeout: want a duration above 0"},
		"an unknown output":       {[]string{"approve", "shop/offsite", reason, "-o", "xml"}, "--output: want table, json or yaml"},
		"a bad namespace":         {[]string{"approve", "shop/offsite", reason, "--oadp-namespace="}, "--oadp-namespace: want the name of a namespace"},
		"a kubeconfig that isn't": {[]string{"approve", "shop/offsite", reason, "--kubeconfig=/does/not/exist"}, "--kubeconfig: "},
		"a flag of Temporal's":    {[]string{"approve", "shop/offsite", reason, "--cluster-id=west"}, "unknown flag: --cluster-id"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			root := command()
			root.SilenceErrors, root.SilenceUsage = true, true
			root.SetArgs(test.args)
			root.SetOut(io.Discard)
			root.SetErr(io.Discard)
			err := root.ExecuteContext(t.Context())
			require.ErrorContains(t, err, test.want)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
	assert.NoError(t, (&decideFlags{
		operatorFlags: operatorFlags{output: "table", oadpNamespace: oadpNamespace},
		reason:        strings.Repeat("é", 256), timeout: time.Minute,
	}).validate())
}

func decidedAs(t *testing.T, output string, request *approvalRequest, decision contract.Decision) string {
	t.Helper()
	o := newOffice(t, request)
	o.worker = actsOn
	flags := &decideFlags{operatorFlags: operatorFlags{output: output, oadpNamespace: oadpNamespace}}
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
	}, lines(decidedAs(t, "table", asked(bucket("b"), bucket("a"), pending), "approve")))

	revoked := lines(decidedAs(t, "table", asked(bucket("b"), bucket("a"), pending), "revoke"))
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
	flags := &decideFlags{operatorFlags: operatorFlags{output: "json", oadpNamespace: oadpNamespace}}
	d := o.decider("approve")
	d.timeout = 20 * time.Millisecond
	var out bytes.Buffer
	require.ErrorContains(t, flags.decide(t.Context(), d, &out), "the decision is stored, and will be acted on")
	assert.Contains(t, out.String(), `"actedOn": false`)
	assert.Contains(t, out.String(), `"stored": "approve"`)

	d.resourceVersion = "1"
	out.Reset()
	require.ErrorContains(t, flags.decide(t.Context(), d, &out), "look again")
	assert.Empty(t, out.String(), "nothing was decided")
}
