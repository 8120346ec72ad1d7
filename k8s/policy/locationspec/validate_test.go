package locationspec

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/policytest"
)

type locationSpec = velerov1.BackupStorageLocationSpec

func selector(name, key string) *corev1.SecretKeySelector {
	return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}
}

func period(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

// tenantSpec is a valid spec of a tenant's with every field set that it may set.
func tenantSpec() *locationSpec {
	return &locationSpec{
		Provider:   "aws",
		Config:     map[string]string{"region": "us-east-1", "s3Url": "https://s3.team-a.example:443", "profile": "backup"},
		Credential: selector("bucket", "cloud"),
		StorageType: velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{
			Bucket: "team-a-backups", Prefix: "cluster-1", CACert: []byte("certificate"),
		}},
		AccessMode:          velerov1.BackupStorageLocationAccessModeReadWrite,
		BackupSyncPeriod:    period(30 * time.Second),
		ValidationFrequency: period(time.Minute),
	}
}

func locationOf(spec *locationSpec) *oadpv1alpha1.NonAdminBackupStorageLocation {
	return &oadpv1alpha1.NonAdminBackupStorageLocation{
		ObjectMeta: metav1.ObjectMeta{Namespace: policytest.Tenant, Name: "store"},
		Spec:       oadpv1alpha1.NonAdminBackupStorageLocationSpec{BackupStorageLocationSpec: spec},
	}
}

func TestLocationsAreRefusedWithTheirReason(t *testing.T) {
	const path = "NonAdminBackupStorageLocation spec.backupStorageLocationSpec"
	const noKey = "NonAdminBackupStorageLocation spec.bslSpec.credential.name or spec.bslSpec.credential.key is not set"
	huge := tenantSpec()
	huge.Config["region"] = strings.Repeat("x", maxLocationBytes)
	tests := map[string]struct {
		change func(*locationSpec)
		want   string
	}{
		"a default": {
			func(s *locationSpec) { s.Default = true }, "NonAdminBackupStorageLocation cannot be used as a default BSL",
		},
		"no credential": {
			func(s *locationSpec) { s.Credential = nil }, "NonAdminBackupStorageLocation spec.bslSpec.credential is not set",
		},
		"a credential without name": {func(s *locationSpec) { s.Credential.Name = "" }, noKey},
		"a credential without key":  {func(s *locationSpec) { s.Credential.Key = "" }, noKey},
		"a credential of another namespace": {
			func(s *locationSpec) { s.Credential.Name = "../team-b/bucket" },
			path + ".credential.name is invalid: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, ",
		},
		"a key that leads to another file": {
			func(s *locationSpec) { s.Credential.Key = "/../cloud" },
			path + ".credential.key is invalid: a valid config key must consist of alphanumeric characters, ",
		},
		"a key that is two dots": {func(s *locationSpec) { s.Credential.Key = ".." }, path + ".credential.key is invalid: "},
		"no provider":            {func(s *locationSpec) { s.Provider = "" }, path + ".provider is not set"},
		"no object storage":      {func(s *locationSpec) { s.ObjectStorage = nil }, path + ".objectStorage is not set"},
		"no bucket":              {func(s *locationSpec) { s.ObjectStorage.Bucket = "" }, path + ".objectStorage.bucket is not set"},
		"a bucket that is only a slash": {
			func(s *locationSpec) { s.ObjectStorage.Bucket = "/" }, path + ".objectStorage.bucket is not set",
		},
		"a bucket with a path": {
			func(s *locationSpec) { s.ObjectStorage.Bucket = "shared/team-b" },
			path + ".objectStorage.bucket is invalid: must be a name; a path belongs into prefix",
		},
		"a bucket that is a dot": {
			func(s *locationSpec) { s.ObjectStorage.Bucket = "." },
			path + ".objectStorage.bucket is invalid: must be a name; a path belongs into prefix",
		},
		"a bucket that leads up": {
			func(s *locationSpec) { s.ObjectStorage.Bucket = "x/../shared" },
			path + ".objectStorage.bucket is invalid: must not contain '..' as a path element",
		},
		"a prefix that leads up": {
			func(s *locationSpec) { s.ObjectStorage.Prefix = "x/../../team-b" },
			path + ".objectStorage.prefix is invalid: must not contain '..' as a path element",
		},
		"a prefix that leads up and down again": {
			func(s *locationSpec) { s.ObjectStorage.Prefix = "a/../b" },
			path + ".objectStorage.prefix is invalid: must not contain '..' as a path element",
		},
		"a prefix with a backslash": {
			func(s *locationSpec) { s.ObjectStorage.Prefix = `..\team-b` },
			path + `.objectStorage.prefix is invalid: must not contain '\', which some object stores take for '/'`,
		},
		"a prefix with a control character": {
			func(s *locationSpec) { s.ObjectStorage.Prefix = "a\x00b" },
			path + ".objectStorage.prefix is invalid: must not contain control characters",
		},
		"certificates in a Secret of the OADP namespace": {
			func(s *locationSpec) { s.ObjectStorage.CACertRef = selector("cloud-credentials", "cloud") },
			path + ".objectStorage.caCertRef is restricted: it would name a Secret of the OADP namespace; " +
				"put the certificates into objectStorage.caCert",
		},
		"an unknown access mode": {
			func(s *locationSpec) { s.AccessMode = "WriteOnly" }, path + ".accessMode is invalid: must be ReadOnly or ReadWrite",
		},
		"a negative period": {
			func(s *locationSpec) { s.BackupSyncPeriod = period(-time.Second) },
			path + ".backupSyncPeriod is invalid: must not be negative: -1s",
		},
		"a negative frequency": {
			func(s *locationSpec) { s.ValidationFrequency = period(-time.Nanosecond) },
			path + ".validationFrequency is invalid: must not be negative: -1ns",
		},
		"a URL with a password": {
			func(s *locationSpec) { s.Config["s3Url"] = "https://key:secret@s3.example" },
			path + ".config.s3Url is invalid: a URL must be without user, password and query",
		},
		"a URL with a signature": {
			func(s *locationSpec) { s.Config["storageAccountURI"] = "https://x.blob.core.windows.net?sig=secret" },
			path + ".config.storageAccountURI is invalid: a URL must be without user, password and query",
		},
		"a spec too large to be held twice": {
			func(s *locationSpec) { *s = *huge },
			path + " is too large: 65853 bytes of JSON, 65536 are allowed",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			spec := tenantSpec()
			tt.change(spec)
			err := Validate(locationOf(spec), policy.Policy{})
			var verdict *check.InvalidSpecError
			require.ErrorAs(t, err, &verdict)
			require.True(t, strings.HasPrefix(err.Error(), tt.want), "%s\n%s", err, tt.want)
			require.False(t, verdict.External)
			require.NotContains(t, err.Error(), "secret@")
		})
	}
}

func TestRestrictedKeysOfTheConfiguration(t *testing.T) {
	for _, key := range []string{
		"credentialsFile", "bucket", "prefix", "resticRepoPrefix", "fspath", "customerKeyEncryptionFile", "customerKeyEncryptionSecret",
	} {
		t.Run(key, func(t *testing.T) {
			for _, provider := range []string{"aws", "velero.io/aws", "azure", "gcp", "velero.io/fs", "example.com/x"} {
				spec := tenantSpec()
				spec.Provider, spec.Config[key] = provider, ""
				require.ErrorContains(t, Validate(locationOf(spec), policy.Policy{}),
					"NonAdminBackupStorageLocation spec.backupStorageLocationSpec.config."+key+" is restricted: ")
				require.NotContains(t, Build(spec, policy.Policy{}, policytest.Tenant, policytest.NACUUID).Config, key)

				enforced := policy.Policy{EnforceBSLSpec: &policy.StorageLocationSpec{Config: map[string]string{key: "x"}}}
				spec.Config = nil
				require.NotContains(t, Build(spec, enforced, policytest.Tenant, policytest.NACUUID).Config, key)
			}
		})
	}
}

func TestLocationsWithinTheTenantsRightsAreAccepted(t *testing.T) {
	tests := map[string]func(*locationSpec){
		"all that can be set": func(*locationSpec) {},
		"the least": func(s *locationSpec) {
			*s = locationSpec{Provider: "aws", Credential: s.Credential, StorageType: velerov1.StorageType{
				ObjectStorage: &velerov1.ObjectStorageLocation{Bucket: "b"},
			}}
		},
		"a provider that nobody knows":    func(s *locationSpec) { s.Provider = "example.com/tape" },
		"a bucket between slashes":        func(s *locationSpec) { s.ObjectStorage.Bucket = "/team-a-backups/" },
		"a prefix between slashes":        func(s *locationSpec) { s.ObjectStorage.Prefix = "/a//b/./c/" },
		"a prefix with dots in its names": func(s *locationSpec) { s.ObjectStorage.Prefix = "..a/b../..." },
		"a read-only location":            func(s *locationSpec) { s.AccessMode = velerov1.BackupStorageLocationAccessModeReadOnly },
		"a location that is never read":   func(s *locationSpec) { s.BackupSyncPeriod = period(0) },
		"an e-mail address in the configuration": func(s *locationSpec) {
			s.Provider, s.Config = "gcp", map[string]string{"serviceAccount": "x@project.iam.gserviceaccount.com"}
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			spec := tenantSpec()
			change(spec)
			before := spec.DeepCopy()
			require.NoError(t, Validate(locationOf(spec), policy.Policy{}))
			require.Equal(t, before, spec, "validation must not change the spec")
		})
	}
}

func TestALocationThatCannotBeDecodedIsRefusedWithTheReason(t *testing.T) {
	const path = "NonAdminBackupStorageLocation spec.backupStorageLocationSpec"
	nabsl := locationOf(nil)
	policytest.RequireVerdict(t, Validate(nabsl, policy.Policy{}), path+" is not set", false)
	nabsl.Spec.Unreadable = `backupSyncPeriod: time: invalid duration "banana"`
	policytest.RequireVerdict(t, Validate(nabsl, policy.Policy{}),
		path+` is invalid: backupSyncPeriod: time: invalid duration "banana"`, false)
}

func TestTheSyncPeriodOfALocation(t *testing.T) {
	const text = "NABSL spec.backupStorageLocationSpec.backupSyncPeriod (%v) " +
		"can not be greater or equal non admin backupSyncPeriod (%v)"
	minutes := func(n int) *metav1.Duration { return period(time.Duration(n) * time.Minute) }
	tests := map[string]struct {
		own, enforced, policy *metav1.Duration
		want                  string
	}{
		"none, which is Velero's minute, below the default": {},
		"none, with a policy of a minute":                   {policy: minutes(1), want: fmt.Sprintf(text, "1m0s", "1m0s")},
		"less than the policy's":                            {own: minutes(3), policy: minutes(4)},
		"as much as the policy's":                           {own: minutes(4), policy: minutes(4), want: fmt.Sprintf(text, "4m0s", "4m0s")},
		"more than the default":                             {own: minutes(3), want: fmt.Sprintf(text, "3m0s", "2m0s")},
		"anything where Holdfast does not search":           {own: minutes(999), policy: minutes(0)},
		"none, where the administrator enforces a little":   {enforced: period(time.Second), policy: minutes(1)},
		"never": {own: minutes(0), policy: minutes(1)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			spec := tenantSpec()
			spec.BackupSyncPeriod = tt.own
			p := policy.Policy{BackupSyncPeriod: tt.policy, EnforceBSLSpec: &policy.StorageLocationSpec{BackupSyncPeriod: tt.enforced}}
			err := Validate(locationOf(spec), p)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			policytest.RequireVerdict(t, err, tt.want, true)
		})
	}
}

func TestChecksOfLocationsAreMadeInOrder(t *testing.T) {
	spec := tenantSpec()
	spec.Default, spec.Credential, spec.BackupSyncPeriod = true, nil, period(time.Hour)
	spec.ObjectStorage.Prefix, spec.Provider, spec.Config["prefix"], spec.AccessMode = "..", "azure", "x", "x"
	p := policy.Policy{EnforceBSLSpec: &policy.StorageLocationSpec{
		Provider: "aws", ObjectStorage: &policy.ObjectStorage{Bucket: "theirs"},
	}}
	steps := []struct {
		want string
		mend func()
	}{
		{"default BSL", func() { spec.Default = false }},
		{"credential is not set", func() { spec.Credential = selector("bucket", "") }},
		{"credential.key is not set", func() { spec.Credential.Key = "cloud" }},
		{"backupSyncPeriod", func() { spec.BackupSyncPeriod = nil }},
		{"objectStorage field value(s)", func() { p.EnforceBSLSpec.ObjectStorage = nil }},
		{"provider field to: aws", func() { spec.Provider = "aws" }},
		{".prefix is invalid", func() { spec.ObjectStorage.Prefix = "" }},
		{".accessMode is invalid", func() { spec.AccessMode = "" }},
		{".config.prefix is restricted", func() { delete(spec.Config, "prefix") }},
	}
	for _, step := range steps {
		err := Validate(locationOf(spec), p)
		require.ErrorContains(t, err, step.want)
		var verdict *check.InvalidSpecError
		require.ErrorAs(t, err, &verdict)
		step.mend()
	}
	require.NoError(t, Validate(locationOf(spec), p))
}
