package locationspec

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
)

const (
	// maxLocationBytes bounds a spec: the approval request holds it twice.
	maxLocationBytes = 64 << 10
	// defaultLocationSync is how often Velero lists a location whose spec sets no period.
	defaultLocationSync = time.Minute
)

// Validate judges a NonAdminBackupStorageLocation's spec. nil means valid, a *check.InvalidSpecError that it is not.
// The Secret that the spec names is judged by CheckStoredCredentials.
//
// The order of the checks and their texts are those of the Non-Admin Controller, which makes the first of them; the
// others come last.
func Validate(nabsl *oadpv1alpha1.NonAdminBackupStorageLocation, p policy.Policy) error {
	if err := checkLocationReadable(nabsl); err != nil {
		return err
	}
	spec := nabsl.Spec.BackupStorageLocationSpec
	if spec.Default {
		return check.Invalid("NonAdminBackupStorageLocation cannot be used as a default BSL")
	}
	if err := checkCredentialSelector(spec.Credential); err != nil {
		return err
	}
	if err := checkLocationSync(spec, p); err != nil {
		return err
	}
	if err := checkEnforcedLocation(spec, p.EnforceBSLSpec); err != nil {
		return err
	}
	if err := checkObjectStorage(spec, p); err != nil {
		return err
	}
	if err := checkLocationModes(spec); err != nil {
		return err
	}
	return checkConfig(spec.Config)
}

// invalidLocation refuses a field of the spec; problem continues a sentence that begins with the field's path.
func invalidLocation(field, problem string, args ...any) error {
	return check.Invalid("NonAdminBackupStorageLocation spec.backupStorageLocationSpec"+field+" "+problem, args...)
}

func checkLocationReadable(nabsl *oadpv1alpha1.NonAdminBackupStorageLocation) error {
	spec := nabsl.Spec.BackupStorageLocationSpec
	if spec == nil {
		if nabsl.Spec.Unreadable != "" {
			return invalidLocation("", "is invalid: %s", nabsl.Spec.Unreadable)
		}
		return invalidLocation("", "is not set")
	}
	if content, err := json.Marshal(spec); err != nil || len(content) > maxLocationBytes {
		return invalidLocation("", "is too large: %d bytes of JSON, %d are allowed", len(content), maxLocationBytes)
	}
	return nil
}

// checkCredentialSelector refuses a reference that no Secret can have. Without a credential, Velero would use its own.
func checkCredentialSelector(credential *corev1.SecretKeySelector) error {
	if credential == nil {
		return check.Invalid("NonAdminBackupStorageLocation spec.bslSpec.credential is not set")
	}
	if credential.Name == "" || credential.Key == "" {
		return check.Invalid("NonAdminBackupStorageLocation spec.bslSpec.credential.name or spec.bslSpec.credential.key is not set")
	}
	if problems := validation.IsDNS1123Subdomain(credential.Name); len(problems) > 0 {
		return invalidLocation(".credential.name", "is invalid: %s", strings.Join(problems, ", "))
	}
	if problems := validation.IsConfigMapKey(credential.Key); len(problems) > 0 {
		return invalidLocation(".credential.key", "is invalid: %s", strings.Join(problems, ", "))
	}
	return nil
}

// SyncPeriod returns the time between two synchronizations of the backups in a location; 0 is never.
func SyncPeriod(spec *velerov1.BackupStorageLocationSpec, p policy.Policy) time.Duration {
	return check.PeriodOr(spec.BackupSyncPeriod, check.PeriodOr(p.EnforcedLocationSync(), defaultLocationSync))
}

// checkLocationSync: Velero must have found the backups in a location before Holdfast offers them to the tenant.
func checkLocationSync(spec *velerov1.BackupStorageLocationSpec, p policy.Policy) error {
	own := SyncPeriod(spec, p)
	if limit := p.BackupSync(); limit > 0 && own >= limit {
		return check.External("NABSL spec.backupStorageLocationSpec.backupSyncPeriod (%v) "+
			"can not be greater or equal non admin backupSyncPeriod (%v)", own, limit)
	}
	return nil
}

// checkObjectStorage refuses a spec without a bucket, and one outside the tenant's folder.
func checkObjectStorage(spec *velerov1.BackupStorageLocationSpec, p policy.Policy) error {
	whole := spec.DeepCopy()
	fillEnforced(whole, p.EnforceBSLSpec)
	switch {
	case whole.Provider == "":
		return invalidLocation(".provider", "is not set")
	case whole.ObjectStorage == nil:
		return invalidLocation(".objectStorage", "is not set")
	case strings.Trim(whole.ObjectStorage.Bucket, "/") == "":
		return invalidLocation(".objectStorage.bucket", "is not set")
	case spec.ObjectStorage == nil:
		return nil
	}
	bucket := strings.Trim(spec.ObjectStorage.Bucket, "/")
	if problem := pathProblem(bucket); problem != "" {
		return invalidLocation(".objectStorage.bucket", "is invalid: %s", problem)
	}
	if strings.Contains(bucket, "/") || bucket == "." { // restic joins bucket and prefix to one path
		return invalidLocation(".objectStorage.bucket", "is invalid: must be a name; a path belongs into prefix")
	}
	if problem := pathProblem(spec.ObjectStorage.Prefix); problem != "" {
		return invalidLocation(".objectStorage.prefix", "is invalid: %s", problem)
	}
	if spec.ObjectStorage.CACertRef != nil {
		return invalidLocation(".objectStorage.caCertRef", "is restricted: it would name a Secret of the OADP namespace; "+
			"put the certificates into objectStorage.caCert")
	}
	return nil
}

// pathProblem says why a path could lead somewhere else than it seems.
func pathProblem(path string) string {
	if slices.Contains(strings.Split(path, "/"), "..") {
		return "must not contain '..' as a path element"
	}
	if strings.Contains(path, `\`) {
		return `must not contain '\', which some object stores take for '/'`
	}
	if strings.ContainsFunc(path, unicode.IsControl) {
		return "must not contain control characters"
	}
	return ""
}

func checkLocationModes(spec *velerov1.BackupStorageLocationSpec) error {
	switch spec.AccessMode {
	case "", velerov1.BackupStorageLocationAccessModeReadOnly, velerov1.BackupStorageLocationAccessModeReadWrite:
	default:
		return invalidLocation(".accessMode", "is invalid: must be ReadOnly or ReadWrite")
	}
	for _, period := range []struct {
		field string
		value *metav1.Duration
	}{{".backupSyncPeriod", spec.BackupSyncPeriod}, {".validationFrequency", spec.ValidationFrequency}} {
		if check.PeriodOr(period.value, 0) < 0 {
			return invalidLocation(period.field, "is invalid: must not be negative: %v", period.value.Duration)
		}
	}
	return nil
}

// checkConfig refuses restricted keys, and credentials in a URL: the configuration is shown to administrators, and secrets
// belong into the Secret.
func checkConfig(config map[string]string) error {
	if key, problem := check.ConfigProblem(config); problem != "" {
		return invalidLocation(".config.%s", "%s", key, problem)
	}
	return nil
}
