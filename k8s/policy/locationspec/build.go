package locationspec

import (
	"cmp"
	"net/url"
	"path"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
)

// Providers whose configuration and credentials are known here.
const (
	providerAWS   = "aws"
	providerAzure = "azure"
	providerGCP   = "gcp"
)

// plainProvider returns a provider's name as Velero's users write it: "aws" for "velero.io/aws".
func plainProvider(provider string) string { return strings.TrimPrefix(provider, "velero.io/") }

// Build returns the spec of the Velero BackupStorageLocation for a tenant's spec that Validate found valid, or that an
// administrator approved: with the administrator's values in unset fields, within the tenant's folder, and with the copy of the
// tenant's Secret, which is named nacuuid.
//
// Nothing in the result is shared with spec or the policy. Whether or not the spec was found valid, the result keeps to the
// folder and to that Secret, is not the default, and has no field by which Velero would read what is not the tenant's.
func Build(
	spec *velerov1.BackupStorageLocationSpec, p policy.Policy, namespace, nacuuid string,
) velerov1.BackupStorageLocationSpec {
	built := &velerov1.BackupStorageLocationSpec{}
	if spec != nil {
		built = spec.DeepCopy()
	}
	fillEnforced(built, p.EnforceBSLSpec)

	built.Default = false
	credential := &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: nacuuid}}
	if built.Credential != nil {
		credential.Key = built.Credential.Key
	}
	built.Credential = credential
	if built.ObjectStorage == nil {
		built.ObjectStorage = &velerov1.ObjectStorageLocation{}
	}
	built.ObjectStorage.Prefix = confinedPrefix(namespace, built.ObjectStorage.Prefix)
	built.ObjectStorage.CACertRef = nil
	if !p.TenantsBuckets.VeleroSynchronizes {
		built.BackupSyncPeriod = &metav1.Duration{} // Holdfast does: docs/adr/0042
	}
	for key := range check.RestrictedConfig {
		delete(built.Config, key)
	}
	if plainProvider(built.Provider) == providerAWS {
		built.Config = awsConfig(built.Config)
	}
	return *built
}

// confinedPrefix returns a path in the tenant's folder. ".." leads no further up than to the root. Some object stores read a
// backslash as a slash.
func confinedPrefix(namespace, prefix string) string {
	return path.Join(namespace, path.Join("/", strings.ReplaceAll(prefix, `\`, "/")))
}

// awsConfig makes the changes that OADP makes to the configuration of its own locations, and one more.
func awsConfig(config map[string]string) map[string]string {
	if config == nil {
		config = map[string]string{}
	} else if _, chosen := config["checksumAlgorithm"]; !chosen {
		config["checksumAlgorithm"] = "" // none: not every object store knows the plugin's default
	}
	if s3URL, found := config["s3Url"]; found {
		config["s3Url"] = withoutDefaultPort(s3URL)
	}
	// Without a profile the SDK prefers keys in the environment of Velero's process, the administrator's, to those of the
	// tenant. With one it reads the tenant's file only, and fails if that has no such profile.
	config["profile"] = cmp.Or(config["profile"], defaultProfile)
	return config
}

// withoutDefaultPort removes :80 and :443: the SDK leaves them out of what it signs, not every object store does.
func withoutDefaultPort(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return address
	}
	port := parsed.Port()
	if (parsed.Scheme == "http" && port == "80") || (parsed.Scheme == "https" && port == "443") {
		parsed.Host = strings.TrimSuffix(parsed.Host, ":"+port)
		return parsed.String()
	}
	return address
}

// RegistryLabelOf returns the value of oadpv1alpha1.RegistryLabel for a location: OADP's image registry cannot use
// Azure without the key of a storage account.
func RegistryLabelOf(spec *velerov1.BackupStorageLocationSpec) string {
	if spec != nil && plainProvider(spec.Provider) == providerAzure && spec.Config[azureKeyConfig] == "" {
		return oadpv1alpha1.RegistryLabelValueOff
	}
	return oadpv1alpha1.RegistryLabelValue
}
