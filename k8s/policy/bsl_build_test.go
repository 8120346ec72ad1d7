package policy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
)

func TestTheLocationThatVeleroGets(t *testing.T) {
	spec := tenantSpec()
	spec.Default, spec.Credential.Optional = true, ptr(true)
	spec.ObjectStorage.CACertRef = selector("cloud-credentials", "cloud")
	before := spec.DeepCopy()

	built := BuildLocationSpec(spec, Policy{}, tenant, nacuuid)
	require.Equal(t, locationSpec{
		Provider: "aws",
		Config: map[string]string{
			"region": "us-east-1", "s3Url": "https://s3.team-a.example", "profile": "backup", "checksumAlgorithm": "",
		},
		Credential: selector(nacuuid, "cloud"),
		StorageType: velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{
			Bucket: "team-a-backups", Prefix: "team-a/cluster-1", CACert: []byte("certificate"),
		}},
		AccessMode:          velerov1.BackupStorageLocationAccessModeReadWrite,
		BackupSyncPeriod:    period(30 * time.Second),
		ValidationFrequency: period(time.Minute),
	}, built)

	clear(built.Config)
	built.ObjectStorage.CACert[0]++
	built.BackupSyncPeriod.Duration++
	require.Equal(t, before, spec, "the tenant's object was reached through the result")
}

func TestALocationWithoutSpecOpensNothing(t *testing.T) {
	want := locationSpec{
		Credential:  selector(nacuuid, ""),
		StorageType: velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{Prefix: tenant}},
	}
	require.Equal(t, want, BuildLocationSpec(nil, Policy{}, tenant, nacuuid))
	require.Equal(t, want, BuildLocationSpec(&locationSpec{}, Policy{}, tenant, nacuuid))
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
			require.Equal(t, want, BuildLocationSpec(spec, Policy{}, tenant, nacuuid).ObjectStorage.Prefix)

			spec.ObjectStorage = nil
			p := Policy{EnforceBSLSpec: &StorageLocationSpec{ObjectStorage: &ObjectStorage{Bucket: "b", Prefix: prefix}}}
			require.Equal(t, want, BuildLocationSpec(spec, p, tenant, nacuuid).ObjectStorage.Prefix, "the administrator's prefix")
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
			require.Equal(t, tt.want, BuildLocationSpec(spec, Policy{}, tenant, nacuuid).Config)
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
			require.Equal(t, want, BuildLocationSpec(spec, Policy{}, tenant, nacuuid).Config["s3Url"])
		})
	}
}

func TestWhatIsBuiltIsBuiltTheSameAgain(t *testing.T) {
	built := BuildLocationSpec(tenantSpec(), Policy{}, tenant, nacuuid)
	require.Equal(t, built, BuildLocationSpec(tenantSpec(), Policy{}, tenant, nacuuid))
}

func TestTheRegistryLabel(t *testing.T) {
	key := map[string]string{"storageAccountKeyEnvVar": "KEY"}
	require.Equal(t, "True", RegistryLabelOf(nil))
	require.Equal(t, "True", RegistryLabelOf(&locationSpec{Provider: "aws"}))
	require.Equal(t, "True", RegistryLabelOf(&locationSpec{Provider: "azure", Config: key}))
	require.Equal(t, "False", RegistryLabelOf(&locationSpec{Provider: "azure"}))
	require.Equal(t, "False", RegistryLabelOf(&locationSpec{Provider: "velero.io/azure", Config: map[string]string{"useAAD": "true"}}))
}
