package check

import (
	"maps"
	"slices"
	"strings"
)

// RestrictedConfig holds the keys of spec.config that would give a tenant access to what is not its own, with what a tenant can
// use instead. Other keys of plugins (s3Url, profile, storageAccount, ...) only say how to reach what the tenant's own
// credentials open.
var RestrictedConfig = map[string]string{
	// Velero's plugins, and restic before it is given the credential, read this file. Velero writes the credentials of every
	// location to files with names that can be guessed.
	"credentialsFile": "use credential",
	// Velero sets these in the plugin's configuration itself. Without objectStorage its repositories read them here.
	"bucket": "use objectStorage.bucket",
	"prefix": "use objectStorage.prefix",
	// The whole repository address for restic, instead of bucket and prefix: another tenant's folder, a path on the node
	// (/host_pods/...), or a scheme by which restic runs a program (rclone:, sftp:).
	"resticRepoPrefix": "use objectStorage",
	// Where Kopia keeps the repository if the provider is velero.io/fs: any directory of the node agent, which is root.
	"fspath": "file systems cannot be used",
	// The AWS plugin sends the first 32 bytes of this file of Velero's to the tenant's s3Url, as the encryption key.
	"customerKeyEncryptionFile": "use kmsKeyId or serverSideEncryption",
	// The same with a Secret of the OADP namespace.
	"customerKeyEncryptionSecret": "use kmsKeyId or serverSideEncryption",
}

// ConfigProblem returns the first key that is not allowed, and why.
func ConfigProblem(config map[string]string) (key, problem string) {
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if instead, restricted := RestrictedConfig[key]; restricted {
			return key, "is restricted: " + instead
		}
		if value := config[key]; strings.Contains(value, "://") && strings.ContainsAny(value, "@?") {
			return key, "is invalid: a URL must be without user, password and query"
		}
	}
	return "", ""
}
