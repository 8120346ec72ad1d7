package check

import (
	"maps"
	"slices"
	"strings"
)

// RestrictedConfig holds the keys of spec.config by which a tenant would reach what is not its own, with what a tenant can
// do instead. Whatever else a plugin reads there (s3Url, profile, storageAccount, ...) only says how to reach what the
// tenant's own credentials open.
var RestrictedConfig = map[string]string{
	// Velero's plugins, and restic before the credential is put in its place, read this file. Velero writes the
	// credentials of every location to files with names that can be guessed.
	"credentialsFile": "use credential",
	// Velero puts these into the plugin's configuration itself. Without objectStorage its repositories read them here.
	"bucket": "use objectStorage.bucket",
	"prefix": "use objectStorage.prefix",
	// The whole repository as restic gets it, instead of bucket and prefix: another tenant's folder, a path on the node
	// (/host_pods/...), or a scheme by which restic runs a program (rclone:, sftp:).
	"resticRepoPrefix": "use objectStorage",
	// Where Kopia keeps the repository if the provider is velero.io/fs: any directory of the node agent, which is root.
	"fspath": "file systems cannot be used",
	// The AWS plugin sends the first 32 bytes of this file of Velero's, as the key to encrypt with, to the tenant's s3Url.
	"customerKeyEncryptionFile": "use kmsKeyId or serverSideEncryption",
	// The same with a Secret of the OADP namespace.
	"customerKeyEncryptionSecret": "use kmsKeyId or serverSideEncryption",
}

// ConfigProblem returns the first key that must not be as it is, and why.
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
