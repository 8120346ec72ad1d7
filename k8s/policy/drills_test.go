package policy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDrillsAreOffAndBounded(t *testing.T) {
	p, err := ParseOwn([]byte("{}"))
	require.NoError(t, err)
	assert.False(t, p.Drills.Enabled)
	assert.Equal(t, defaultDrills, p.Drills.ActiveLimit())
	assert.Equal(t, "50", p.Drills.Quota()["pods"])

	p, err = ParseOwn([]byte(`
drills:
  enabled: true
  maxActive: 3
  namespaceTemplate: {labels: {pod-security.kubernetes.io/enforce: baseline}, annotations: {example.com/cost-center: "42"}}
  resourceQuota: {pods: 5, services.loadbalancers: 7}
  storageClassMapping: {fast: slow}
  kinds: [things.example.com]
`))
	require.NoError(t, err)
	assert.Equal(t, 3, p.Drills.ActiveLimit())
	quota := p.Drills.Quota()
	assert.Equal(t, "5", quota["pods"])
	assert.Equal(t, "20", quota["persistentvolumeclaims"], "what is not said stays bounded")
	assert.Equal(t, "0", quota["services.loadbalancers"], "whatever the policy says")
	assert.Equal(t, "50", defaultDrillQuota["pods"])
}

func TestThePolicyOfDrillsIsReadStrictly(t *testing.T) {
	for document, want := range map[string]string{
		"drills: true":                                                            "drills must be a mapping",
		"drills: {enabled: 1}":                                                    "drills.enabled must be of type bool",
		"drills: {nightly: true}":                                                 "drills.nightly is not a known field",
		"drills: {maxActive: -1}":                                                 "drills.maxActive must be between 0 and 100",
		"drills: {dns: [10.0.0.10]}":                                              "drills.dns[0] must be a CIDR, for example 10.96.0.10/32",
		"drills: {dns: [10.0.0.10/31, 10.0.0.1/24]}":                              "drills.dns[1] must be a CIDR",
		"drills: {dns: [0.0.0.0/0]}":                                              "drills.dns[0] must have at most 256 addresses",
		"drills: {dns: ['::/0']}":                                                 "drills.dns[0] must have at most 256 addresses",
		"drills: {dns: [169.254.169.0/24]}":                                       "drills.dns[0] must not contain an address of a cloud's metadata service",
		"drills: {kinds: [things]}":                                               "drills.kinds[0] must be a resource and its group",
		"drills: {stripAnnotations: ['a b']}":                                     "drills.stripAnnotations[0] name part must consist of",
		"drills: {stripAnnotations: [holdfast.dev/drill]}":                        "drills.stripAnnotations[0] must not be a key of holdfast.dev",
		"drills: {resourceQuota: {pods: -1}}":                                     "drills.resourceQuota[pods] must not be negative",
		"drills: {resourceQuota: {gpu: 1}}":                                       "drills.resourceQuota[gpu] is not a resource that a ResourceQuota limits",
		"drills: {namespaceTemplate: {labels: {holdfast.dev/drill: x}}}":          "drills.namespaceTemplate.labels[holdfast.dev/drill] must not be a key of holdfast.dev",
		"drills: {namespaceTemplate: {labels: {a: 'b c'}}}":                       "drills.namespaceTemplate.labels[a] must have the value of a label",
		"drills: {namespaceTemplate: {annotations: {'a b': c}}}":                  "drills.namespaceTemplate.annotations[a b]",
		"drills: {namespaceTemplate: {finalizers: [x]}}":                          "drills.namespaceTemplate.finalizers is not a known field",
		"drills: {namespaceTemplate: {labels: {kubernetes.io/metadata.name: x}}}": "must not be a key of holdfast.dev or kubernetes.io",
	} {
		_, err := ParseOwn([]byte(document))
		assert.ErrorContains(t, err, want, document)
	}
}
