package locationspec

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/policytest"
)

func TestTheLocationThatVeleroGets(t *testing.T) {
	spec := tenantSpec()
	spec.Default, spec.Credential.Optional = true, new(true)
	spec.ObjectStorage.CACertRef = selector("cloud-credentials", "cloud")
	before := spec.DeepCopy()

	built := Build(spec, policy.Policy{}, policytest.Tenant, policytest.NACUUID)
	require.Equal(t, locationSpec{
		Provider: "aws",
		Config: map[string]string{
			"region": "us-east-1", "s3Url": "https://s3.team-a.example", "profile": "backup", "checksumAlgorithm": "",
		},
		Credential: selector(policytest.NACUUID, "cloud"),
		StorageType: velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{
			Bucket: "team-a-backups", Prefix: "team-a/cluster-1", CACert: []byte("certificate"),
		}},
		AccessMode:          velerov1.BackupStorageLocationAccessModeReadWrite,
		BackupSyncPeriod:    period(0), // Holdfast reads the bucket
		ValidationFrequency: period(time.Minute),
	}, built)

	clear(built.Config)
	built.ObjectStorage.CACert[0]++
	built.BackupSyncPeriod.Duration++
	require.Equal(t, before, spec, "the tenant's object was reached through the result")
}

func TestVeleroSynchronizesOnlyWhereTheAdministratorSaysSo(t *testing.T) {
	var rules policy.Policy
	rules.TenantsBuckets.VeleroSynchronizes = true
	require.Equal(t, period(30*time.Second), Build(tenantSpec(), rules, policytest.Tenant, policytest.NACUUID).BackupSyncPeriod)
	require.Equal(t, 30*time.Second, SyncPeriod(tenantSpec(), rules))
	rules.EnforceBSLSpec = &policy.StorageLocationSpec{BackupSyncPeriod: period(10 * time.Second)}
	require.Equal(t, 10*time.Second, SyncPeriod(&locationSpec{}, rules))
	require.Equal(t, time.Minute, SyncPeriod(&locationSpec{}, policy.Policy{}))
}

func TestALocationWithoutSpecOpensNothing(t *testing.T) {
	want := locationSpec{
		Credential:       selector(policytest.NACUUID, ""),
		StorageType:      velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{Prefix: policytest.Tenant}},
		BackupSyncPeriod: period(0),
	}
	require.Equal(t, want, Build(nil, policy.Policy{}, policytest.Tenant, policytest.NACUUID))
	require.Equal(t, want, Build(&locationSpec{}, policy.Policy{}, policytest.Tenant, policytest.NACUUID))
}

func TestPrefixesStayInTheTenantsFolder(t *testing.T) {
	for prefix, want := range map[string]string{
		"":                     "team-a",
		"/":                    "team-a",
		".":                    "team-a",
		"a":                    "team-a/a",
		"/a//b/./c/":           "team-a/a/b/c",
		"..":                   "team-a",
		"../team-b":            "team-a/team-b",
		"a/../../../team-b":    "team-a/team-b",
		`..\team-b`:            "team-a/team-b",
		`a\..\..\..\team-b`:    "team-a/team-b",
		"../team-a-and-more/x": "team-a/team-a-and-more/x",
		"...":                  "team-a/...",
	} {
		t.Run(prefix, func(t *testing.T) {
			spec := tenantSpec()
			spec.ObjectStorage.Prefix = prefix
			require.Equal(t, want, Build(spec, policy.Policy{}, policytest.Tenant, policytest.NACUUID).ObjectStorage.Prefix)

			spec.ObjectStorage = nil
			p := policy.Policy{EnforceBSLSpec: &policy.StorageLocationSpec{ObjectStorage: &policy.ObjectStorage{Bucket: "b", Prefix: prefix}}}
			require.Equal(t, want, Build(spec, p, policytest.Tenant, policytest.NACUUID).ObjectStorage.Prefix, "the administrator's prefix")
		})
	}
}

func TestTheConfigurationThatVeleroGets(t *testing.T) {
	type config = map[string]string
	tests := map[string]struct {
		provider    string
		given, want config
	}{
		"AWS without any": {"aws", nil, config{"profile": "default"}},
		"AWS with an empty one": {
			"aws", config{}, config{"checksumAlgorithm": "", "profile": "default"},
		},
		"AWS under its full name": {
			"velero.io/aws", config{"region": "eu"}, config{"region": "eu", "checksumAlgorithm": "", "profile": "default"},
		},
		"AWS with all of it chosen": {
			"aws", config{"checksumAlgorithm": "SHA256", "profile": "x"}, config{"checksumAlgorithm": "SHA256", "profile": "x"},
		},
		"AWS with an empty profile": {
			"aws", config{"checksumAlgorithm": "", "profile": ""}, config{"checksumAlgorithm": "", "profile": "default"},
		},
		"another provider without any": {"gcp", nil, nil},
		"another provider with some":   {"azure", config{"s3Url": "http://x:80"}, config{"s3Url": "http://x:80"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			spec := &locationSpec{Provider: tt.provider, Config: tt.given}
			require.Equal(t, tt.want, Build(spec, policy.Policy{}, policytest.Tenant, policytest.NACUUID).Config)
		})
	}
}

func TestDefaultPortsAreLeftOut(t *testing.T) {
	for given, want := range map[string]string{
		"http://s3:80":            "http://s3",
		"https://s3:443/path":     "https://s3/path",
		"http://s3:443":           "http://s3:443",
		"https://s3:80":           "https://s3:80",
		"https://s3:9000":         "https://s3:9000",
		"https://[fd00::1]:443":   "https://[fd00::1]",
		"HTTP://s3:80":            "http://s3",
		"s3:80":                   "s3:80",
		"":                        "",
		"https://s3:443 and more": "https://s3:443 and more",
	} {
		t.Run(given, func(t *testing.T) {
			spec := &locationSpec{Provider: "aws", Config: map[string]string{"s3Url": given}}
			require.Equal(t, want, Build(spec, policy.Policy{}, policytest.Tenant, policytest.NACUUID).Config["s3Url"])
		})
	}
}

func TestWhatIsBuiltIsBuiltTheSameAgain(t *testing.T) {
	built := Build(tenantSpec(), policy.Policy{}, policytest.Tenant, policytest.NACUUID)
	require.Equal(t, built, Build(tenantSpec(), policy.Policy{}, policytest.Tenant, policytest.NACUUID))
}

func TestTheRegistryLabel(t *testing.T) {
	key := map[string]string{"storageAccountKeyEnvVar": "KEY"}
	require.Equal(t, "True", RegistryLabelOf(nil))
	require.Equal(t, "True", RegistryLabelOf(&locationSpec{Provider: "aws"}))
	require.Equal(t, "True", RegistryLabelOf(&locationSpec{Provider: "azure", Config: key}))
	require.Equal(t, "False", RegistryLabelOf(&locationSpec{Provider: "azure"}))
	require.Equal(t, "False", RegistryLabelOf(&locationSpec{Provider: "velero.io/azure", Config: map[string]string{"useAAD": "true"}}))
}
