package policy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/policytest"
)

func TestTheFirstQuotaThatSelectsANamespaceIsItsQuota(t *testing.T) {
	p, err := ParseOwn([]byte(`
quotas:
- {namespaceSelector: {matchLabels: {tier: gold}}, maxStored: 100, maxBytes: 2Ti}
- {namespaceSelector: {matchExpressions: [{key: tier, operator: In, values: [free]}]}}
- {namespaceSelector: {}, maxStored: 10, maxActive: 2, maxPerDay: 20, maxBytes: 1000}
`))
	require.NoError(t, err)
	of := func(tier string) (at, stored int, bytes int64) {
		q, at, found := p.QuotaOf(map[string]string{"tier": tier})
		require.True(t, found)
		return at, q.MaxStored, q.MaxBytes.Value()
	}
	for tier, want := range map[string][3]int64{"gold": {0, 100, 2 << 40}, "free": {1, 0, 0}, "": {2, 10, 1000}} {
		at, stored, bytes := of(tier)
		assert.Equal(t, want, [3]int64{int64(at), int64(stored), bytes}, tier)
	}
	assert.Equal(t, 2, p.Quotas[2].MaxActive)
	assert.Equal(t, 20, p.Quotas[2].MaxPerDay)
	_, _, found := Own{Quotas: p.Quotas[:2]}.QuotaOf(nil)
	assert.False(t, found, "a namespace that none selects has no quota")
	_, _, found = Own{Quotas: []Quota{{}}}.QuotaOf(nil)
	assert.False(t, found, "no selector selects nothing")
}

func TestThePolicyOfQuotasIsReadStrictly(t *testing.T) {
	for document, want := range map[string]string{
		"quotas: {}":               "quotas must be a list",
		"quotas: [10]":             "quotas[0] must be a mapping",
		"quotas: [{maxStored: 1}]": "quotas[0].namespaceSelector must be set: {} selects all namespaces",
		"quotas: [{namespaceSelector: {}}, {namespaceSelector: {}, maxStored: -1, maxActive: -1, maxPerDay: -1, maxBytes: -1Gi}]": "quotas[1].maxStored must not be negative; 0 is no limit; " +
			"quotas[1].maxActive must not be negative; 0 is no limit; quotas[1].maxPerDay must not be negative; 0 is no limit; " +
			"quotas[1].maxBytes must not be negative; 0 is no limit",
		"quotas: [{namespaceSelector: {}, maxStored: many}]":                          "quotas[0].maxStored must be of type int, not string",
		"quotas: [{namespaceSelector: {}, maxStored: 1.5}]":                           "quotas[0].maxStored must be of type int",
		"quotas: [{namespaceSelector: {}, maxBytes: 1 TB}]":                           "quotas[0].maxBytes: quantities must match the regular expression",
		"quotas: [{namespaceSelector: {}, maxBackups: 1}]":                            "quotas[0].maxBackups is not a known field",
		"quotas: [{namespaceSelector: {}, Limits: {maxStored: 1}}]":                   "quotas[0].Limits is not a known field",
		"quotas: [{namespaceSelector: {matchLabel: {a: b}}}]":                         "quotas[0].namespaceSelector.matchLabel is not a known field",
		"quotas: [{namespaceSelector: {matchExpressions: [{key: a, operator: Is}]}}]": `quotas[0].namespaceSelector: "Is" is not a valid label selector operator`,
		"quotas: [{namespaceSelector: {matchLabels: {a: b!}}}]":                       `quotas[0].namespaceSelector: values[0][a]: Invalid value: "b!"`,
	} {
		_, err := ParseOwn([]byte(document))
		assert.ErrorContains(t, err, want, document)
	}
}

func TestACommandReadsHoldfastsOwnPart(t *testing.T) {
	c := newCluster(t)
	own, err := ReadOwn(t.Context(), c.source().reader, policytest.OADPNamespace)
	require.NoError(t, err)
	assert.Empty(t, own)
	c.configMap(map[string]string{"holdfast": "quotas: [{namespaceSelector: {}, maxBytes: 10Gi}]"})
	own, err = ReadOwn(t.Context(), c.source().reader, policytest.OADPNamespace)
	require.NoError(t, err)
	require.Len(t, own.Quotas, 1)
	assert.Equal(t, resource.MustParse("10Gi"), own.Quotas[0].MaxBytes)
	c.configMap(map[string]string{"holdfast": "quotas: [{}]"})
	_, err = ReadOwn(t.Context(), c.source().reader, policytest.OADPNamespace)
	var unusable *check.UnusableError
	require.ErrorAs(t, err, &unusable)
}
