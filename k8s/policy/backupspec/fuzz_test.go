package backupspec

import (
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	kjson "sigs.k8s.io/json"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/policytest"
)

// FuzzValidateBackup: whatever a tenant writes is judged, never a panic or an endless retry, and what is built from it
// keeps to the tenant's namespace and the policy.
func FuzzValidateBackup(f *testing.F) {
	for _, spec := range []string{
		`{}`,
		`{"backupSpec":{}}`,
		`{"backupSpec":{"includedNamespaces":["*"],"excludedNamespaces":[],"includeClusterResources":true}}`,
		`{"backupSpec":{"storageLocation":"store","ttl":"1h","snapshotVolumes":true}}`,
		`{"backupSpec":{"storageLocation":"../x","ttl":"banana","uploaderConfig":{"parallelFilesUpload":1e99}}}`,
		`{"backupSpec":{"excludedClusterScopedResources":["*"],"labelSelector":{},"orLabelSelectors":[null]}}`,
		`{"backupSpec":{"metadata":{"labels":{"a":"b"}},"hooks":{"resources":[{"name":"h","pre":[{"exec":null}]}]}}}`,
		`{"backupSpec":null,"deleteBackup":true}`,
	} {
		f.Add([]byte(spec))
	}
	reader := readerOf(f, tenantsStore(), policytest.VeleroStore())
	p := policy.Policy{EnforceBackupSpec: &velerov1.BackupSpec{
		SnapshotVolumes: new(false), DefaultVolumesToFsBackup: new(false), ExcludedResources: []string{"secrets"},
	}}
	f.Fuzz(func(t *testing.T, spec []byte) {
		nab := policytest.BackupOf(nil)
		if kjson.UnmarshalCaseSensitivePreserveInts(spec, &nab.Spec) != nil {
			t.Skip("the API server takes only objects")
		}
		before := nab.DeepCopy()

		_, err := Validate(t.Context(), reader, policytest.OADPNamespace, nab, p)
		var verdict *check.InvalidSpecError
		require.True(t, err == nil || errors.As(err, &verdict), "no verdict: %v", err)
		if verdict != nil {
			require.NotEmpty(t, verdict.Message)
			require.LessOrEqual(t, utf8.RuneCountInString(verdict.Message), check.MaxMessage+3)
		}

		built := Build(nab, p, "")
		requireConfined(t, built)
		require.Equal(t, new(false), built.SnapshotVolumes)
		require.Equal(t, new(false), built.DefaultVolumesToFsBackup)
		require.False(t, check.IsTrue(built.DefaultVolumesToRestic))
		require.Equal(t, before, nab, "the tenant's object was changed")
	})
}

// FuzzParse: whatever an administrator writes is a policy that can be used, or an error.
func FuzzParse(f *testing.F) {
	for _, document := range []string{
		"{}", "", "[]", "null", "a: &a [*a]", "enforceBackupSpec: {ttl: 1h}", "enforceBackupSpec: {ttl: [1]}",
		"enforceBSLSpec: {objectStorage: {caCert: '!'}}", "backupSyncPeriod: -1ns", "requireApprovalForBSL: true",
		`{"enforceRestoreSpec":{"hooks":{"resources":[{"name":"h","postHooks":[{"init":{"initContainers":[{"name":1}]}}]}]}}}`,
	} {
		f.Add([]byte(document))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		p, err := policy.Parse(document)
		if err != nil {
			require.NotEmpty(t, err.Error())
			require.Equal(t, policy.Policy{}, p)
			return
		}
		require.GreaterOrEqual(t, p.GarbageCollection().Nanoseconds(), int64(0))
		require.GreaterOrEqual(t, p.BackupSync().Nanoseconds(), int64(0))
		requireConfined(t, Build(&oadpv1alpha1.NonAdminBackup{ObjectMeta: policytest.BackupOf(nil).ObjectMeta}, p, ""))
	})
}
