package locationspec

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/policytest"
)

func TestEnforcedFieldsOfLocations(t *testing.T) {
	const text = "the administrator has restricted spec.backupStorageLocationSpec."
	tests := map[string]struct {
		enforced policy.StorageLocationSpec
		fits     func(*locationSpec)
		unset    func(*locationSpec)
		want     string
	}{
		"Provider": {
			policy.StorageLocationSpec{Provider: "gcp"},
			func(s *locationSpec) { s.Provider = "gcp" }, func(s *locationSpec) { s.Provider = "" },
			"provider field to: gcp",
		},
		"Config": {
			policy.StorageLocationSpec{Config: map[string]string{"s3Url": "https://s3.example", "region": "eu", "a": "b"}},
			func(s *locationSpec) {
				s.Config = map[string]string{"a": "b", "region": "eu", "s3Url": "https://s3.example"}
			},
			func(s *locationSpec) { s.Config = map[string]string{} },
			"config field to: a: b, region: eu, s3Url: https://s3.example",
		},
		"Credential": {
			policy.StorageLocationSpec{Credential: selector("given", "key")},
			func(s *locationSpec) {
				s.Credential = selector("given", "key")
				s.Credential.Optional = new(true)
			},
			nil, "credential field to: name: given, key: key",
		},
		"ObjectStorage": {
			policy.StorageLocationSpec{ObjectStorage: &policy.ObjectStorage{Bucket: "theirs", Prefix: "p", CACert: []byte("certificate")}},
			func(s *locationSpec) { s.ObjectStorage.Bucket, s.ObjectStorage.Prefix = "theirs", "p" },
			func(s *locationSpec) { s.ObjectStorage = nil },
			"objectStorage field value(s) to: bucket: theirs, prefix: p, caCert: sha256:03d66dd08835c1ca",
		},
		"AccessMode": {
			policy.StorageLocationSpec{AccessMode: velerov1.BackupStorageLocationAccessModeReadOnly},
			func(s *locationSpec) { s.AccessMode = velerov1.BackupStorageLocationAccessModeReadOnly },
			func(s *locationSpec) { s.AccessMode = "" },
			"accessMode field to: ReadOnly",
		},
		"BackupSyncPeriod": {
			policy.StorageLocationSpec{BackupSyncPeriod: period(0)},
			func(s *locationSpec) { s.BackupSyncPeriod = period(0) }, func(s *locationSpec) { s.BackupSyncPeriod = nil },
			"backupSyncPeriod field to: 0s",
		},
		"ValidationFrequency": {
			policy.StorageLocationSpec{ValidationFrequency: period(90 * time.Second)},
			func(s *locationSpec) { s.ValidationFrequency = period(90 * time.Second) },
			func(s *locationSpec) { s.ValidationFrequency = nil },
			"validationFrequency field to: 1m30s",
		},
	}
	fields := reflect.TypeFor[policy.StorageLocationSpec]()
	for i := range fields.NumField() {
		require.Contains(t, tests, fields.Field(i).Name, "a field that can be enforced has no test")
	}
	for name, tt := range tests {
		p := policy.Policy{EnforceBSLSpec: &tt.enforced}
		t.Run("another value of "+name+" is refused", func(t *testing.T) {
			policytest.RequireVerdict(t, Validate(locationOf(tenantSpec()), p), text+tt.want, true)
		})
		t.Run("the value of "+name+" is accepted", func(t *testing.T) {
			spec := tenantSpec()
			tt.fits(spec)
			require.NoError(t, Validate(locationOf(spec), p))
		})
		t.Run("another value of "+name+" that was approved stays", func(t *testing.T) {
			require.Equal(t, Build(tenantSpec(), policy.Policy{}, policytest.Tenant, policytest.NACUUID),
				Build(tenantSpec(), p, policytest.Tenant, policytest.NACUUID))
		})
		if tt.unset == nil {
			continue
		}
		t.Run("no value of "+name+" is filled with a copy", func(t *testing.T) {
			spec, filled := tenantSpec(), tenantSpec()
			tt.unset(spec)
			tt.fits(filled)
			require.NoError(t, Validate(locationOf(spec), p))
			before, err := json.Marshal(p)
			require.NoError(t, err)
			built := Build(spec, p, policytest.Tenant, policytest.NACUUID)
			require.Equal(t, Build(filled, policy.Policy{}, policytest.Tenant, policytest.NACUUID), built)
			if built.Config != nil {
				clear(built.Config)
			}
			if len(built.ObjectStorage.CACert) > 0 {
				built.ObjectStorage.CACert[0]++
			}
			if built.BackupSyncPeriod != nil {
				built.BackupSyncPeriod.Duration++
			}
			if built.ValidationFrequency != nil {
				built.ValidationFrequency.Duration++
			}
			after, err := json.Marshal(p)
			require.NoError(t, err)
			require.Equal(t, before, after, "the administrator's policy was reached through the result")
		})
	}
}

func TestAnEnforcedPlaceIsEnough(t *testing.T) {
	p := policy.Policy{EnforceBSLSpec: &policy.StorageLocationSpec{Provider: "aws", ObjectStorage: &policy.ObjectStorage{Bucket: "theirs"}}}
	spec := &locationSpec{Credential: selector("bucket", "cloud")}
	require.NoError(t, Validate(locationOf(spec), p))
	require.Error(t, Validate(locationOf(spec), policy.Policy{}))
}
