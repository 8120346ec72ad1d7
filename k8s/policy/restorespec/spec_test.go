package restorespec

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/policytest"
)

func restoreOf(spec *velerov1.RestoreSpec) *oadpv1alpha1.NonAdminRestore {
	return &oadpv1alpha1.NonAdminRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: policytest.Tenant, Name: "again"},
		Spec:       oadpv1alpha1.NonAdminRestoreSpec{RestoreSpec: spec},
	}
}

// taken is a complete backup in an administrator's location.
func taken() Source {
	nab := policytest.BackupOf(&velerov1.BackupSpec{})
	nab.Status.Phase = oadpv1alpha1.NonAdminPhaseCreated
	made := &velerov1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: policytest.OADPNamespace, Name: "team-a-nightly-1"}}
	made.Spec.StorageLocation = "default"
	made.Status.Phase = velerov1.BackupPhaseCompleted
	location := &velerov1.BackupStorageLocation{ObjectMeta: metav1.ObjectMeta{Namespace: policytest.OADPNamespace, Name: "default"}}
	location.Status.Phase = velerov1.BackupStorageLocationPhaseAvailable
	return Source{NAB: nab, Backup: made, Location: location}
}

// takenInOwnStore is a complete backup in the tenant's location.
func takenInOwnStore() Source {
	source := taken()
	source.Location = policytest.VeleroStore()
	source.Backup.Spec.StorageLocation = source.Location.Name
	return source
}

func TestWhichRestoresAreRefused(t *testing.T) {
	const notReady = "NonAdminRestore spec.restoreSpec.backupName is invalid: NonAdminBackup is not ready to be restored"
	now := metav1.Now()
	with := func(change func(*Source)) Source {
		source := taken()
		change(&source)
		return source
	}
	modifier := &corev1.TypedLocalObjectReference{Kind: "ConfigMap", Name: "mine"}
	tests := map[string]struct {
		spec   velerov1.RestoreSpec
		source Source
		policy policy.Policy
		want   string // empty: valid
	}{
		"a plain one":                                {source: taken()},
		"of a backup with errors":                    {source: with(func(s *Source) { s.Backup.Status.Phase = velerov1.BackupPhasePartiallyFailed })},
		"without cluster-scoped resources":           {spec: velerov1.RestoreSpec{IncludeClusterResources: new(false)}, source: taken()},
		"from the tenant's own location":             {source: takenInOwnStore()},
		"with a modifier, from an admin's location":  {spec: velerov1.RestoreSpec{ResourceModifier: modifier}, source: taken()},
		"with a modifier, from the tenant's own one": {spec: velerov1.RestoreSpec{ResourceModifier: modifier}, source: takenInOwnStore(), want: "NonAdminRestore spec.restoreSpec.resourceModifier is restricted, must not be set to restore a backup from a NonAdminBackupStorageLocation"},
		"with a time that is over at once": {
			spec:   velerov1.RestoreSpec{ItemOperationTimeout: metav1.Duration{Duration: -time.Hour}},
			source: taken(), want: "NonAdminRestore spec.restoreSpec.itemOperationTimeout must not be negative: -1h0m0s",
		},
		"with what is no modifier but ours": {
			spec:   velerov1.RestoreSpec{ResourceModifier: &corev1.TypedLocalObjectReference{Kind: "ConfigMap", Name: "holdfast-policy"}},
			source: taken(), want: `NonAdminRestore spec.restoreSpec.resourceModifier is restricted, must not name a ConfigMap of Holdfast, whose name begins with "holdfast" or ends in a UUID`,
		},
		"with a policy that is ours": {
			spec:   velerov1.RestoreSpec{ResourcePolicy: &corev1.TypedLocalObjectReference{Kind: "ConfigMap", Name: "holdfast-released"}},
			source: taken(), want: `NonAdminRestore spec.restoreSpec.resourcePolicy is restricted, must not name a ConfigMap of Holdfast, whose name begins with "holdfast" or ends in a UUID`,
		},
		"with a selector that selects nothing": {
			spec: velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}},
			want: `NonAdminRestore spec.restoreSpec.labelSelector is invalid: "Is" is not a valid label selector operator`, source: taken(),
		},
		"with one of several that selects nothing": {
			spec:   velerov1.RestoreSpec{OrLabelSelectors: []*metav1.LabelSelector{{}, {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}}},
			source: taken(), want: `NonAdminRestore spec.restoreSpec.orLabelSelectors is invalid: "Is" is not a valid label selector operator`,
		},
		"with both kinds of selector": {
			spec:   velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{}, OrLabelSelectors: []*metav1.LabelSelector{{}}},
			source: taken(), want: "NonAdminRestore spec.restoreSpec.labelSelector is invalid: spec.restoreSpec.orLabelSelectors is set too, only one can be",
		},
		"that does something unknown with what exists": {
			spec: velerov1.RestoreSpec{ExistingResourcePolicy: "replace"}, source: taken(),
			want: "NonAdminRestore spec.restoreSpec.existingResourcePolicy is invalid: must be none or update",
		},
		"of all and one":   {spec: velerov1.RestoreSpec{IncludedResources: []string{"pods", "*"}}, source: taken(), want: `NonAdminRestore spec.restoreSpec.includedResources is invalid: must either contain "*" only, or no "*"`},
		"of all":           {spec: velerov1.RestoreSpec{IncludedResources: []string{"*"}}, source: taken()},
		"without all":      {spec: velerov1.RestoreSpec{ExcludedResources: []string{"*"}}, source: taken(), want: `NonAdminRestore spec.restoreSpec.excludedResources is invalid: must not contain "*"`},
		"with and without": {spec: velerov1.RestoreSpec{IncludedResources: []string{"pods"}, ExcludedResources: []string{"pods"}}, source: taken(), want: `NonAdminRestore spec.restoreSpec.excludedResources is invalid: must not contain what includedResources contains: pods`},
		"under an enforced modifier, from the tenant's own location": {
			source: takenInOwnStore(), policy: policy.Policy{EnforceRestoreSpec: &velerov1.RestoreSpec{ResourceModifier: modifier}},
			want: "the administrator enforces spec.restoreSpec.resourceModifier, with which no backup can be restored from a NonAdminBackupStorageLocation",
		},
		"of a schedule":                    {spec: velerov1.RestoreSpec{ScheduleName: "s"}, source: taken(), want: "NonAdminRestore nonAdminRestore.spec.restoreSpec.scheduleName is restricted"},
		"of a name that nothing can have":  {spec: velerov1.RestoreSpec{BackupName: "../x"}, want: `NonAdminRestore spec.restoreSpec.backupName is invalid: may not contain '/'`},
		"of a backup that is not there":    {source: Source{}, want: `NonAdminRestore spec.restoreSpec.backupName is invalid: nonadminbackups.oadp.openshift.io "nightly" not found`},
		"of a backup that is not accepted": {source: with(func(s *Source) { s.NAB.Status.Phase = oadpv1alpha1.NonAdminPhaseBackingOff }), want: notReady},
		"of a backup that is being deleted": {
			source: with(func(s *Source) { s.NAB.DeletionTimestamp = &now }), want: notReady + ": it is being deleted",
		},
		"of a backup whose data are to go": {
			source: with(func(s *Source) { s.NAB.Spec.DeleteBackup = true }), want: notReady + ": it is being deleted",
		},
		"of a backup that is to be given up": {
			source: with(func(s *Source) { s.NAB.Spec.ForceDeleteBackup = true }), want: notReady + ": it is being deleted",
		},
		"of a backup whose Velero Backup is gone or another's": {
			source: with(func(s *Source) { s.Backup = nil }), want: notReady + ": its Velero Backup does not exist",
		},
		"of a backup that Velero is deleting": {
			source: with(func(s *Source) { s.Backup.DeletionTimestamp = &now }), want: notReady + ": its Velero Backup is being deleted",
		},
		"of a backup that waits": {
			source: with(func(s *Source) { s.Backup.Status.Phase = "" }), want: notReady + ": its Velero Backup is not complete (phase New)",
		},
		"of a backup that failed": {
			source: with(func(s *Source) { s.Backup.Status.Phase = velerov1.BackupPhaseFailed }), want: notReady + ": its Velero Backup is not complete (phase Failed)",
		},
		"of a backup that Velero is removing": {
			source: with(func(s *Source) { s.Backup.Status.Phase = velerov1.BackupPhaseDeleting }), want: notReady + ": its Velero Backup is not complete (phase Deleting)",
		},
		"of a backup whose location is gone": {
			source: with(func(s *Source) { s.Location = nil }), want: notReady + `: the BackupStorageLocation "default" that holds its data does not exist`,
		},
		"of a backup whose location is away": {
			source: with(func(s *Source) { s.Location.Status.Phase = velerov1.BackupStorageLocationPhaseUnavailable }),
			want:   notReady + `: the BackupStorageLocation "default" that holds its data is not available`,
		},
		"of a backup that another tenant's bucket brought": {
			source: with(func(s *Source) {
				s.Location = policytest.VeleroStore()
				s.Location.Annotations[oadpv1alpha1.NabslOriginNamespaceAnnotation] = "crew"
			}),
			want: notReady + ": it lies in a storage location of another namespace",
		},
		"for namespaces":              {spec: velerov1.RestoreSpec{IncludedNamespaces: []string{policytest.Tenant}}, source: taken(), want: "NonAdminRestore nonAdminRestore.spec.restoreSpec.includedNamespaces is restricted"},
		"but for no namespace":        {spec: velerov1.RestoreSpec{ExcludedNamespaces: []string{}}, source: taken(), want: "NonAdminRestore nonAdminRestore.spec.restoreSpec.excludedNamespaces is restricted"},
		"into another namespace":      {spec: velerov1.RestoreSpec{NamespaceMapping: map[string]string{policytest.Tenant: "crew"}}, source: taken(), want: "NonAdminRestore nonAdminRestore.spec.restoreSpec.namespaceMapping is restricted"},
		"with an empty mapping":       {spec: velerov1.RestoreSpec{NamespaceMapping: map[string]string{}}, source: taken(), want: "NonAdminRestore nonAdminRestore.spec.restoreSpec.namespaceMapping is restricted"},
		"of cluster-scoped resources": {spec: velerov1.RestoreSpec{IncludeClusterResources: new(true)}, source: taken(), want: "NonAdminRestore nonAdminRestore.spec.restoreSpec.includeClusterResources is restricted, can only be set to false"},
		"of cluster-scoped resources that are enforced": {
			spec: velerov1.RestoreSpec{IncludeClusterResources: new(true)}, source: taken(),
			policy: policy.Policy{EnforceRestoreSpec: &velerov1.RestoreSpec{IncludeClusterResources: new(true)}},
			want:   "NonAdminRestore nonAdminRestore.spec.restoreSpec.includeClusterResources is restricted, can only be set to false",
		},
		"against an enforced value": {
			spec: velerov1.RestoreSpec{RestorePVs: new(true)}, source: taken(),
			policy: policy.Policy{EnforceRestoreSpec: &velerov1.RestoreSpec{RestorePVs: new(false)}},
			want:   "the administrator has restricted spec.restoreSpec.restorePVs field value to false",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.spec.BackupName == "" {
				tt.spec.BackupName = "nightly"
			}
			err := Validate(restoreOf(&tt.spec), tt.source, tt.policy)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			var verdict *check.InvalidSpecError
			require.ErrorAs(t, err, &verdict)
			require.Equal(t, tt.want, verdict.Message)
			require.Equal(t, checkRestoreSource(restoreOf(&tt.spec), tt.source) != nil, SpeaksOfSource(verdict.Message))
		})
	}
}

func TestARestoreMustSayOfWhat(t *testing.T) {
	unreadable := restoreOf(nil)
	unreadable.Spec.Unreadable = "itemOperationTimeout must be of type string, not number"
	for want, nar := range map[string]*oadpv1alpha1.NonAdminRestore{
		"NonAdminRestore spec.restoreSpec is not set":                                                          restoreOf(nil),
		"NonAdminRestore spec.restoreSpec is invalid: itemOperationTimeout must be of type string, not number": unreadable,
		"NonAdminRestore spec.restoreSpec.backupName is not set":                                               restoreOf(&velerov1.RestoreSpec{}),
		"NonAdminRestore nonAdminRestore.spec.restoreSpec.scheduleName is restricted":                          restoreOf(&velerov1.RestoreSpec{ScheduleName: "s"}),
		"NonAdminRestore spec.restoreSpec is too large: 300065 bytes of JSON, 262144 are allowed":              restoreOf(&velerov1.RestoreSpec{IncludedResources: []string{string(make([]byte, 50000))}}),
	} {
		var verdict *check.InvalidSpecError
		require.ErrorAs(t, Validate(nar, taken(), policy.Policy{}), &verdict)
		assert.Equal(t, want, verdict.Message)
	}
}

func TestTheVeleroRestoreIsTheTenantsWithinItsNamespace(t *testing.T) {
	given := &velerov1.RestoreSpec{
		BackupName: "nightly", IncludedResources: []string{"configmaps"}, ExcludedResources: []string{"secrets", "priorityclasses"},
	}
	excluded := []string{
		"secrets", "priorityclasses", "volumesnapshotclasses",
		"nonadminbackups", "nonadminrestores", "nonadminbackupstoragelocations", "nonadmindownloadrequests",
		"restoredrills.holdfast.dev", "foundationdbdrills.fdb.holdfast.dev", "foundationdbrestores.fdb.holdfast.dev", "securitycontextconstraints", "clusterroles", "clusterrolebindings", "customresourcedefinitions",
		"virtualmachineclusterinstancetypes", "virtualmachineclusterpreferences",
	}
	p := policy.Policy{EnforceRestoreSpec: &velerov1.RestoreSpec{PreserveNodePorts: new(true), IncludeClusterResources: new(true)}}
	want := velerov1.RestoreSpec{
		BackupName: "team-a-nightly-1", IncludedNamespaces: []string{policytest.Tenant}, PreserveNodePorts: new(true),
		IncludedResources: []string{"configmaps"}, ExcludedResources: excluded,
	}
	nar := restoreOf(given)
	before := nar.DeepCopy()
	require.Equal(t, want, Build(nar, taken(), p, "team-a-again-1"), "cluster-scoped resources: as Velero decides")

	want.IncludeClusterResources = new(false)
	want.ResourceModifier = &corev1.TypedLocalObjectReference{Kind: "ConfigMap", Name: "team-a-again-1"}
	want.ExcludedResources = excludedFromRestore
	own := takenInOwnStore()
	own.Allowlist = allowing("configmaps", "secrets")
	require.Equal(t, want, Build(nar, own, p, "team-a-again-1"))
	require.Equal(t, before, nar, "the tenant's object was changed")
}

func TestARestoreThatWasNeverValidatedStaysInTheTenantsNamespace(t *testing.T) {
	for name, spec := range map[string]*velerov1.RestoreSpec{
		"no spec": nil,
		"a spec that reaches for everything": {
			BackupName: "crew-nightly-1", ScheduleName: "all", IncludedNamespaces: []string{"*"}, ExcludedNamespaces: []string{policytest.Tenant},
			NamespaceMapping: map[string]string{policytest.Tenant: "crew"}, IncludeClusterResources: new(true),
			ResourceModifier: &corev1.TypedLocalObjectReference{Kind: "ConfigMap", Name: "mine"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, source := range []Source{{}, taken(), takenInOwnStore()} {
				built := Build(restoreOf(spec), source, policy.Policy{}, "ours")
				require.Equal(t, []string{policytest.Tenant}, built.IncludedNamespaces)
				require.Empty(t, built.ExcludedNamespaces)
				require.Empty(t, built.NamespaceMapping)
				require.Empty(t, built.ScheduleName)
				require.NotEqual(t, "crew-nightly-1", built.BackupName, "a Velero Backup is never named by a tenant")
				require.False(t, check.IsTrue(built.IncludeClusterResources))
				if source.Tenants() {
					require.Equal(t, new(false), built.IncludeClusterResources)
					require.Equal(t, "ours", built.ResourceModifier.Name)
					require.Equal(t, []string{"nothing.holdfast.dev"}, built.IncludedResources, "nobody has said what may come")
				}
			}
		})
	}
}

func TestALocationIsATenantsByWhicheverMark(t *testing.T) {
	labelled, annotated := policytest.VeleroStore(), policytest.VeleroStore()
	labelled.Annotations = nil
	annotated.Labels = nil
	assert.True(t, Source{Location: labelled}.Tenants())
	assert.True(t, Source{Location: annotated}.Tenants())
	assert.False(t, taken().Tenants())
	require.Error(t, checkRestoreSource(restoreOf(&velerov1.RestoreSpec{BackupName: "nightly"}), func() Source {
		source := taken()
		source.Location = labelled
		return source
	}()), "whose it is must be known")
}

// FuzzValidateRestore: whatever a tenant writes is judged, never a panic, and what is built from it keeps to the tenant's
// namespace and the policy.
func FuzzValidateRestore(f *testing.F) {
	for _, spec := range []string{
		`{}`,
		`{"restoreSpec":{"backupName":"nightly"}}`,
		`{"restoreSpec":{"backupName":"nightly","includedNamespaces":["*"],"includeClusterResources":true}}`,
		`{"restoreSpec":{"scheduleName":"s","namespaceMapping":{"a":"b"},"itemOperationTimeout":"banana"}}`,
		`{"restoreSpec":{"backupName":"nightly","hooks":{"resources":[{"postHooks":[{"init":{"initContainers":[null]}}]}]}}}`,
	} {
		f.Add([]byte(spec))
	}
	p := policy.Policy{EnforceRestoreSpec: &velerov1.RestoreSpec{RestorePVs: new(false), ExcludedResources: []string{"secrets"}}}
	f.Fuzz(func(t *testing.T, spec []byte) {
		nar := restoreOf(nil)
		if yaml.Unmarshal(spec, &nar.Spec) != nil {
			t.Skip("the API server takes only objects")
		}
		for _, source := range []Source{{}, taken(), takenInOwnStore()} {
			err := Validate(nar, source, p)
			var verdict *check.InvalidSpecError
			require.True(t, err == nil || errors.As(err, &verdict), "no verdict: %v", err)
			built := Build(nar, source, p, "ours")
			require.Equal(t, []string{policytest.Tenant}, built.IncludedNamespaces)
			require.Nil(t, built.NamespaceMapping)
			require.False(t, check.IsTrue(built.IncludeClusterResources))
			require.Equal(t, new(false), built.RestorePVs)
		}
	})
}
