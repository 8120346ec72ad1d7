package policy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/policy/check"
)

// wantRole requires the policy in force to have that role for restores, by which the tests tell Holdfast's own part apart.
func wantRole(t *testing.T, s *Source, want string) {
	t.Helper()
	p, err := s.Get(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, p.RestoreFromTenantsLocations.Role())
}

func TestHoldfastsOwnPartIsReadBesideOADPs(t *testing.T) {
	const own = "restoreFromTenantsLocations: {clusterRole: restorer}"
	c := newCluster(t)
	s := c.source()
	wantRole(t, s, "edit")

	c.configMap(map[string]string{"holdfast": own})
	wantRole(t, s, "restorer")
	wantSync(t, s, DefaultBackupSyncPeriod)
	require.Empty(t, s.Problem(), "the other key need not be there")

	c.application("a", map[string]any{"backupSyncPeriod": "1m"})
	c.configMap(map[string]string{"nonAdmin": "backupSyncPeriod: 4m", "holdfast": own})
	wantRole(t, s, "restorer")
	wantSync(t, s, time.Minute)

	before := s.Version()
	require.Contains(t, before, "ConfigMap openshift-adp/holdfast-policy key holdfast@")
	c.configMap(map[string]string{"holdfast": "restoreFromTenantsLocations: {clusterRoles: admin}"})
	wantRole(t, s, "restorer")
	require.Equal(t, "policy in ConfigMap openshift-adp/holdfast-policy key holdfast cannot be used: "+
		"restoreFromTenantsLocations.clusterRoles is not a known field; the policy read before stays in force", s.Problem())
	require.Equal(t, before, s.Version())

	c.configMap(map[string]string{"nonAdmin": "{}"})
	wantRole(t, s, "restorer")
	require.Contains(t, s.Problem(), "key holdfast no longer holds a policy")
	c.configMap(map[string]string{"holdfast": "{}"})
	wantRole(t, s, "edit")
	require.Empty(t, s.Problem())
}

func TestHoldfastsOwnPartIsReadStrictly(t *testing.T) {
	for document, want := range map[string]string{
		"":                                       "the document is empty",
		"tenantsBuckets: {maxArchiveSize: much}": "tenantsBuckets.maxArchiveSize: quantities must match the regular expression",
		"tenantsBuckets: {maxArchiveSize: 0}":    "tenantsBuckets.maxArchiveSize must be more than 0",
		"tenantsBuckets: {velero: true}":         "tenantsBuckets.velero is not a known field",
		"restoreFromTenantsLocations: none":      "restoreFromTenantsLocations must be a mapping",
		"restoreFromTenantsLocations: {clusterRole: [edit]}":       "restoreFromTenantsLocations.clusterRole must be of type string, not array",
		"restoreFromTenantsLocations: {allowInformerCache: often}": "restoreFromTenantsLocations.allowInformerCache must be of type bool, not string",
		"restoreFromTenantsLocations: {clusterRole: ../edit}":      "restoreFromTenantsLocations.clusterRole may not contain '/'",
	} {
		_, err := ParseOwn([]byte(document))
		require.ErrorContains(t, err, want, document)
		c := newCluster(t)
		c.configMap(map[string]string{"nonAdmin": "{}", "holdfast": document})
		_, err = c.source().Get(t.Context())
		var unusable *check.UnusableError
		require.ErrorAs(t, err, &unusable, document)
		require.Equal(t, "ConfigMap openshift-adp/holdfast-policy key holdfast", unusable.Origin)
	}
}
