package policy

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"holdfast.dev/holdfast/k8s/policy/policytest"
)

func TestAPolicyIsReadWhole(t *testing.T) {
	got, err := Parse([]byte(`
enable: true
enforceBackupSpec:
  snapshotVolumes: false
  ttl: 72h
  labelSelector: {matchLabels: {tier: gold}}
  metadata: {labels: {a: b}}
  excludedResources: null
enforceRestoreSpec:
  restorePVs: true
enforceBSLSpec:
  provider: aws
  config: {region: eu-west-1}
  credential: {name: cloud, key: cloud}
  objectStorage: {bucket: b, prefix: p, caCert: Y2E=}
  accessMode: ReadWrite
  backupSyncPeriod: 1m
  validationFrequency: 5m
requireApprovalForBSL: true
requireAdminApprovalForBSL: false
garbageCollectionPeriod: 12h
backupSyncPeriod: 3m
`))
	require.NoError(t, err)
	require.Equal(t, Policy{
		EnforceBackupSpec: &velerov1.BackupSpec{
			SnapshotVolumes: new(false),
			TTL:             metav1.Duration{Duration: 72 * time.Hour},
			LabelSelector:   &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}},
			Metadata:        velerov1.Metadata{Labels: map[string]string{"a": "b"}},
		},
		EnforceRestoreSpec: &velerov1.RestoreSpec{RestorePVs: new(true)},
		EnforceBSLSpec: &StorageLocationSpec{
			Provider: "aws",
			Config:   map[string]string{"region": "eu-west-1"},
			Credential: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "cloud"}, Key: "cloud",
			},
			ObjectStorage:       &ObjectStorage{Bucket: "b", Prefix: "p", CACert: []byte("ca")},
			AccessMode:          velerov1.BackupStorageLocationAccessModeReadWrite,
			BackupSyncPeriod:    &metav1.Duration{Duration: time.Minute},
			ValidationFrequency: &metav1.Duration{Duration: 5 * time.Minute},
		},
		RequireApprovalForBSL:      new(true),
		RequireAdminApprovalForBSL: new(false),
		GarbageCollectionPeriod:    &metav1.Duration{Duration: 12 * time.Hour},
		BackupSyncPeriod:           &metav1.Duration{Duration: 3 * time.Minute},
	}, got)
}

func TestAWrongPolicyIsRefusedWithTheNameOfTheField(t *testing.T) {
	tests := map[string]struct{ document, want string }{
		"no document":    {"", "the document is empty: write {} for a policy that enforces nothing"},
		"only a comment": {"# none", "the document is empty: write {} for a policy that enforces nothing"},
		"a list": {
			"[a]",
			"the document must be a mapping: json: cannot unmarshal array into Go value of type map[string]json.RawMessage",
		},
		"a misspelt field":    {"enforcedBackupSpec: {}", "enforcedBackupSpec is not a known field"},
		"a field in capitals": {"enforceBackupSpec: {TTL: 1h}", "enforceBackupSpec.TTL is not a known field"},
		"a misspelt backup field": {
			"enforceBackupSpec: {snapshotVolume: false}", "enforceBackupSpec.snapshotVolume is not a known field",
		},
		"a misspelt field further down": {
			"enforceBackupSpec: {hooks: {resource: []}}", "enforceBackupSpec.hooks.resource is not a known field",
		},
		"a misspelt restore field": {
			"enforceRestoreSpec: {restorePV: true}",
			"enforceRestoreSpec.restorePV is not a known field",
		},
		"a misspelt location field": {
			"enforceBSLSpec: {objectStorage: {buckets: b}}",
			"enforceBSLSpec.objectStorage.buckets is not a known field",
		},
		"an enforced spec that is a list": {
			"enforceBackupSpec: []",
			"enforceBackupSpec must be a mapping: json: cannot unmarshal array into Go value of type map[string]json.RawMessage",
		},
		"a word for a switch": {
			"enforceBackupSpec: {snapshotVolumes: 'no'}", "enforceBackupSpec.snapshotVolumes must be of type bool, not string",
		},
		"a wrong type further down": {
			"enforceBackupSpec: {uploaderConfig: {parallelFilesUpload: many}}",
			"enforceBackupSpec.uploaderConfig.parallelFilesUpload must be of type int, not string",
		},
		"a word for the approval": {
			"requireApprovalForBSL: 'yes'",
			"requireApprovalForBSL must be of type bool, not string",
		},
		"no duration": {
			"enforceBackupSpec: {ttl: banana}",
			`enforceBackupSpec.ttl: time: invalid duration "banana"`,
		},
		"a period that is none": {"backupSyncPeriod: often", `backupSyncPeriod: time: invalid duration "often"`},
		"several at once": {
			"{b: 1, a: 2, enforceBackupSpec: {x: 1}}",
			"a is not a known field; b is not a known field; enforceBackupSpec.x is not a known field",
		},
		"a negative period": {
			"garbageCollectionPeriod: -1h",
			"garbageCollectionPeriod must not be negative: -1h0m0s",
		},
		"a sync that is too rare": {
			"backupSyncPeriod: 24h",
			"backupSyncPeriod (24h0m0s) must be less than garbageCollectionPeriod (24h0m0s)",
		},
		"what no tenant may set": {
			"enforceBSLSpec: {config: {region: west, credentialsFile: /etc/keys}}",
			"enforceBSLSpec.config.credentialsFile is restricted: use credential",
		},
		"an enforced sync that is too rare": {
			"enforceBSLSpec: {backupSyncPeriod: 2m}", "enforceBSLSpec.backupSyncPeriod (2m0s) must be less than backupSyncPeriod (2m0s)",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(tt.document))
			require.EqualError(t, err, tt.want)
			require.Equal(t, Policy{}, got)
		})
	}
	_, err := Parse([]byte("backupSyncPeriod: 1m\nbackupSyncPeriod: 2m"))
	require.ErrorContains(t, err, `key "backupSyncPeriod" already set in map`)
}

func TestWhatHoldfastDecidesItselfCannotBeEnforced(t *testing.T) {
	for document, field := range map[string]string{
		"enforceBackupSpec: {storageLocation: default}":            "enforceBackupSpec.storageLocation",
		"enforceBackupSpec: {volumeSnapshotLocations: [a]}":        "enforceBackupSpec.volumeSnapshotLocations",
		"enforceBackupSpec: {includedNamespaces: ['*']}":           "enforceBackupSpec.includedNamespaces",
		"enforceBackupSpec: {excludedNamespaces: [a]}":             "enforceBackupSpec.excludedNamespaces",
		"enforceBackupSpec: {includeClusterResources: true}":       "enforceBackupSpec.includeClusterResources as true",
		"enforceBackupSpec: {includedClusterScopedResources: [a]}": "enforceBackupSpec.includedClusterScopedResources",
		"enforceRestoreSpec: {scheduleName: a}":                    "enforceRestoreSpec.scheduleName",
		"enforceRestoreSpec: {includedNamespaces: [a]}":            "enforceRestoreSpec.includedNamespaces",
		"enforceRestoreSpec: {excludedNamespaces: [a]}":            "enforceRestoreSpec.excludedNamespaces",
		"enforceRestoreSpec: {namespaceMapping: {a: b}}":           "enforceRestoreSpec.namespaceMapping",
	} {
		t.Run(field, func(t *testing.T) {
			_, err := Parse([]byte(document))
			require.EqualError(t, err, field+" is non-enforceable by admins")
		})
	}
}

func TestAPolicyEnforcesNoNegativeTime(t *testing.T) {
	_, err := Parse([]byte("enforceBackupSpec: {ttl: -1h, uploaderConfig: {parallelFilesUpload: 512}}"))
	require.EqualError(t, err, "enforceBackupSpec.ttl must not be negative: -1h0m0s")
	_, err = Parse([]byte("enforceBackupSpec: {uploaderConfig: {parallelFilesUpload: 512}}"))
	require.NoError(t, err, "administrators know what their nodes can bear")
}

func TestPoliciesAtTheEdgeAreAccepted(t *testing.T) {
	for name, document := range map[string]string{
		"nothing enforced":            "{}",
		"a policy for OADP's switch":  "enable: false",
		"a null":                      "enforceBackupSpec: null",
		"no garbage collection":       "garbageCollectionPeriod: 0s",
		"no sync":                     "backupSyncPeriod: 0s\nenforceBSLSpec: {backupSyncPeriod: 1h}",
		"cluster resources ruled out": "enforceBackupSpec: {includeClusterResources: false}",
		"no enforced cluster kinds":   "enforceBackupSpec: {includedClusterScopedResources: []}",
		"an enforced resource policy": "enforceBackupSpec: {resourcePolicy: {kind: configmap, name: volumes}}",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(document))
			require.NoError(t, err)
		})
	}
}

func TestApprovalIsRequiredByEitherName(t *testing.T) {
	for document, want := range map[string]bool{
		"{}":                               false,
		"requireApprovalForBSL: true":      true,
		"requireAdminApprovalForBSL: true": true,
		"requireApprovalForBSL: false":     false,
		"{requireApprovalForBSL: false, requireAdminApprovalForBSL: true}": true,
	} {
		t.Run(document, func(t *testing.T) {
			p, err := Parse([]byte(document))
			require.NoError(t, err)
			require.Equal(t, want, p.RequireApproval())
		})
	}
}

func TestPeriodsHaveDefaults(t *testing.T) {
	require.Equal(t, 24*time.Hour, Policy{}.GarbageCollection())
	require.Equal(t, 2*time.Minute, Policy{}.BackupSync())
	off := Policy{GarbageCollectionPeriod: &metav1.Duration{}, BackupSyncPeriod: &metav1.Duration{}}
	require.Zero(t, off.GarbageCollection())
	require.Zero(t, off.BackupSync())
}

func TestEveryFieldThatCanBeEnforcedCanBeWritten(t *testing.T) {
	var p Policy
	policytest.SetNonZero(t, reflect.ValueOf(&p).Elem(), 0)
	p.EnforceBackupSpec.StorageLocation, p.EnforceBackupSpec.VolumeSnapshotLocations = "", nil
	p.EnforceBackupSpec.IncludedNamespaces, p.EnforceBackupSpec.ExcludedNamespaces = nil, nil
	p.EnforceBackupSpec.IncludedClusterScopedResources, p.EnforceBackupSpec.IncludeClusterResources = nil, nil
	p.EnforceRestoreSpec.ScheduleName, p.EnforceRestoreSpec.NamespaceMapping = "", nil
	p.EnforceRestoreSpec.IncludedNamespaces, p.EnforceRestoreSpec.ExcludedNamespaces = nil, nil
	p.Own = Own{} // not of this document
	p.GarbageCollectionPeriod, p.BackupSyncPeriod = &metav1.Duration{Duration: time.Hour}, &metav1.Duration{Duration: time.Minute}

	document, err := yaml.Marshal(p)
	require.NoError(t, err)
	got, err := Parse(document)
	require.NoError(t, err)
	require.Equal(t, p, got)
}
