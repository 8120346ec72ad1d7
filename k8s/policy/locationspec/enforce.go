package locationspec

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
)

// enforcedField compares one field of a spec with the administrator's value for it.
type enforcedField struct {
	name    string
	differs bool
	value   string
}

// checkEnforcedLocation refuses a spec that sets a field to another value than the administrator's, each field as a whole.
func checkEnforcedLocation(spec *velerov1.BackupStorageLocationSpec, enforced *policy.StorageLocationSpec) error {
	if enforced == nil {
		return nil
	}
	if wanted := enforced.ObjectStorage; wanted != nil && spec.ObjectStorage != nil && !sameStorage(spec.ObjectStorage, wanted) {
		return check.External("the administrator has restricted spec.backupStorageLocationSpec.objectStorage field value(s) to: "+
			"bucket: %s, prefix: %s, caCert: %s", wanted.Bucket, wanted.Prefix, fingerprint(wanted.CACert))
	}
	for _, field := range []enforcedField{
		{"provider", differ(spec.Provider, enforced.Provider), enforced.Provider},
		{
			"config", len(enforced.Config) > 0 && len(spec.Config) > 0 && !maps.Equal(spec.Config, enforced.Config),
			printedMap(enforced.Config),
		},
		{"credential", !sameCredential(spec.Credential, enforced.Credential), printedCredential(enforced.Credential)},
		{"accessMode", differ(spec.AccessMode, enforced.AccessMode), string(enforced.AccessMode)},
		periodField("backupSyncPeriod", spec.BackupSyncPeriod, enforced.BackupSyncPeriod),
		periodField("validationFrequency", spec.ValidationFrequency, enforced.ValidationFrequency),
	} {
		if field.differs {
			return check.External("the administrator has restricted spec.backupStorageLocationSpec.%s field to: %s",
				field.name, field.value)
		}
	}
	return nil
}

// differ reports whether both values are set, and not equal.
func differ[T comparable](given, wanted T) bool {
	var none T
	return given != none && wanted != none && given != wanted
}

func periodField(name string, given, wanted *metav1.Duration) enforcedField {
	if wanted == nil {
		return enforcedField{name: name}
	}
	return enforcedField{name, given != nil && *given != *wanted, wanted.Duration.String()}
}

func sameStorage(given *velerov1.ObjectStorageLocation, wanted *policy.ObjectStorage) bool {
	return given.Bucket == wanted.Bucket && given.Prefix == wanted.Prefix && bytes.Equal(given.CACert, wanted.CACert)
}

func sameCredential(given, wanted *corev1.SecretKeySelector) bool {
	return given == nil || wanted == nil || (given.Name == wanted.Name && given.Key == wanted.Key)
}

func printedCredential(credential *corev1.SecretKeySelector) string {
	if credential == nil {
		return ""
	}
	return fmt.Sprintf("name: %s, key: %s", credential.Name, credential.Key)
}

func printedMap(content map[string]string) string {
	pairs := make([]string, 0, len(content))
	for _, key := range slices.Sorted(maps.Keys(content)) {
		pairs = append(pairs, key+": "+content[key])
	}
	return strings.Join(pairs, ", ")
}

// fingerprint stands for bytes that a reader cannot use.
func fingerprint(content []byte) string {
	if len(content) == 0 {
		return ""
	}
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:8])
}

// fillEnforced gives a spec copies of the administrator's values in the fields that it leaves unset.
func fillEnforced(spec *velerov1.BackupStorageLocationSpec, enforced *policy.StorageLocationSpec) {
	if enforced == nil {
		return
	}
	spec.Provider = cmp.Or(spec.Provider, enforced.Provider)
	if len(spec.Config) == 0 && len(enforced.Config) > 0 {
		spec.Config = maps.Clone(enforced.Config)
	}
	if spec.Credential == nil {
		spec.Credential = enforced.Credential.DeepCopy()
	}
	if wanted := enforced.ObjectStorage; spec.ObjectStorage == nil && wanted != nil {
		spec.ObjectStorage = &velerov1.ObjectStorageLocation{
			Bucket: wanted.Bucket, Prefix: wanted.Prefix, CACert: bytes.Clone(wanted.CACert),
		}
	}
	spec.AccessMode = cmp.Or(spec.AccessMode, enforced.AccessMode)
	if spec.BackupSyncPeriod == nil {
		spec.BackupSyncPeriod = enforced.BackupSyncPeriod.DeepCopy()
	}
	if spec.ValidationFrequency == nil {
		spec.ValidationFrequency = enforced.ValidationFrequency.DeepCopy()
	}
}
