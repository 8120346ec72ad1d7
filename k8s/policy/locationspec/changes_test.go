package locationspec

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"holdfast.dev/holdfast/workflows/contract"
)

// changes are contract.FieldChange, each as field, from and to.
type changes [][3]string

func listed(list []contract.FieldChange) changes {
	var result changes
	for _, change := range list {
		result = append(result, [3]string{change.Field, change.From, change.To})
	}
	return result
}

func TestChangesOfALocation(t *testing.T) {
	tests := map[string]struct {
		change func(*locationSpec)
		want   changes
		same   bool // but for the credential
	}{
		"nothing": {func(*locationSpec) {}, nil, true},
		"the credential": {
			func(s *locationSpec) { s.Credential = selector("other", "key") },
			changes{{"credential.key", "cloud", "key"}, {"credential.name", "bucket", "other"}},
			true,
		},
		"no credential": {
			func(s *locationSpec) { s.Credential = nil },
			changes{{"credential.key", "cloud", ""}, {"credential.name", "bucket", ""}},
			true,
		},
		"the provider": {func(s *locationSpec) { s.Provider = "gcp" }, changes{{"provider", "aws", "gcp"}}, false},
		"the place": {
			func(s *locationSpec) { s.ObjectStorage.Bucket, s.ObjectStorage.Prefix = "b", "" },
			changes{{"objectStorage.bucket", "team-a-backups", "b"}, {"objectStorage.prefix", "cluster-1", ""}},
			false,
		},
		"the certificates": {
			func(s *locationSpec) { s.ObjectStorage.CACert = []byte("another") },
			changes{{"objectStorage.caCert", "sha256:03d66dd08835c1ca", "sha256:ae448ac86c4e8e4d"}},
			false,
		},
		"a Secret with certificates": {
			func(s *locationSpec) { s.ObjectStorage.CACertRef = selector("n", "k") },
			changes{{"objectStorage.caCertRef.key", "", "k"}, {"objectStorage.caCertRef.name", "", "n"}},
			false,
		},
		"the configuration": {
			func(s *locationSpec) {
				s.Config = map[string]string{"region": "eu", "profile": "backup", "checksumAlgorithm": ""}
			},
			changes{
				{"config.checksumAlgorithm", "", `""`},
				{"config.region", "us-east-1", "eu"},
				{"config.s3Url", "https://s3.team-a.example:443", ""},
			},
			false,
		},
		"periods, the mode and the default": {
			func(s *locationSpec) {
				s.AccessMode, s.BackupSyncPeriod, s.Default = velerov1.BackupStorageLocationAccessModeReadOnly, nil, true
				s.ValidationFrequency = period(0)
			},
			changes{
				{"accessMode", "ReadWrite", "ReadOnly"},
				{"backupSyncPeriod", "30s", ""},
				{"default", "", "true"},
				{"validationFrequency", "1m0s", "0s"},
			},
			false,
		},
		"a value that would not print": {
			func(s *locationSpec) { s.Config["region"] = "eu\n\x1b[2Jfake\u202e" },
			changes{{"config.region", "us-east-1", `"eu\n\x1b[2Jfake\u202e"`}},
			false,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := tenantSpec(), tenantSpec()
			tt.change(after)
			unchanged := after.DeepCopy()
			require.Equal(t, tt.want, listed(Changes(before, after)))
			require.Equal(t, tt.same, SameButCredential(before, after))
			require.Equal(t, tt.same, SameButCredential(after, before))
			require.Equal(t, unchanged, after, "the spec was changed")

			var reversed changes
			for _, change := range tt.want {
				reversed = append(reversed, [3]string{change[0], change[2], change[1]})
			}
			require.Equal(t, reversed, listed(Changes(after, before)))
		})
	}
}

// A tenant may add any number of keys to config: what a decision is about is shown all the same.
func TestManyKeysHideNothingThatMatters(t *testing.T) {
	before, after := tenantSpec(), tenantSpec()
	for i := range 2 * maxChanges {
		after.Config[fmt.Sprintf("a%02d", i)] = "junk"
	}
	after.Config["s3Url"] = "https://evil.example"
	after.ObjectStorage.Bucket = "other"
	got := Changes(before, after)
	require.Equal(t, "objectStorage.bucket", got[0].Field)
	require.Equal(t, "config.s3Url", got[1].Field)
}

func TestANewLocationIsAllChange(t *testing.T) {
	require.Equal(t, changes{
		{"credential.key", "", "cloud"},
		{"credential.name", "", "bucket"},
		{"objectStorage.bucket", "", "b"},
		{"provider", "", "aws"},
		{"config.region", "", "eu"},
	}, listed(Changes(nil, &locationSpec{
		Provider: "aws", Config: map[string]string{"region": "eu"}, Credential: selector("bucket", "cloud"),
		StorageType: velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{Bucket: "b"}},
	})))
	require.Empty(t, Changes(nil, nil))
	require.Empty(t, Changes(nil, &locationSpec{}))
}

func TestSpecsThatAreTheSame(t *testing.T) {
	spec := tenantSpec()
	require.True(t, SameButCredential(nil, nil))
	require.False(t, SameButCredential(spec, nil))
	require.False(t, SameButCredential(nil, spec))
	require.True(t, SameButCredential(&locationSpec{}, &locationSpec{Config: map[string]string{}}))
	require.True(t, SameButCredential(
		&locationSpec{BackupSyncPeriod: period(time.Second)}, &locationSpec{BackupSyncPeriod: period(time.Second)}))
	require.False(t, SameButCredential(&locationSpec{}, &locationSpec{BackupSyncPeriod: period(0)}))
	require.Equal(t, selector("bucket", "cloud"), spec.Credential, "the spec was changed")
}

func TestChangesAreBounded(t *testing.T) {
	long := strings.Repeat("x", maxChangeBytes)
	before, after := tenantSpec(), tenantSpec()
	before.Config = map[string]string{"a": long, "b": long + "1", "k" + long: "1"}
	after.Config = map[string]string{"b": long + "2", "k" + long: "2"}
	got := Changes(before, after)
	require.Len(t, got, 3)
	require.Equal(t, contract.FieldChange{Field: "config.a", From: long}, got[0])
	require.NotEqual(t, got[1].From, got[1].To, "a change behind the cut must be seen")
	for _, change := range got {
		for _, text := range []string{change.Field, change.From, change.To} {
			require.LessOrEqual(t, len(text), maxChangeBytes)
		}
	}
	require.Regexp(t, `^x{100,}\.\.\. \(sha256:[0-9a-f]{16}\)$`, got[1].To)
}

func TestOnlySoManyChangesAreListed(t *testing.T) {
	for _, n := range []int{maxChanges, maxChanges + 1, maxChanges + 100} {
		after := &locationSpec{Config: map[string]string{}}
		for i := range n {
			after.Config[fmt.Sprintf("k%04d", i)] = "v"
		}
		got := Changes(&locationSpec{}, after)
		require.Len(t, got, maxChanges)
		require.Equal(t, "config.k0038", got[maxChanges-2].Field)
		if n == maxChanges {
			require.Equal(t, contract.FieldChange{Field: "config.k0039", To: "v"}, got[maxChanges-1])
			continue
		}
		require.Equal(t, contract.FieldChange{Field: fmt.Sprintf("... and %d more", n-maxChanges+1)}, got[maxChanges-1])
	}
}
